"""Splits texts into chunks with exact character offsets: by tokens, by words, or recursively."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from oprag.errors import ChunkError, MissingExtraError, MissingSourceError, OptionError, TokenizerError
from oprag.masking import describe
from oprag.options import check_choice
from oprag.positions.sources import source_name
from oprag.positions.values import whole

__all__ = [
    "OffsetTokenizer",
    "Piece",
    "Split",
    "Splitter",
    "TokenWindow",
    "offsets_of",
    "pieces_of",
    "split_recursive",
    "split_tokens",
]

OffsetTokenizer = Callable[[str], Iterable[tuple[int, int]]]

# A lone surrogate is not a character; tokenizers reject it, or convert it to text of another length.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


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
    if not text:
        return []
    starts = _starts(text, offsets_of(tokenizer)(LONE_SURROGATE.sub("\ufffd", text)))
    return list(_windows(text, starts, chunk_size, chunk_overlap))


def _check_split(text: Any, chunk_size: Any, chunk_overlap: Any) -> None:
    if type(chunk_size) is not int or chunk_size < 1:
        raise OptionError(f"chunk_size must be an integer >= 1, got {describe(chunk_size)}", chunk_size)
    if type(chunk_overlap) is not int or not 0 <= chunk_overlap < chunk_size:
        raise OptionError(
            f"chunk_overlap must be an integer >= 0 and less than chunk_size={chunk_size}, "
            f"got {describe(chunk_overlap)}",
            chunk_overlap,
        )
    if not isinstance(text, str):
        raise ChunkError(f"the text to split must be a string, got {type(text).__name__}", text)


def _windows(text: str, starts: Sequence[int], size: int, overlap: int) -> Iterable[TokenWindow]:
    first = begin = 0
    while True:
        last = _border(starts, first, size)
        end = starts[last] if last < len(starts) else len(text)
        yield TokenWindow(text[begin:end], begin, end, last - first)
        if end == len(text):
            return
        first = _next_first(starts, first, last, size, overlap)
        begin = starts[first]


def _border(starts: Sequence[int], first: int, size: int) -> int:
    """Return the token at which the window from token `first` ends: at most `size` tokens, and between characters."""
    cut = first + size
    if cut >= len(starts):
        return len(starts)
    while cut > first and starts[cut] == starts[cut - 1]:
        cut -= 1
    if starts[cut] > starts[first]:
        return cut
    # A single character has more than `size` tokens.
    cut = first + size
    while cut < len(starts) and starts[cut] == starts[first]:
        cut += 1
    return cut


def _next_first(starts: Sequence[int], first: int, last: int, size: int, overlap: int) -> int:
    """Return the first token of the next window, `overlap` tokens back, or fewer if the window would add nothing."""
    following = max(first + 1, last - overlap)
    while following > first + 1 and starts[following] == starts[following - 1]:
        following -= 1
    while following < last and (starts[following] == starts[following - 1] or _border(starts, following, size) <= last):
        following += 1
    return following


def _starts(text: str, offsets: Iterable[Any]) -> list[int]:
    """Return the start of each token, validating the offsets."""
    starts: list[int] = []
    before = 0
    try:
        for start, end in offsets:
            if whole(start) is None or whole(end) is None or not before <= start <= end <= len(text):
                raise TokenizerError(
                    f"token offsets must be ascending and inside the text of {len(text)} characters, got "
                    f"({describe(start)}, {describe(end)}) after {before}",
                    (start, end),
                )
            starts.append(int(start))
            before = start
    except (TypeError, ValueError) as error:
        if isinstance(error, TokenizerError):
            raise
        raise TokenizerError(f"a tokenizer function must return (start, end) pairs: {error}", offsets) from error
    return starts


def offsets_of(tokenizer: Any) -> OffsetTokenizer:
    """Return a function that returns the character offsets of each token of a text."""
    if hasattr(tokenizer, "backend_tokenizer"):
        return _hugging_face(tokenizer.backend_tokenizer)
    if hasattr(tokenizer, "to_str") and hasattr(tokenizer, "no_truncation"):
        return _hugging_face(tokenizer)
    if hasattr(tokenizer, "decode_with_offsets") and hasattr(tokenizer, "encode_ordinary"):
        return _tiktoken(tokenizer)
    # A slow Hugging Face tokenizer is callable too, but has no offsets.
    if callable(tokenizer) and not hasattr(tokenizer, "convert_ids_to_tokens"):
        return tokenizer  # type: ignore[no-any-return]
    raise TokenizerError(
        "expected a tokenizers.Tokenizer, a Hugging Face fast tokenizer, a tiktoken encoding or a function that "
        f"returns offsets, got {type(tokenizer).__name__}",
        tokenizer,
    )


def _hugging_face(tokenizer: Any) -> OffsetTokenizer:
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        # Change a copy, because the caller's embedder may depend on both.
        tokenizer = type(tokenizer).from_str(tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).offsets


def _tiktoken(encoding: Any) -> OffsetTokenizer:
    def offsets(text: str) -> list[tuple[int, int]]:
        _, starts = encoding.decode_with_offsets(encoding.encode_ordinary(text))
        return list(zip(starts, [*starts[1:], len(text)], strict=True))

    return offsets


# The code points after the basic plane: more than most texts have characters, and none is white space or a surrogate.
_FIRST_CODE = 0x10000
_PERIOD = 0x100000
_SEPARATORS = "\n "


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
        MissingExtraError: The package `langchain-text-splitters` is not installed.

    Example:
        >>> import re
        >>> words = lambda text: [match.span() for match in re.finditer(r"\w+", text)]
        >>> windows = split_recursive("one two\n\nthree four five six", words, chunk_size=3, chunk_overlap=0)
        >>> [window.text for window in windows]
        ['one two', '\n\nthree four five', ' six']
    """
    _check_split(text, chunk_size, chunk_overlap)
    splitter_class = _splitter_class()
    coded = _Coded(text, _counter(tokenizer))
    if not text or text.isspace():
        return []
    splitter = splitter_class(
        chunk_size=chunk_size, chunk_overlap=chunk_overlap, length_function=coded.tokens, strip_whitespace=False
    )
    return [
        TokenWindow(text[start:end], start, end, coded.count(text[start:end]))
        for start, end in _without_gaps(text, coded.places(splitter.split_text(coded.text)), chunk_overlap)
    ]


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


