"""Splitting texts into chunks with exact character offsets: by tokens, by words, or between paragraphs."""

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

# Half of a surrogate pair is no character; tokenizers refuse it, or count it as something of another length.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class TokenWindow(NamedTuple):
    """A window over the tokens of a text.

    Attributes:
        text: The text of the window, `source_text[start:end]`.
        start: Offset of its first character.
        end: End offset (exclusive).
        tokens: How many tokens of the whole text begin in it. The window alone may count differently, since tokenizers
            merge across its borders.
    """

    text: str
    start: int
    end: int
    tokens: int


def split_tokens(text: str, tokenizer: Any, size: int = 128, overlap: int = 0) -> list[TokenWindow]:
    """Cut a text into windows of `size` tokens.

    Without overlap the windows joined give the text back, character for character: what is between two tokens
    belongs to the window before it. A character is never cut, also where it is several tokens; a window is then
    shorter.

    Args:
        text: Any text.
        tokenizer: A `tokenizers.Tokenizer`, a Hugging Face fast tokenizer, a tiktoken encoding, or a function that
            gives the character offsets (start, end) of each token of a text. It is not changed, and its truncation and
            padding are not applied.
        size: Tokens in a window; at least 1.
        overlap: Tokens that a window shares with the next one; less than `size`.

    Returns:
        The windows in the order of the text; none for an empty text.

    Raises:
        OptionError: `size` or `overlap` is out of range.
        ChunkError: `text` is not a string.
        TokenizerError: The tokenizer is of another kind, or its offsets do not run forward inside the text.

    Example:
        >>> import re
        >>> words = lambda text: [match.span() for match in re.finditer(r"[a-z]+", text)]
        >>> [window.text for window in split_tokens("one two three four", words, size=2)]
        ['one two ', 'three four']
    """
    _check_split(text, size, overlap)
    if not text:
        return []
    starts = _starts(text, offsets_of(tokenizer)(LONE_SURROGATE.sub("\ufffd", text)))
    return list(_windows(text, starts, size, overlap))


