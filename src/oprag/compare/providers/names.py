"""Names of providers, functions and token counters in experiments and on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from oprag.errors import ExperimentError, OpragError, OptionError
from oprag.masking import describe, reason
from oprag.token_counters import (
    COUNTERS,
    HUGGINGFACE,
    LOCAL,
    TIKTOKEN,
    Counter,
    NamedTokenizer,
    counter_named,
    tokenizer_named,
)
from oprag.tokens import approximate_tokens

__all__ = [
    "CHAT_PROVIDERS",
    "EMBEDDING_PROVIDERS",
    "LOCAL",
    "LOCAL_LIKELIHOOD",
    "call_factory",
    "counter_name",
    "counter_of",
    "find_function",
    "function_hint",
    "is_instance",
    "load_function",
    "qualified_name",
    "tokenizer_of",
]

LOCAL_LIKELIHOOD = f"gguf:{LOCAL}"
"""The packaged model, used to compute likelihoods."""

EMBEDDING_PROVIDERS = frozenset(
    (
        *("azure_ai", "azure_openai", "bedrock", "cohere", "google_genai", "google_vertexai", "huggingface"),
        *("mistralai", "ollama", "openai"),
    )
)
"""The providers of LangChain's `init_embeddings`; a name that starts with one of them is never MODULE:FUNCTION."""

CHAT_PROVIDERS = EMBEDDING_PROVIDERS | frozenset(
    (
        *("anthropic", "anthropic_bedrock", "baseten", "bedrock_converse", "bedrock_mantle_anthropic"),
        *("bedrock_mantle_openai", "deepseek", "fireworks", "google_anthropic_vertex", "groq", "ibm", "langsmith"),
        *("litellm", "meta", "nvidia", "openrouter", "perplexity", "together", "upstage", "xai"),
    )
)
"""The providers of LangChain's `init_chat_model`."""


def find_function(name: str, providers: Collection[str] = ()) -> Callable[..., Any] | None:
    """Import the function MODULE:FUNCTION; None if not found, or if MODULE is one of the providers.

    PROVIDER:MODEL has the same form, so a missing function is not an error. The lookup imports the module and its
    parent packages: use it only with names that the user typed or trusts.
    """
    module, _, function = name.partition(":")
    if not _looks_like_a_function(name, providers):
        return None
    try:
        found: Any = import_module(module)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            return None
        raise ExperimentError(f"{name!r}: the module cannot be imported: {reason(error)}", name) from error
    for part in function.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def load_function(name: str) -> Callable[..., Any]:
    """Import the function MODULE:FUNCTION; raises an ExperimentError if not found."""
    function = find_function(name)
    if function is None:
        raise ExperimentError(
            f"cannot import the function {name!r}; expected MODULE:FUNCTION, with the folder of MODULE in PYTHONPATH",
            name,
        )
    return function


def function_hint(name: Any, providers: Collection[str] = ()) -> str:
    """Suffix for the message that a model is unknown, if its name has the form MODULE:FUNCTION."""
    if not _looks_like_a_function(str(name), providers):
        return ""
    module, _, function = str(name).partition(":")
    if module in sys.modules:
        return f"; and the module {module!r} has no function {function!r}"
    return f"; and the module {module!r} cannot be imported (is its folder in PYTHONPATH?)"


def _looks_like_a_function(name: str, providers: Collection[str]) -> bool:
    module, _, function = name.partition(":")
    parts = (*module.split("."), *function.split("."))
    return module not in providers and all(part.isidentifier() for part in parts)


def call_factory(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Call a function with settings; errors are raised with the name of the function."""
    try:
        return function(**settings)
    except OpragError:
        raise
    except Exception as error:
        raise ExperimentError(f"{name!r} raises {type(error).__name__}: {reason(error)}", name) from error


def qualified_name(function: Any, what: str) -> str:
    """MODULE:FUNCTION of a function, or MODULE:CLASS of an object; the same in every process."""
    named = function if hasattr(function, "__qualname__") else type(function)
    if "<lambda>" in named.__qualname__:
        raise ExperimentError(f"{what} is a lambda; use a named function: results are stored by name", function)
    return f"{named.__module__}:{named.__qualname__}"


def counter_name(given: Any) -> str:
    """The name of a token counter; checks only its form, without importing or loading anything."""
    if isinstance(given, Counter):
        return given.name
    if given is approximate_tokens:
        return "approximate"
    if callable(given) and not isinstance(given, type):
        name = qualified_name(given, "count_tokens")
        # A bound method has no importable name: methods of two objects share a name but may count differently.
        given = name if find_function(name) is given else given
    if isinstance(given, str) and (given in COUNTERS or given.partition(":")[2]):
        return given
    known = ", ".join((*COUNTERS, "MODULE:FUNCTION"))
    raise ExperimentError(f"a token counter must be one of {known}, got {describe(given)}", given)


def counter_of(given: Any) -> Counter:
    """A token counter, from a name in `oprag.token_counters`, from MODULE:FUNCTION, or from an importable function."""
    if isinstance(given, Counter):
        return given
    name = counter_name(given)
    kind, _, which = name.partition(":")
    if name in COUNTERS or (kind in (HUGGINGFACE, TIKTOKEN) and which.strip()):
        with _as_experiment_errors():
            return counter_named(name)
    return Counter(name, f"named {name}", load_function(name), counter_of)


def tokenizer_of(name: str) -> NamedTokenizer:
    """A tokenizer by name, see `oprag.token_counters.tokenizer_named`."""
    with _as_experiment_errors():
        return tokenizer_named(name)


@contextmanager
def _as_experiment_errors() -> Iterator[None]:
    try:
        yield
    except OptionError as error:
        raise ExperimentError(str(error), error.value) from error


def is_instance(given: Any, package: str, *names: str) -> bool:
    """`isinstance` by package and class name, which imports nothing."""
    return not isinstance(given, type) and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__
    )
