"""Names in experiments and on the command line: of providers, of functions and of token counters."""

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
"""The packaged model, asked how likely answers are."""

EMBEDDING_PROVIDERS = frozenset(
    (
        *("azure_ai", "azure_openai", "bedrock", "cohere", "google_genai", "google_vertexai", "huggingface"),
        *("mistralai", "ollama", "openai"),
    )
)
"""The providers of LangChain's `init_embeddings`: PROVIDER:MODEL with one of these is never a function."""

CHAT_PROVIDERS = EMBEDDING_PROVIDERS | frozenset(
    (
        *("anthropic", "anthropic_bedrock", "baseten", "bedrock_converse", "bedrock_mantle_anthropic"),
        *("bedrock_mantle_openai", "deepseek", "fireworks", "google_anthropic_vertex", "groq", "ibm", "langsmith"),
        *("litellm", "meta", "nvidia", "openrouter", "perplexity", "together", "upstage", "xai"),
    )
)
"""The same for `init_chat_model`."""


def find_function(name: str, providers: Collection[str] = ()) -> Callable[..., Any] | None:
    """The function that MODULE:FUNCTION means, None if it is not found; providers are never modules.

    Names of models look the same, so a name that means no function is not an error. Looking for a module imports its
    parents: only for names that the user typed or trusts.
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
    """The function that MODULE:FUNCTION means."""
    function = find_function(name)
    if function is None:
        raise ExperimentError(
            f"{name!r}: no such function can be imported; expected MODULE:FUNCTION, with the folder of the module in "
            "PYTHONPATH",
            name,
        )
    return function


def function_hint(name: Any, providers: Collection[str] = ()) -> str:
    """The end of the message that a model is unknown, for a name that looks like that of a function."""
    if not _looks_like_a_function(str(name), providers):
        return ""
    module, _, function = str(name).partition(":")
    if module in sys.modules:
        return f"; and the module {module!r} has no function {function!r}"
    return "; and no such function can be imported (is the folder of its module in PYTHONPATH?)"


def _looks_like_a_function(name: str, providers: Collection[str]) -> bool:
    module, _, function = name.partition(":")
    parts = (*module.split("."), *function.split("."))
    return module not in providers and all(part.isidentifier() for part in parts)


def call_factory(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """The result of the function of this name, whose errors are told with it."""
    try:
        return function(**settings)
    except OpragError:
        raise
    except Exception as error:
        raise ExperimentError(f"{name!r} raises {type(error).__name__}: {reason(error)}", name) from error


def qualified_name(function: Any, what: str) -> str:
    """MODULE:FUNCTION of a function, or of the class of an object; the same in every process."""
    named = function if hasattr(function, "__qualname__") else type(function)
    if "<lambda>" in named.__qualname__:
        raise ExperimentError(f"{what} is a lambda; give it a name, since its results are stored under it", function)
    return f"{named.__module__}:{named.__qualname__}"


def counter_name(given: Any) -> str:
    """The name of a token counter, by its form alone: what a name means is neither imported nor loaded."""
    if isinstance(given, Counter):
        return given.name
    if given is approximate_tokens:
        return "approximate"
    if callable(given) and not isinstance(given, type):
        name = qualified_name(given, "count_tokens")
        # Methods of two objects have one name, and may count differently.
        given = name if find_function(name) is given else given
    if isinstance(given, str) and (given in COUNTERS or given.partition(":")[2]):
        return given
    known = ", ".join((*COUNTERS, "MODULE:FUNCTION"))
    raise ExperimentError(f"a token counter must be one of {known}, got {describe(given)}", given)


def counter_of(given: Any) -> Counter:
    """A token counter by its name in `oprag.token_counters`, by MODULE:FUNCTION, or of such a function."""
    if isinstance(given, Counter):
        return given
    name = counter_name(given)
    kind, _, which = name.partition(":")
    if name in COUNTERS or (kind in (HUGGINGFACE, TIKTOKEN) and which.strip()):
        with _as_experiment_errors():
            return counter_named(name)
    return Counter(name, f"named {name}", load_function(name), counter_of)


def tokenizer_of(name: str) -> NamedTokenizer:
    """A tokenizer by its name, as `oprag.token_counters.tokenizer_named` takes it."""
    with _as_experiment_errors():
        return tokenizer_named(name)


@contextmanager
def _as_experiment_errors() -> Iterator[None]:
    try:
        yield
    except OptionError as error:
        raise ExperimentError(str(error), error.value) from error


def is_instance(given: Any, package: str, *names: str) -> bool:
    """`isinstance` by the names of a package and of classes in it, so that nothing is imported."""
    return not isinstance(given, type) and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__
    )
