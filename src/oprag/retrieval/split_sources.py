"""Splitting and stamping whole sources for an index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from oprag.checks import check_choice
from oprag.errors import ChunkError, MissingSourceError
from oprag.masking import describe
from oprag.retrieval.recursive import split_recursive
from oprag.retrieval.split import TokenWindow, split_tokens
from oprag.source import source_name

__all__ = ["Piece", "Split", "Splitter", "pieces_of", "split_sources"]

Splitter = Literal["tokens", "words", "recursive"]

_SIZES: dict[str, int] = {"tokens": 128, "words": 300, "recursive": 1000}
_WORD = re.compile(r"\S+")


class Split(NamedTuple):
    """How sources are split.

    Attributes:
        splitter: "tokens" or "words" for windows of exactly so many, "recursive" for paragraphs, lines and words.
        size: Tokens in a chunk, or words; None for 128 tokens, 300 words or, recursive, 1,000 tokens.
        overlap: Tokens or words that neighbours share; None for none or, recursive, a tenth of the size.
    """

    splitter: Splitter = "tokens"
    size: int | None = None
    overlap: int | None = None

    def complete(self) -> Split:
        """The same with the defaults of the splitter filled in.

        Raises:
            OptionError: There is no such splitter.
        """
        check_choice("splitter", self.splitter, get_args(Splitter))
        size = _SIZES[self.splitter] if self.size is None else self.size
        # A wrong size is refused by the splitter.
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
    """Split whole sources into chunks that know their place, one after the other.

    Args:
        sources: The text of each source by its name; a list of texts is its pages, each split by itself.
        tokenizer: What `split_tokens` takes.
        split: How.

    Raises:
        ChunkError: `sources` is no mapping, or a text is no string.
        MissingSourceError: A source has no name.
        OptionError: An option of the splitter has a value that it cannot have.
        TokenizerError: The tokenizer is of another kind.
        MissingExtraError: The recursive splitter is not installed.
    """
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
            for window in _windows(text, tokenizer, split):
                place = {"source": source, "chunk_index": number}
                if paged:
                    place["page"] = page
                yield Piece(window, {**place, "start_index": window.start, "end_index": window.end})
                number += 1


def split_sources(
    sources: Mapping[Any, str | Sequence[str]], tokenizer: Any, split: Split
) -> tuple[list[str], list[dict[str, Any]]]:
    """The texts of the chunks, and the place of each; arguments and errors are those of `pieces_of`."""
    pieces = list(pieces_of(sources, tokenizer, split))
    return [piece.window.text for piece in pieces], [piece.place for piece in pieces]


def _windows(text: Any, tokenizer: Any, split: Split) -> list[TokenWindow]:
    function = split_recursive if split.splitter == "recursive" else split_tokens
    return function(text, _words if split.splitter == "words" else tokenizer, split.size, split.overlap)  # type: ignore[arg-type]


def _words(text: str) -> Iterator[tuple[int, int]]:
    """The words of a text, as what stands between white space."""
    return (word.span() for word in _WORD.finditer(text))
