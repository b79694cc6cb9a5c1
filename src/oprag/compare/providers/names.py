"""Names in experiments and on the command line: providers, functions and token counters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
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
    "COUNTER_NAMES",
    "EMBEDDING_PROVIDERS",
    "LOCAL",
    "counter_of",
    "descends",
    "function_named",
    "made_by",
    "no_function",
    "required_function",
    "tokenizer_of",
]

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


def function_named(name: str, providers: Collection[str] = ()) -> Callable[..., Any] | None:
    """The function that a name means; None where there is no such module, or it has no such function.

    Names of providers and models look the same, so a name that means no function is no error. Looking for a module
    imports its parents: only for names that the user typed or trusts.

    Args:
        name: MODULE:FUNCTION; the module must be found where Python looks for modules.
        providers: Names before the colon that are never modules.

    Raises:
        ExperimentError: There is the module, and it cannot be imported.
    """
    module, _, function = name.partition(":")
    if module in providers or not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        return None
    try:
        # What is imported already need not be found again: that may be impossible, as for the program itself.
        if module not in sys.modules and find_spec(module) is None:
            return None
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return None
        raise ExperimentError(f"{name!r}: the module cannot be imported: {reason(error)}", name) from error
    except Exception as error:
        raise ExperimentError(f"{name!r}: the module cannot be imported: {reason(error)}", name) from error
    for part in function.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


def no_function(name: Any, providers: Collection[str] = ()) -> str:
    """What to add to the message that there is no such model, for a name that looks like that of a function."""
    module, _, function = str(name).partition(":")
    if module in providers or not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        return ""
    if module in sys.modules:
        return f"; nor has the module {module!r} a function {function!r}"
    return "; nor does Python find such a function (is the folder of its module in PYTHONPATH?)"


def required_function(name: str) -> Callable[..., Any]:
    """The function that a name means.

    Args:
        name: MODULE:FUNCTION.

    Raises:
        ExperimentError: There is none.
    """
    function = function_named(name)
    if function is None:
        raise ExperimentError(
            f"{name!r}: Python finds no such function; give MODULE:FUNCTION, and put the folder of the module into "
            "PYTHONPATH",
            name,
        )
    return function


def made_by(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """What a function of the user's own makes.

    Args:
        name: The name that it was given by, for the message.
        function: The function.
        settings: Its arguments.

    Raises:
        ExperimentError: It raises.
    """
    try:
        return function(**settings)
    except OpragError:
        raise
    except Exception as error:
        raise ExperimentError(f"{name!r} raises {type(error).__name__}: {reason(error)}", name) from error


COUNTER_NAMES = (*COUNTERS, "MODULE:FUNCTION")
"""The token counters that an experiment can name."""


def counter_of(given: Any = "approximate", name: str | None = None) -> Counter:
    """A token counter.

    Args:
        given: A name of `oprag.token_counters`, MODULE:FUNCTION; a function of a text, with a name; or a `Counter`,
            which is returned as it is.
        name: The name of a function; counts of one name must come from one function.

    Raises:
        ExperimentError: The counter is unknown or cannot be loaded, or a function has no name.
        MissingExtraError: Its package is not installed.
    """
    if isinstance(given, Counter):
        return given
    if given is approximate_tokens:
        given = "approximate"
    if isinstance(given, str):
        if name is not None:
            raise ExperimentError(f"the counter {given!r} has its name already, got {describe(name)}", name)
        return _named(given)
    if not callable(given) or isinstance(given, type):
        raise ExperimentError(
            f"a token counter must be one of {', '.join(COUNTER_NAMES)}, got {describe(given)}", given
        )
    if name is None or not name.strip():
        raise ExperimentError("a function that counts tokens needs a name, under which its counts are kept", given)
    return Counter(name, f"function {name}", given)


def tokenizer_of(name: str) -> NamedTokenizer:
    """A tokenizer by its name; see `oprag.token_counters.tokenizer_named`.

    Raises:
        ExperimentError: The name is unknown, or the tokenizer cannot be loaded.
        MissingExtraError: Its package is not installed.
    """
    with _as_experiment_errors():
        return tokenizer_named(name)


def _named(name: str) -> Counter:
    kind, _, which = name.partition(":")
    if name in COUNTERS or (kind in (HUGGINGFACE, TIKTOKEN) and which.strip()) or name == LOCAL:
        with _as_experiment_errors():
            return counter_named(name)
    if not which:
        raise ExperimentError(f"a token counter must be one of {', '.join(COUNTER_NAMES)}, got {describe(name)}", name)
    return Counter(name, f"named {name}", required_function(name), counter_of)


@contextmanager
def _as_experiment_errors() -> Iterator[None]:
    try:
        yield
    except OptionError as error:
        raise ExperimentError(str(error), error.value) from error


def descends(given: Any, package: str, *names: str) -> bool:
    """Whether an object is of a class, or of one derived from it.

    Args:
        given: The object; a class is none.
        package: The package that the class comes from, such as "langchain_core".
        names: The class, or several.
    """
    return not isinstance(given, type) and any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__
    )
