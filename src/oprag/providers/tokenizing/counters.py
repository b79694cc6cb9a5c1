"""Token counters by their names: the unit in which a reader's context is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from oprag.errors import ExperimentError
from oprag.masking import describe
from oprag.providers import LOCAL
from oprag.providers.functions import required_function
from oprag.providers.tokenizing.tokenizers import HUGGINGFACE, TIKTOKEN, tokenizer_of
from oprag.tokens import TokenCounter, approximate_tokens, count

__all__ = ["COUNTERS", "Counter", "counter_of"]


def _words(text: str) -> int:
    return len(text.split())


_BUILT_IN: dict[str, TokenCounter] = {"approximate": approximate_tokens, "words": _words, "characters": len}

COUNTERS = (*_BUILT_IN, LOCAL, f"{TIKTOKEN}:ENCODING", f"{HUGGINGFACE}:PATH", "MODULE:FUNCTION")
"""What counters there are, as they are written."""


@dataclass(frozen=True)
class Counter:
    """Counts the tokens of a text, to be used as `count_tokens`.

    Attributes:
        name: What it is called in tables.
        identity: The same in every process; equal ones count alike.
    """

    name: str
    identity: str
    _count: Callable[[str], Any] = field(repr=False, compare=False)
    _local_files_only: bool = field(default=False, repr=False, compare=False)

    def __call__(self, text: str) -> int:
        """The tokens of a text.

        Raises:
            TokenizerError: What counts gave something else than a finite number from 0.
        """
        return count(text, self._count)

    def __reduce__(self) -> Any:
        """A counter that has a name goes to another process by it, and counts there with what it means there."""
        if self.identity.startswith("function "):
            return super().__reduce__()
        return partial(counter_of, local_files_only=self._local_files_only), (self.name,)


def counter_of(given: Any = "approximate", name: str | None = None, *, local_files_only: bool = False) -> Counter:
    """A token counter.

    Args:
        given: "approximate" (a quarter of the bytes, with nothing to install), "words", "characters", "local" (the
            tokenizer of the packaged embedder), "tiktoken:ENCODING", "huggingface:PATH" (a folder, a file
            `tokenizer.json`, or the name of a model in the hub), MODULE:FUNCTION; a function of a text, with a name;
            or a `Counter`, which stays as it is.
        name: What a function is called; counts of one name must come from one function.
        local_files_only: Reject names of the hub.

    Raises:
        ExperimentError: There is no such counter, or a function has no name.
        MissingExtraError: What it needs is not installed.

    Example:
        >>> counter_of("words")("Order is kept.")
        3
    """
    if isinstance(given, Counter):
        return given
    if given is approximate_tokens:
        given = "approximate"
    if isinstance(given, str):
        if name is not None:
            raise ExperimentError(f"the counter {given!r} has its name already, got {describe(name)}", name)
        return _named(given, local_files_only=local_files_only)
    if not callable(given) or isinstance(given, type):
        raise ExperimentError(f"a token counter must be one of {', '.join(COUNTERS)}, got {describe(given)}", given)
    if name is None or not name.strip():
        raise ExperimentError("a function that counts tokens needs a name, under which its counts are kept", given)
    return Counter(name, f"function {name}", given)


def _named(name: str, *, local_files_only: bool) -> Counter:
    if name in _BUILT_IN:
        return Counter(name, name, _BUILT_IN[name])
    kind, _, which = name.partition(":")
    if name == LOCAL or (kind in (HUGGINGFACE, TIKTOKEN) and which.strip()):
        tokenizer = tokenizer_of(name, local_files_only=local_files_only)
        return Counter(name, tokenizer.identity, tokenizer.count, local_files_only)
    if not which:
        raise ExperimentError(f"a token counter must be one of {', '.join(COUNTERS)}, got {describe(name)}", name)
    return Counter(name, f"named {name}", required_function(name))
