"""Token windows of a text, with exact character offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from oprag.errors import ChunkError, OptionError, TokenizerError
from oprag.masking import describe
from oprag.values import whole

__all__ = ["OffsetTokenizer", "TokenWindow", "split_tokens"]

OffsetTokenizer = Callable[[str], Iterable[tuple[int, int]]]

# Half of a surrogate pair is no character; tokenizers refuse it, or count it as something of another length.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class TokenWindow(NamedTuple):
    """A window over the tokens of a text.

    Attributes:
        text: The text of the window, `source_text[start:end]`.
        start: Offset of its first character.
        end: Offset behind its last character.
        tokens: How many tokens of the whole text begin in it. The window alone may count differently, since tokenizers
            merge across its borders.
    """

    text: str
    start: int
    end: int
    tokens: int


def split_tokens(text: str, tokenizer: Any, size: int = 128, overlap: int = 0) -> list[TokenWindow]:
    """Cut a text into windows of `size` tokens.

    Without overlap the windows joined give the text back, character for character: what stands between two tokens
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
        ChunkError: `text` is no string.
        TokenizerError: The tokenizer is of another kind, or its offsets do not run forward inside the text.

    Example:
        >>> import re
        >>> words = lambda text: [match.span() for match in re.finditer(r"[a-z]+", text)]
        >>> [window.text for window in split_tokens("one two three four", words, size=2)]
        ['one two ', 'three four']
    """
    check_split(text, size, overlap)
    if not text:
        return []
    starts = _starts(text, offsets_of(tokenizer)(LONE_SURROGATE.sub("\ufffd", text)))
    return list(_windows(text, starts, size, overlap))


def check_split(text: Any, size: Any, overlap: Any) -> None:
    """Refuse what cannot be split, or not so.

    Raises:
        OptionError: `size` or `overlap` is out of range.
        ChunkError: `text` is no string.
    """
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
    """The token behind a window that begins with `first`: where a character begins, at most `size` tokens on."""
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
    """The start of each token, checked."""
    starts: list[int] = []
    before = 0
    try:
        for start, end in offsets:
            if whole(start) is None or whole(end) is None or not before <= start <= end <= len(text):
                raise TokenizerError(
                    f"token offsets must run forward inside the text of {len(text)} characters, got "
                    f"({describe(start)}, {describe(end)}) behind {before}",
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
    """A function that gives the character offsets of each token of a text.

    Raises:
        TokenizerError: The tokenizer is of a kind that gives no offsets.
    """
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
