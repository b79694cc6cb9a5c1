"""Splitting and stamping whole sources for an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from oprag.checks import check_choice
from oprag.errors import ChunkError, MissingSourceError
from oprag.retrieval.recursive import split_recursive
from oprag.retrieval.split import TokenWindow, split_tokens
from oprag.source import source_name

__all__ = ["Split", "Splitter", "split_sources"]

Splitter = Literal["tokens", "recursive"]


class Split(NamedTuple):
    """How sources are split.

    Attributes:
        splitter: "tokens" for windows of exactly `size` tokens, "recursive" for paragraphs, lines and words.
        size: Tokens in a chunk; None for 128 or, recursive, 1,000.
        overlap: Tokens that neighbours share; None for none or, recursive, a tenth of the size.
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
        recursive = self.splitter == "recursive"
        size = (1000 if recursive else 128) if self.size is None else self.size
        # A wrong size is refused by the splitter.
        overlap = size // 10 if recursive and isinstance(size, int) else 0
        return Split(self.splitter, size, overlap if self.overlap is None else self.overlap)


def split_sources(
    sources: Mapping[str, str | Sequence[str]], tokenizer: Any, split: Split
) -> tuple[list[str], list[dict[str, Any]]]:
    """Split whole sources into chunks that know their place.

    Args:
        sources: The text of each source by its name; a list of texts is its pages, each split by itself.
        tokenizer: What `split_tokens` takes.
        split: How.

    Returns:
        The texts of the chunks, and for each `source`, `chunk_index` and `start_index` and `end_index`; where there are
        pages the `page`, from 1, that the last two count from.

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
    texts: list[str] = []
    metadata: list[dict[str, Any]] = []
    for name, content in sources.items():
        if source_name(name) is None:
            raise MissingSourceError(f"a source must be named by a non-empty string, got {name!r}", name)
        paged = isinstance(content, list | tuple)
        number = 0
        for page, text in enumerate(content if paged else [content], 1):
            for window in _windows(text, tokenizer, split):
                place = {"source": name, "chunk_index": number}
                if paged:
                    place["page"] = page
                texts.append(window.text)
                metadata.append({**place, "start_index": window.start, "end_index": window.end})
                number += 1
    return texts, metadata


def _windows(text: Any, tokenizer: Any, split: Split) -> list[TokenWindow]:
    function = split_recursive if split.splitter == "recursive" else split_tokens
    return function(text, tokenizer, split.size, split.overlap)  # type: ignore[arg-type]
