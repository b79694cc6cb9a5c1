"""Tokenizers and token counters of experiments: the named ones, and functions of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oprag.compare.providers.functions import required_function
from oprag.errors import ExperimentError, OptionError
from oprag.masking import describe
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

__all__ = ["COUNTER_NAMES", "counter_of", "tokenizer_of"]

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
