"""Recursive splitting along paragraphs, lines and words, with exact character offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from oprag.errors import MissingExtraError, TokenizerError
from oprag.retrieval.split import LONE_SURROGATE, TokenWindow, check_split, offsets_of

__all__ = ["split_recursive"]

# The planes behind the basic one: as many code points as a text rarely has characters, and none of them is white space
# or half of a surrogate pair.
_FIRST_CODE = 0x10000
_PERIOD = 0x100000
_SEPARATORS = "\n "


def split_recursive(text: str, tokenizer: Any, size: int = 1000, overlap: int = 100) -> list[TokenWindow]:
    r"""Cut a text between paragraphs where that fits `size` tokens, else between lines, words or characters.

    The windows are those of LangChain's `RecursiveCharacterTextSplitter` with tokens for its length, and two things
    that it drops. One is the white space at their borders: without overlap the windows joined give the text back. The
    other are true offsets: its `add_start_index` searches for a window, and finds an earlier copy of it, or nothing.

    Args:
        text: Any text.
        tokenizer: What `split_tokens` takes.
        size: The most tokens of a window, those of its pieces added up; at least 1. A character that is more tokens
            stands alone, and white space between two windows is added to the second one without being counted.
        overlap: The most tokens that a window shares with the next one, in whole pieces; less than `size`.

    Returns:
        The windows in the order of the text; none for a text of nothing but white space. `tokens` are those of the
        window's own text.

    Raises:
        OptionError: `size` or `overlap` is out of range.
        ChunkError: `text` is no string.
        TokenizerError: The tokenizer is of another kind, or gives no offsets.
        MissingExtraError: The package `langchain-text-splitters` is not installed.

    Example:
        >>> import re
        >>> words = lambda text: [match.span() for match in re.finditer(r"\w+", text)]
        >>> [window.text for window in split_recursive("one two\n\nthree four five six", words, size=3, overlap=0)]
        ['one two', '\n\nthree four five', ' six']
    """
    check_split(text, size, overlap)
    splitter_class = _splitter_class()
    coded = _Coded(text, _counter(tokenizer))
    if not text or text.isspace():
        return []
    splitter = splitter_class(
        chunk_size=size, chunk_overlap=overlap, length_function=coded.tokens, strip_whitespace=False
    )
    return [
        TokenWindow(text[start:end], start, end, coded.count(text[start:end]))
        for start, end in _without_gaps(text, coded.places(splitter.split_text(coded.text)), overlap)
    ]


def _without_gaps(text: str, places: Iterable[tuple[int, int]], overlap: int) -> list[tuple[int, int]]:
    """The places of windows, each with the white space before it, and the last one with what is left of the text."""
    closed: list[tuple[int, int]] = []
    behind = 0
    for start, end in places:
        if not text[start:end].isspace():
            # Pieces of no token at all would be shared without an overlap too.
            closed.append((min(start, behind) if overlap else behind, end))
            behind = end
    closed[-1] = (closed[-1][0], len(text))
    return closed


class _Coded:
    """A copy of a text in which each character but the separators says where it stands.

    The splitter is given the copy, and so each piece that it makes leads back to its place.

    Args:
        text: The text.
        count: Counts the tokens of a text.
    """

    def __init__(self, text: str, count: Callable[[str], int]) -> None:
        self._original = text
        self.count = count
        characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        codes = _FIRST_CODE + np.arange(len(text), dtype="<u4") % _PERIOD
        for separator in _SEPARATORS:
            codes[characters == ord(separator)] = ord(separator)
        self.text = codes.tobytes().decode("utf-32-le")

    def tokens(self, piece: str) -> int:
        """The tokens of the original of a piece."""
        place = _place(piece)
        if place is None:
            return self.count(piece)
        # In a text of more than a million characters there may be several places. They are told apart by the white
        # space; where that is the same too, the most tokens keep every window small enough.
        starts = [
            start
            for start in range(place, len(self._original), _PERIOD)
            if len(self._original) <= _PERIOD or self.text.startswith(piece, start)
        ]
        return max(self.count(self._original[start : start + len(piece)]) for start in starts)

    def places(self, pieces: list[str]) -> Iterator[tuple[int, int]]:
        """Start and end of each piece that the splitter gave, but of those with nothing in them but separators."""
        # No window begins behind the end of the one before it.
        latest = 0
        for piece in pieces:
            place = _place(piece)
            if place is None:
                latest += len(piece)
                continue
            start = place + (latest - place) // _PERIOD * _PERIOD
            latest = start + len(piece)
            yield start, latest


def _place(piece: str) -> int | None:
    """Where a piece of coded text begins, as far as its first coded character tells; None without one."""
    for index, letter in enumerate(piece):
        if letter not in _SEPARATORS:
            return (ord(letter) - _FIRST_CODE - index) % _PERIOD
    return None


def _counter(tokenizer: Any) -> Callable[[str], int]:
    """Counts the tokens of a text, each text once: a word occurs hundreds of times in a book."""
    offsets = offsets_of(tokenizer)
    known: dict[str, int] = {}

    def count(text: str) -> int:
        tokens = known.get(text)
        if tokens is None:
            found = offsets(LONE_SURROGATE.sub("\ufffd", text))
            try:
                tokens = known[text] = sum(1 for _ in found)
            except TypeError as error:
                raise TokenizerError(f"a tokenizer function must give (start, end) pairs: {error}", found) from error
        return tokens

    return count


def _splitter_class() -> Any:
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError as error:
        raise MissingExtraError("The recursive splitter", "recursive") from error
    return RecursiveCharacterTextSplitter