def _check_split(text: Any, size: Any, overlap: Any) -> None:
    if type(size) is not int or size < 1:
        raise OptionError(f"size must be a whole number of tokens from 1, got {describe(size)}", size)
    if type(overlap) is not int or not 0 <= overlap < size:
        raise OptionError(
            f"overlap must be a whole number from 0 and less than size={size}, got {describe(overlap)}", overlap
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
    """The token after a window that begins with `first`: where a character begins, at most `size` tokens on."""
    cut = first + size
    if cut >= len(starts):
        return len(starts)
    while cut > first and starts[cut] == starts[cut - 1]:
        cut -= 1
    if starts[cut] > starts[first]:
        return cut
    # One character is more tokens than a window may have.
    cut = first + size
    while cut < len(starts) and starts[cut] == starts[first]:
        cut += 1
    return cut


def _next_first(starts: Sequence[int], first: int, last: int, size: int, overlap: int) -> int:
    """The first token of the next window: shares `overlap` tokens, or fewer where it would otherwise add nothing."""
    following = max(first + 1, last - overlap)
    while following > first + 1 and starts[following] == starts[following - 1]:
        following -= 1
    while following < last and (starts[following] == starts[following - 1] or _border(starts, following, size) <= last):
        following += 1
    return following


def _starts(text: str, offsets: Iterable[Any]) -> list[int]:
    """The checked start of each token."""
    starts: list[int] = []
    before = 0
    try:
        for start, end in offsets:
            if whole(start) is None or whole(end) is None or not before <= start <= end <= len(text):
                raise TokenizerError(
                    f"token offsets must run forward inside the text of {len(text)} characters, got "
                    f"({describe(start)}, {describe(end)}) after {before}",
                    (start, end),
                )
            starts.append(int(start))
            before = start
    except (TypeError, ValueError) as error:
        if isinstance(error, TokenizerError):
            raise
        raise TokenizerError(f"a tokenizer function must give (start, end) pairs: {error}", offsets) from error
    return starts


def offsets_of(tokenizer: Any) -> OffsetTokenizer:
    """A function that gives the character offsets of each token of a text."""
    if hasattr(tokenizer, "backend_tokenizer"):
        return _hugging_face(tokenizer.backend_tokenizer)
    if hasattr(tokenizer, "to_str") and hasattr(tokenizer, "no_truncation"):
        return _hugging_face(tokenizer)
    if hasattr(tokenizer, "decode_with_offsets") and hasattr(tokenizer, "encode_ordinary"):
        return _tiktoken(tokenizer)
    # A slow Hugging Face tokenizer can be called too, but knows no offsets.
    if callable(tokenizer) and not hasattr(tokenizer, "convert_ids_to_tokens"):
        return tokenizer  # type: ignore[no-any-return]
    raise TokenizerError(
        "expected a tokenizers.Tokenizer, a Hugging Face fast tokenizer, a tiktoken encoding or a function that gives "
        f"offsets, got {type(tokenizer).__name__}",
        tokenizer,
    )


def _hugging_face(tokenizer: Any) -> OffsetTokenizer:
    if tokenizer.truncation is not None or tokenizer.padding is not None:
        # A copy, since the caller's embedder may depend on both.
        tokenizer = type(tokenizer).from_str(tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).offsets


def _tiktoken(encoding: Any) -> OffsetTokenizer:
    def offsets(text: str) -> list[tuple[int, int]]:
        _, starts = encoding.decode_with_offsets(encoding.encode_ordinary(text))
        return list(zip(starts, [*starts[1:], len(text)], strict=True))

    return offsets


# The planes after the basic one: as many code points as a text rarely has characters, and none of them is white space
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
        size: Maximum tokens of a window, those of its pieces added up; at least 1. A character that is more tokens
            is a window of its own, and white space between two windows is added to the second one uncounted.
        overlap: Maximum tokens that a window shares with the next one, in whole pieces; less than `size`.

    Returns:
        The windows in the order of the text; none for a text of nothing but white space. `tokens` are those of the
        window's own text.

    Raises:
        OptionError: `size` or `overlap` is out of range.
        ChunkError: `text` is not a string.
        TokenizerError: The tokenizer is of another kind, or without offsets.
        MissingExtraError: The package `langchain-text-splitters` is not installed.

    Example:
        >>> import re
        >>> words = lambda text: [match.span() for match in re.finditer(r"\w+", text)]
        >>> [window.text for window in split_recursive("one two\n\nthree four five six", words, size=3, overlap=0)]
        ['one two', '\n\nthree four five', ' six']
    """
    _check_split(text, size, overlap)
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
    """A copy of a text in which each character but the separators encodes its offset.

    The splitter reads the copy, so each piece that it makes leads back to its place.
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
        """Start and end of each piece of the splitter that has more than separators."""
        # No window begins after the end of the one before it.
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


Splitter = Literal["tokens", "words", "recursive"]

_SIZES: dict[str, int] = {"tokens": 128, "words": 300, "recursive": 1000}
_WORD = re.compile(r"\S+")


class Split(NamedTuple):
    """How sources are split.

    Attributes:
        splitter: "tokens" or "words" for windows of exactly `size`, "recursive" for paragraphs, lines and words.
        size: Tokens in a chunk, or words; None for 128 tokens, 300 words or, recursive, 1,000 tokens.
        overlap: Tokens or words that neighbors share; None for none or, recursive, a tenth of the size.
    """

    splitter: Splitter = "tokens"
    size: int | None = None
    overlap: int | None = None

    def complete(self) -> Split:
        """The same with the defaults of the splitter filled in."""
        check_choice("splitter", self.splitter, get_args(Splitter))
        size = _SIZES[self.splitter] if self.size is None else self.size
        # An invalid size is refused by the splitter.
        overlap = size // 10 if self.splitter == "recursive" and isinstance(size, int) else 0
        return Split(self.splitter, size, overlap if self.overlap is None else self.overlap)


class Piece(NamedTuple):
    """A chunk of a source.

    Attributes:
        window: The text, its offsets and its tokens (or words).
        place: `source`, `chunk_index`, `start_index` and `end_index`; where there are pages the `page`, from 1, from
            which the last two count.
    """

    window: TokenWindow
    place: dict[str, Any]


def pieces_of(sources: Mapping[Any, str | Sequence[str]], tokenizer: Any, split: Split) -> Iterator[Piece]:
    """Split whole sources into chunks with their places, one after the other."""
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
    """The words of a text: runs without white space."""
    return (word.span() for word in _WORD.finditer(text))
