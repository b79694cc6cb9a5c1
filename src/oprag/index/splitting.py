"""Splits texts into chunks with exact character offsets: by tokens, by words, or recursively."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise
from typing import Any, Literal, NamedTuple, get_args

from oprag._internal.masking import describe
from oprag.errors import ChunkError, MissingSourceError, OptionError
from oprag.index.tokenizers import counter_of, offsets_of, starts_of
from oprag.options import check_choice, check_count
from oprag.positions.source_names import source_name

__all__ = [
    "Split",
    "Splitter",
    "TokenWindow",
    "pieces_of",
    "split_recursive",
    "split_tokens",
]


class TokenWindow(NamedTuple):
    """A window over the tokens of a text.

    Attributes:
        text: The text of the window, `source_text[start:end]`.
        start: Start offset in characters.
        end: End offset (exclusive).
        tokens: Number of tokens of the whole text that start in the window. The window alone may have a different
            number of tokens, because tokenizers merge across its borders.
    """

    text: str
    start: int
    end: int
    tokens: int


def split_tokens(text: str, tokenizer: Any, chunk_size: int = 128, chunk_overlap: int = 0) -> list[TokenWindow]:
    """Split a text into windows of `chunk_size` tokens.

    Without overlap, the concatenated windows equal the text: characters between two tokens belong to the window before
    them. A character of several tokens is never split; its window is shorter instead.

    Args:
        text: Any text.
        tokenizer: A `tokenizers.Tokenizer`, a Hugging Face fast tokenizer, a tiktoken encoding, or a function that
            returns the character offsets (start, end) of each token of a text. It is not modified, and its truncation
            and padding settings are ignored.
        chunk_size: Tokens in a window; at least 1.
        chunk_overlap: Tokens that a window shares with the next window; less than `chunk_size`.

    Returns:
        The windows in the order of the text; empty for an empty text.

    Raises:
        OptionError: `chunk_size` or `chunk_overlap` is out of range.
        ChunkError: `text` is not a string.
        TokenizerError: The tokenizer is unsupported, or its offsets are outside the text or not ascending.

    Example:
        >>> import re
        >>> words = lambda text: [match.span() for match in re.finditer(r"[a-z]+", text)]
        >>> [window.text for window in split_tokens("one two three four", words, chunk_size=2)]
        ['one two ', 'three four']
    """
    _check_split(text, chunk_size, chunk_overlap)
    return list(_windows(text, starts_of(text, offsets_of(tokenizer)), chunk_size, chunk_overlap)) if text else []


def _check_split(text: Any, chunk_size: Any, chunk_overlap: Any) -> None:
    check_count("chunk_size", chunk_size, optional=False)
    if type(chunk_overlap) is not int or not 0 <= chunk_overlap < chunk_size:
        raise OptionError(
            f"chunk_overlap must be an integer >= 0 and less than chunk_size={chunk_size}, "
            f"got {describe(chunk_overlap)}",
            chunk_overlap,
        )
    if not isinstance(text, str):
        raise ChunkError(f"the text to split must be a string, got {type(text).__name__}", text)


def _windows(text: str, starts: Sequence[int], size: int, overlap: int) -> Iterator[TokenWindow]:
    # The tokens between which a window may end: those of one character have the same start.
    borders = [number for number, start in enumerate(starts) if not number or start > starts[number - 1]]
    borders.append(len(starts))

    def last_of(first: int) -> int:
        return min(max(bisect_right(borders, borders[first] + size) - 1, first + 1), len(borders) - 1)

    first = begin = 0
    while True:
        last = last_of(first)
        end = starts[borders[last]] if last < len(borders) - 1 else len(text)
        yield TokenWindow(text[begin:end], begin, end, borders[last] - borders[first])
        if end == len(text):
            return
        # As many tokens back as asked for, but not to a window that would add nothing.
        first = bisect_left(borders, borders[last] - overlap)
        while first < last and last_of(first) <= last:
            first += 1
        begin = starts[borders[first]]


def split_recursive(text: str, tokenizer: Any, chunk_size: int = 1000, chunk_overlap: int = 100) -> list[TokenWindow]:
    r"""Split a text at paragraphs if they fit in `chunk_size` tokens, else at lines, words or characters.

    The windows are those of LangChain's `RecursiveCharacterTextSplitter` with its length in tokens, with two
    differences. White space at their borders is preserved: without overlap, the concatenated windows equal the text.
    And offsets are exact: `add_start_index` searches for each window, and may find an earlier copy of it, or nothing.

    Args:
        text: Any text.
        tokenizer: A tokenizer as for `split_tokens`.
        chunk_size: Maximum tokens of a window, as the sum over its pieces; at least 1. A character of more tokens
            becomes a separate window, and white space between two windows is added to the second one without being
            counted.
        chunk_overlap: Maximum tokens that a window shares with the next window, in whole pieces; less than
            `chunk_size`.

    Returns:
        The windows in the order of the text; empty for a text of white space only. `tokens` counts the tokens of the
        window's own text.

    Raises:
        OptionError: `chunk_size` or `chunk_overlap` is out of range.
        ChunkError: `text` is not a string.
        TokenizerError: The tokenizer is unsupported, or has no offsets.

    Example:
        >>> import re
        >>> words = lambda text: [match.span() for match in re.finditer(r"\w+", text)]
        >>> windows = split_recursive("one two\n\nthree four five six", words, chunk_size=3, chunk_overlap=0)
        >>> [window.text for window in windows]
        ['one two', '\n\nthree four five', ' six']
    """
    _check_split(text, chunk_size, chunk_overlap)
    count = counter_of(tokenizer)
    if not text or text.isspace():
        return []
    spans = _Recursive(text, count, chunk_size, chunk_overlap).split(0, len(text), ["\n\n", "\n", " ", ""])
    return [
        TokenWindow(text[start:end], start, end, count(text[start:end]))
        for start, end in _without_gaps(text, spans, chunk_overlap)
    ]


class _Recursive(NamedTuple):
    """Finds the windows of LangChain's `RecursiveCharacterTextSplitter`, which does not report offsets with tokens."""

    text: str
    count: Callable[[str], int]
    size: int
    overlap: int

    def split(self, start: int, end: int, separators: Iterable[str]) -> Iterator[tuple[int, int]]:
        """Cut before each of the first separator in the text; split parts that are too long at the next ones."""
        separator, *finer = dropwhile(lambda one: self.text.find(one, start, end) < 0, separators)
        found = (match.start() for match in re.compile(re.escape(separator)).finditer(self.text, start, end))
        short: list[tuple[int, int]] = []
        for part in pairwise([start, *(cut for cut in found if start < cut < end), end]):
            if self._tokens(part) < self.size:
                short.append(part)
                continue
            yield from self._merged(short)
            short = []
            yield from self.split(*part, finer) if finer else [part]
        yield from self._merged(short)

    def _merged(self, parts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Merge adjacent parts to windows that share whole parts."""
        window: deque[tuple[int, int]] = deque()
        total = 0
        for part in parts:
            tokens = self._tokens(part)
            if window and total + tokens > self.size:
                yield window[0][0], window[-1][1]
                while total > self.overlap or 0 < total > self.size - tokens:
                    total -= self._tokens(window.popleft())
            window.append(part)
            total += tokens
        if window:
            yield window[0][0], window[-1][1]

    def _tokens(self, part: tuple[int, int]) -> int:
        return self.count(self.text[slice(*part)])


def _without_gaps(text: str, places: Iterable[tuple[int, int]], overlap: int) -> list[tuple[int, int]]:
    """Extend each window to include the white space before it, and the last window to the end of the text."""
    extended: list[tuple[int, int]] = []
    last_end = 0
    for start, end in places:
        if not text[start:end].isspace():
            # Without overlap, start exactly at the last end: the splitter can share pieces that have no tokens.
            extended.append((min(start, last_end) if overlap else last_end, end))
            last_end = end
    extended[-1] = (extended[-1][0], len(text))
    return extended


Splitter = Literal["tokens", "words", "recursive"]

_SIZES: dict[str, int] = {"tokens": 128, "words": 300, "recursive": 1000}
_WORD = re.compile(r"\S+")


class Split(NamedTuple):
    """How sources are split, as in `DocumentIndex.from_texts`."""

    splitter: Splitter = "tokens"
    size: int | None = None  # in tokens or words
    overlap: int | None = None

    def complete(self) -> Split:
        """Return a copy with the defaults of the splitter filled in."""
        check_choice("splitter", self.splitter, get_args(Splitter))
        size = _SIZES[self.splitter] if self.size is None else self.size
        # An invalid size is rejected later by the splitter.
        overlap = size // 10 if self.splitter == "recursive" and isinstance(size, int) else 0
        return Split(self.splitter, size, overlap if self.overlap is None else self.overlap)


def pieces_of(
    sources: Mapping[Any, str | Sequence[str]], tokenizer: Any, split: Split
) -> Iterator[tuple[TokenWindow, dict[str, Any]]]:
    """Split whole sources into windows with their metadata, one source after the other.

    The metadata are `source`, `chunk_index`, `start_index` and `end_index`; for a source with pages also `page`, from
    1, to which the offsets are then relative.
    """
    if not isinstance(sources, Mapping):
        raise ChunkError(f"sources must map names to texts, got {type(sources).__name__}", sources)
    split = split.complete()
    function = split_recursive if split.splitter == "recursive" else split_tokens
    tokenizer = _words if split.splitter == "words" else tokenizer
    for name, content in sources.items():
        source = source_name(name)
        if source is None:
            raise MissingSourceError(f"a source must be named by a non-empty string, got {describe(name)}", name)
        paged = isinstance(content, list | tuple)
        number = 0
        for page, text in enumerate(content if paged else [content], 1):
            for window in function(text, tokenizer, split.size, split.overlap):  # type: ignore[arg-type]
                place = {"source": source, "chunk_index": number, **({"page": page} if paged else {})}
                yield window, {**place, "start_index": window.start, "end_index": window.end}
                number += 1


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the words of a text: runs without white space."""
    return (word.span() for word in _WORD.finditer(text))
