"""Locates existing chunks in the source text, so that an index gets positions without re-embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oprag.chunk import Chunk
from oprag.errors import ChunkError, MissingSourceError
from oprag.masking import describe
from oprag.positions.source_order import Listing, order_of
from oprag.positions.source_text import MAX_PLACES, SourceText
from oprag.positions.sources import SourceKey, source_of, text_of, warn_about_key

__all__ = ["Located", "locate_positions"]


@dataclass(frozen=True, slots=True)
class Located:
    """The place of a chunk in the source text.

    Attributes:
        chunk: The chunk.
        source: The name of its source.
        start: Start offset in characters; None if the chunk was not found, or its place is ambiguous.
        end: End offset (exclusive); None as `start`.
        detail: Why the chunk has no offset; empty if it has one.
    """

    chunk: Chunk
    source: str
    start: int | None
    end: int | None
    detail: str = ""

    @property
    def id(self) -> str | None:
        """The id of the chunk in its store."""
        return self.chunk.id

    @property
    def metadata(self) -> dict[str, int]:
        """The metadata to add to the chunk in its store (`start_index`, `end_index`); empty if it has no offset."""
        return {} if self.start is None or self.end is None else {"start_index": self.start, "end_index": self.end}


def locate_positions(
    chunks: Iterable[Chunk],
    source_texts: Mapping[Any, str] | Callable[[str], str],
    *,
    source_key: SourceKey | None = None,
) -> list[Located]:
    """Locate chunks in the texts that they were split from.

    Each chunk is searched for verbatim, then with every run of white space collapsed to one space. If its text occurs
    at several places, one is chosen only if it is certain: only one place fits between the chunk's neighbors in the
    list, the chunk already has an offset, or there are as many equal chunks as places. Otherwise the chunk gets no
    offset, and `detail` explains why.

    Args:
        chunks: The chunks, if possible in source order (as a store lists them, or sorted by any hint).
        source_texts: Maps the name or path of each source to its whole text, or a function that returns the text for a
            name.
        source_key: See `ContextOptions.source_key`.

    Returns:
        One result for each chunk, in the given order. Use `(located.id, located.metadata)` for a metadata-only update
        of a store; nothing has to be re-embedded.

    Raises:
        ChunkError: An item is not a `Chunk`.
        MissingSourceError: A chunk does not name its source, or the text of its source is missing.

    Example:
        >>> found = locate_positions([Chunk("bark.", 0, source="pets")], {"pets": "Cats purr. Dogs bark."})
        >>> found[0].metadata
        {'start_index': 16, 'end_index': 21}
    """
    chunks = list(chunks)
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects, got {type(chunk).__name__}", chunk)
    warn_about_key("source_key", source_key, chunks)
    groups: dict[str, list[int]] = {}
    for index, chunk in enumerate(chunks):
        source = source_of(chunk, source_key)
        if source is None:
            raise MissingSourceError(
                f"chunk {index} does not name its source (metadata keys: {chunk.keys_text()}); "
                "name it with source_key=...",
                chunk,
            )
        groups.setdefault(source, []).append(index)
    results: dict[int, Located] = {}
    for source, indices in groups.items():
        text = SourceText(_text_of(source, source_texts))
        spans = order_of(Listing([chunks[index] for index in indices]), text=text).spans
        for index, span in zip(indices, spans, strict=True):
            chunk = chunks[index]
            if span is None:
                results[index] = Located(chunk, source, None, None, _why(len(text.places(chunk.text))))
            else:
                results[index] = Located(chunk, source, span.start, span.end)
    return [results[index] for index in range(len(chunks))]


def _text_of(source: str, source_texts: Mapping[Any, str] | Callable[[str], str]) -> str:
    if callable(source_texts):
        text: Any = source_texts(source)
    else:
        text = text_of(source_texts, source)
    if not isinstance(text, str):
        got = "" if text is None else f", got {type(text).__name__}"
        raise MissingSourceError(f"source_texts has no text for the source {describe(source)}{got}", source)
    return text


def _why(count: int) -> str:
    if not count:
        return "its text was not found in the source"
    number = f"{count:,}{' or more' if count == MAX_PLACES else ''}"
    return f"its text occurs at {number} places in the source, so its position is ambiguous"
