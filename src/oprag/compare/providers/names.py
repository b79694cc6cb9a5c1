"""Names of providers, functions and token counters in experiments and on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from oprag.errors import ExperimentError, OptionError
from oprag.masking import describe
from oprag.token_counters import COUNTERS, LOCAL, Counter, NamedTokenizer, counter_named, tokenizer_named
from oprag.tokens import approximate_tokens

__all__ = [
    "CHAT_PROVIDERS",
    "EMBEDDING_PROVIDERS",
    "LOCAL",
    "as_experiment_errors",
    "counter_of",
    "is_instance",
    "main_module",
    "module_of",
    "qualified_name",
    "set_main_module",
    "tokenizer_of",
]

EMBEDDING_PROVIDERS = frozenset(
    (
        *("azure_ai", "azure_openai", "bedrock", "cohere", "google_genai", "google_vertexai", "huggingface"),
        *("mistralai", "ollama", "openai"),
    )
)
"""The providers of LangChain's `init_embeddings`."""

CHAT_PROVIDERS = EMBEDDING_PROVIDERS | frozenset(
    (
        *("anthropic", "anthropic_bedrock", "baseten", "bedrock_converse", "bedrock_mantle_anthropic"),
        *("bedrock_mantle_openai", "deepseek", "fireworks", "google_anthropic_vertex", "groq", "ibm", "langsmith"),
        *("litellm", "meta", "nvidia", "openrouter", "perplexity", "together", "upstage", "xai"),
    )
)
"""The providers of LangChain's `init_chat_model`."""


_main: str | None = None


def set_main_module(name: str) -> None:
    """Set the name of `__main__` in a worker, whose own `__main__` is not the script that the classes come from."""
    global _main  # noqa: PLW0603 - once per process
    _main = name


def main_module() -> str:
    """The name under which `__main__` can be imported; "__main__" if it cannot, as in a notebook."""
    if _main is not None:
        return _main
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m NAME
        return str(spec.name)
    file = getattr(main, "__file__", None)
    return "__main__" if file is None else Path(file).stem


def module_of(value: Any) -> str:
    """The module of a class or function, the same if it is run as a script and if it is imported."""
    return main_module() if value.__module__ == "__main__" else str(value.__module__)


def qualified_name(function: Any, what: str) -> str:
    """MODULE:FUNCTION of a function, or MODULE:CLASS of an object; the same in every process."""
    named = function if hasattr(function, "__qualname__") else type(function)
    if "<lambda>" in named.__qualname__:
        raise ExperimentError(f"{what} is a lambda; use a named function: results are stored by name", function)
    return f"{module_of(named)}:{named.__qualname__}"


def counter_of(given: Any) -> Counter:
    """A token counter, from a name in `oprag.token_counters` or from a function."""
    if isinstance(given, Counter):
        return given
    if given is approximate_tokens:
        given = "approximate"
    if isinstance(given, str):
        with as_experiment_errors():
            return counter_named(given)
    if not callable(given) or isinstance(given, type):
        known = ", ".join(COUNTERS)
        raise ExperimentError(f"a token counter must be a function or one of {known}, got {describe(given)}", given)
    if hasattr(given, "__self__"):
        # Methods of two objects share a name, but may count differently.
        raise ExperimentError(f"count_tokens must be a function of a module, got the method {describe(given)}", given)
    name = qualified_name(given, "count_tokens")
    return Counter(name, f"named {name}", given, partial(_counter_again, given))


def _counter_again(function: Any, _: str) -> Counter:
    return counter_of(function)


def tokenizer_of(name: str) -> NamedTokenizer:
    """A tokenizer by name, see `oprag.token_counters.tokenizer_named`."""
    with as_experiment_errors():
        return tokenizer_named(name)


@contextmanager
def as_experiment_errors() -> Iterator[None]:
    """Raise option errors as errors of the experiment."""
    try:
        yield
    except OptionError as error:
        raise ExperimentError(str(error), error.value) from error


def is_instance(given: Any, package: str, *names: str) -> bool:
    """`isinstance` by package and class name, which imports nothing."""
    return not isinstance(given, type) and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__
    )
