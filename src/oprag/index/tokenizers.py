"""Tokenizers: by name, as in profiles, experiments and on the command line, and the offsets of their tokens."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from operator import index
from pathlib import Path
from typing import Any

from oprag._internal.lazy import import_extra
from oprag._internal.masking import describe, reason
from oprag._internal.tokens import TokenCounter, approximate_tokens, count, whole_characters
from oprag.errors import MissingExtraError, OptionError, TokenizerError

__all__ = [
    "BUILT_IN",
    "COUNTERS",
    "HUGGINGFACE",
    "LOCAL",
    "TIKTOKEN",
    "NamedTokenizer",
    "OffsetTokenizer",
    "counter_named",
    "counter_of",
    "offsets_of",
    "starts_of",
    "tokenizer_named",
]

LOCAL, HUGGINGFACE, TIKTOKEN = "local", "huggingface", "tiktoken"


def _words(text: str) -> int:
    return len(text.split())


BUILT_IN: dict[str, TokenCounter] = {"approximate": approximate_tokens, "words": _words, "characters": len}
"""Token counters that need no tokenizer."""

COUNTERS = (*BUILT_IN, LOCAL, f"{TIKTOKEN}:ENCODING", f"{HUGGINGFACE}:PATH")
"""The names of token counters, with placeholders in capitals."""

_HASH_DIGITS = 16


@dataclass(frozen=True)
class NamedTokenizer:
    """A token counter with an identity, for the option `count_tokens`, and its tokenizer."""

    name: str  # in files and tables
    identity: str  # the same in all processes; counters with the same identity count identically
    _count: Callable[[str], Any] = field(repr=False, compare=False)
    tokenizer: Any = field(default=None, repr=False, compare=False)  # None if it only counts
    _made_by: Callable[[str], NamedTokenizer] | None = field(default=None, repr=False, compare=False)

    def __call__(self, text: str) -> int:
        """Number of tokens of a text, without special tokens."""
        return count(text, self._count)

    def __reduce__(self) -> Any:
        # Pickled by name and loaded again: tokenizers are large, and some cannot be pickled.
        return super().__reduce__() if self._made_by is None else (self._made_by, (self.name,))


def counter_named(name: str, *, local_files_only: bool = False) -> NamedTokenizer:
    """Return the token counter with this name.

    Example:
        >>> counter_named("words")("Order is kept.")
        3
    """
    if name in BUILT_IN:
        return NamedTokenizer(name, name, BUILT_IN[name], _made_by=counter_named)
    kind, _, which = name.partition(":")
    if name == LOCAL or (kind in (HUGGINGFACE, TIKTOKEN) and which.strip()):
        return tokenizer_named(name, local_files_only=local_files_only)
    raise OptionError(f"a token counter must be one of {', '.join(COUNTERS)}, got {describe(name)}", name)


@cache
def tokenizer_named(name: str, *, local_files_only: bool = False) -> NamedTokenizer:
    """Return the tokenizer with this name, loaded once; code from a model repository is never run."""
    kind, _, which = name.partition(":")
    counter: Callable[[str], int]
    if name == LOCAL:
        from oprag.embedding.static import local_embedder

        embedder = local_embedder()
        identity, counter, tokenizer = f"{LOCAL}({embedder.name})", embedder.count_tokens, embedder.tokenizer
    elif kind == HUGGINGFACE and which.strip():
        identity, counter, tokenizer = _of_hugging_face(which, local_files_only=local_files_only)
    elif kind == TIKTOKEN and which.strip():
        identity, counter, tokenizer = _of_tiktoken(which)
    else:
        raise OptionError(
            f"a tokenizer must be {LOCAL}, {HUGGINGFACE}:PATH or {TIKTOKEN}:ENCODING, got {describe(name)}", name
        )
    made_by = partial(tokenizer_named, local_files_only=local_files_only)
    return NamedTokenizer(name, identity, counter, tokenizer, made_by)


def _of_hugging_face(which: str, *, local_files_only: bool) -> tuple[str, Callable[[str], int], Any]:
    path = Path(which).expanduser()
    # On Windows, testing a path on a network share sends the user's credentials to its host. Unlike pathlib, os.path
    # returns False for a name that the system rejects.
    exists = not (local_files_only and path.drive.startswith("\\\\")) and os.path.exists(path)  # noqa: PTH110
    if local_files_only and not exists:
        raise OptionError(
            f"the tokenizer {describe(which)} is not a local folder or file, and tokenizers are not downloaded here; "
            "download it and give the path of its folder",
            which,
        )
    kind = import_extra("tokenizers", f"The tokenizer {describe(which)}", "local").Tokenizer
    file = path / "tokenizer.json" if exists and path.is_dir() else path
    try:
        tokenizer = kind.from_file(str(file)) if exists else kind.from_pretrained(which)
    except Exception as error:
        raise OptionError(f"the tokenizer {describe(which)} cannot be loaded: {reason(error)}", which) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # Hash of the content, since the path differs between machines.
    digest = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()[:_HASH_DIGITS]
    return (
        f"{HUGGINGFACE} {digest}",
        lambda text: len(tokenizer.encode(whole_characters(text), add_special_tokens=False).ids),
        tokenizer,
    )


def _of_tiktoken(which: str) -> tuple[str, Callable[[str], int], Any]:
    try:
        import tiktoken
    except ImportError as error:
        raise MissingExtraError(f"The tokenizer {describe(which)}", TIKTOKEN, "pip install tiktoken") from error
    try:
        encoding = tiktoken.get_encoding(which)
    except Exception as error:
        known = ", ".join(tiktoken.list_encoding_names())
        raise OptionError(
            f"the encoding {describe(which)} cannot be loaded: {reason(error)}; tiktoken supports {known}, and "
            "downloads an encoding on first use",
            which,
        ) from error
    return f"{TIKTOKEN}({which})", lambda text: len(encoding.encode_ordinary(text)), encoding


OffsetTokenizer = Callable[[str], Iterable[tuple[int, int]]]


def offsets_of(tokenizer: Any) -> OffsetTokenizer:
    """A function that returns the offsets of each token of a text."""
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(tokenizer, "no_truncation"):
        if tokenizer.truncation is not None or tokenizer.padding is not None:
            # Change a copy, because the caller's embedder may depend on both.
            tokenizer = type(tokenizer).from_str(tokenizer.to_str())
            tokenizer.no_truncation()
            tokenizer.no_padding()
        return lambda text: tokenizer.encode(text, add_special_tokens=False).offsets
    if hasattr(tokenizer, "decode_with_offsets"):
        return partial(_tiktoken_offsets, tokenizer)
    if callable(tokenizer):
        return tokenizer  # type: ignore[no-any-return]
    raise TokenizerError(
        "expected a tokenizers.Tokenizer, a Hugging Face fast tokenizer, a tiktoken encoding or a function that "
        f"returns offsets, got {type(tokenizer).__name__}",
        tokenizer,
    )


def _tiktoken_offsets(encoding: Any, text: str) -> list[tuple[int, int]]:
    _, starts = encoding.decode_with_offsets(encoding.encode_ordinary(text))
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def starts_of(text: str, offsets: OffsetTokenizer) -> list[int]:
    """The start of each token; rejects offsets that are not ascending or outside the text."""
    found = offsets(whole_characters(text))
    try:
        spans = [(index(start), index(end)) for start, end in found]
    except (TypeError, ValueError) as error:
        raise TokenizerError(f"a tokenizer function must return pairs of integers: {error}", found) from error
    starts = [start for start, _ in spans]
    if any(not before <= start <= end <= len(text) for before, (start, end) in zip([0, *starts], spans, strict=False)):
        raise TokenizerError(
            f"token offsets must be ascending and within {len(text)} characters: {describe(spans)}", spans
        )
    return starts


def counter_of(tokenizer: Any) -> Callable[[str], int]:
    """A function that counts the tokens of a text, and caches the counts: a word occurs hundreds of times in a book."""
    offsets = offsets_of(tokenizer)
    return cache(lambda text: len(starts_of(text, offsets)))
