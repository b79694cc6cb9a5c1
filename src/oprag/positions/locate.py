"""Locates chunks in the texts of their sources, for stores whose metadata you update yourself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oprag._internal.masking import describe
from oprag.chunk import Chunk
from oprag.errors import ChunkError, MissingSourceError
from oprag.options import SourceKey
from oprag.positions.source_names import source_of, text_of, warn_about_key
from oprag.positions.source_order import Listing, order_of
from oprag.positions.source_text import MAX_PLACES, SourceText

__all__ = ["Located", "locate_positions"]


@dataclass(frozen=True, slots=True)
class Located:
    """The place of a chunk in the text of its source.

    Attributes:
        chunk: The chunk.
        source: The name of its source.
        start: Start offset in characters; None if the chunk was not found, or its place is ambiguous.
        end: End offset (exclusive); None as `start`.
        detail: Why the chunk has no offset; empty if it has one.
    """

    chunk: Chunk
    source: str
    start: int | None = None
    end: int | None = None
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
    """Locate chunks in the texts that they were split from, as `read_source=` does for retrieved ones.

    Args:
        chunks: The chunks, if possible in source order: it tells which of several places a text has.
        source_texts: Maps the name or path of each source to its text, or a function that returns it for a name.
        source_key: See `ContextOptions.source_key`.

    Returns:
        One result for each chunk, in the given order.

    Raises:
        ChunkError: An item is not a `Chunk`.
        MissingSourceError: A chunk does not name its source, or the text of its source is missing.

    Example:
        >>> found = locate_positions([Chunk("bark.", 0, source="pets")], {"pets": "Cats purr. Dogs bark."})
        >>> found[0].metadata
        {'start_index': 16, 'end_index': 21}
    """
    chunks = list(chunks)
    groups: dict[str, list[int]] = {}
    for index, chunk in enumerate(chunks):
        if not isinstance(chunk, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects, got {type(chunk).__name__}", chunk)
        source = source_of(chunk, source_key)
        if source is None:
            raise MissingSourceError(
                f"chunk {index} does not name its source (metadata keys: {chunk.keys_text()}); "
                "name it with source_key=...",
                chunk,
            )
        groups.setdefault(source, []).append(index)
    warn_about_key("source_key", source_key, chunks)
    results: dict[int, Located] = {}
    for source, indices in groups.items():
        given: Any = source_texts(source) if callable(source_texts) else text_of(source_texts, source)
        if not isinstance(given, str):
            raise MissingSourceError(f"source_texts has no text for the source {describe(source)}", source)
        text = SourceText(given)
        spans = order_of(Listing([chunks[index] for index in indices]), text=text).spans
        for index, span in zip(indices, spans, strict=True):
            place = (None, None, _why(text, chunks[index])) if span is None else (span.start, span.end)
            results[index] = Located(chunks[index], source, *place)
    return [results[index] for index in range(len(chunks))]


def _why(text: SourceText, chunk: Chunk) -> str:
    count = len(text.places(chunk.text))
    if not count:
        return "its text was not found in the source"
    number = f"{count:,}{' or more' if count == MAX_PLACES else ''}"
    return f"its text occurs at {number} places in the source, so its position is ambiguous"