class _Coded:
    """A copy of a text in which each character except separators encodes its offset.

    The splitter splits the copy, so that the offset of each piece can be read from its characters.
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
        """Count the tokens of the original text of a piece."""
        place = _place(piece)
        if place is None:
            return self.count(piece)
        # Offsets are modulo _PERIOD, so in a text of more than a million characters a piece can have several places.
        # Separators tell most apart; for the rest, use the maximum number of tokens, so that no window gets too large.
        starts = [
            start
            for start in range(place, len(self._original), _PERIOD)
            if len(self._original) <= _PERIOD or self.text.startswith(piece, start)
        ]
        return max(self.count(self._original[start : start + len(piece)]) for start in starts)

    def places(self, pieces: list[str]) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each piece, skipping pieces of separators only."""
        # No window starts after the end of the previous window.
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
    """Return the offset (modulo `_PERIOD`) of a coded piece; None for a piece of separators only."""
    for index, letter in enumerate(piece):
        if letter not in _SEPARATORS:
            return (ord(letter) - _FIRST_CODE - index) % _PERIOD
    return None


def _counter(tokenizer: Any) -> Callable[[str], int]:
    """Return a function that counts tokens and caches the counts: a word occurs hundreds of times in a book."""
    offsets = offsets_of(tokenizer)
    known: dict[str, int] = {}

    def count(text: str) -> int:
        tokens = known.get(text)
        if tokens is None:
            found = offsets(LONE_SURROGATE.sub("\ufffd", text))
            try:
                tokens = known[text] = sum(1 for _ in found)
            except TypeError as error:
                raise TokenizerError(f"a tokenizer function must return (start, end) pairs: {error}", found) from error
        return tokens

    return count


def _splitter_class() -> Any:
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError as error:
        raise MissingExtraError("The recursive splitter", "langchain") from error
    return RecursiveCharacterTextSplitter


Splitter = Literal["tokens", "words", "recursive"]

_SIZES: dict[str, int] = {"tokens": 128, "words": 300, "recursive": 1000}
_WORD = re.compile(r"\S+")


class Split(NamedTuple):
    """How sources are split.

    Attributes:
        splitter: "tokens" or "words" for windows of exactly `size`, "recursive" to split at paragraphs, lines or words.
        size: Chunk size in tokens or words; None for 128 tokens, 300 words or (recursive) 1,000 tokens.
        overlap: Overlap of adjacent chunks in tokens or words; None for no overlap or (recursive) a tenth of the size.
    """

    splitter: Splitter = "tokens"
    size: int | None = None
    overlap: int | None = None

    def complete(self) -> Split:
        """Return a copy with the defaults of the splitter filled in."""
        check_choice("splitter", self.splitter, get_args(Splitter))
        size = _SIZES[self.splitter] if self.size is None else self.size
        # An invalid size is rejected later by the splitter.
        overlap = size // 10 if self.splitter == "recursive" and isinstance(size, int) else 0
        return Split(self.splitter, size, overlap if self.overlap is None else self.overlap)


class Piece(NamedTuple):
    """A chunk of a source.

    Attributes:
        window: The text, its offsets and its number of tokens (or words).
        place: The metadata `source`, `chunk_index`, `start_index` and `end_index`; for a source with pages also `page`,
            from 1, to which the offsets are then relative.
    """

    window: TokenWindow
    place: dict[str, Any]


def pieces_of(sources: Mapping[Any, str | Sequence[str]], tokenizer: Any, split: Split) -> Iterator[Piece]:
    """Split whole sources into chunks with their metadata, one source after the other."""
    if not isinstance(sources, Mapping):
        raise ChunkError(f"sources must map names to texts, got {type(sources).__name__}", sources)
    split = split.complete()
    for name, content in sources.items():
        source = source_name(name)
        if source is None:
            raise MissingSourceError(f"a source must be named by a non-empty string, got {describe(name)}", name)
        paged = isinstance(content, list | tuple)
        number = 0
        for page, text in enumerate(content if paged else [content], 1):
            for window in _windows_of(text, tokenizer, split):
                place = {"source": source, "chunk_index": number}
                if paged:
                    place["page"] = page
                yield Piece(window, {**place, "start_index": window.start, "end_index": window.end})
                number += 1


def _windows_of(text: Any, tokenizer: Any, split: Split) -> list[TokenWindow]:
    function = split_recursive if split.splitter == "recursive" else split_tokens
    return function(text, _words if split.splitter == "words" else tokenizer, split.size, split.overlap)  # type: ignore[arg-type]


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the words of a text: runs without white space."""
    return (word.span() for word in _WORD.finditer(text))
