"""Numbering the chunks of each source at ingestion (rung 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.chunk import Chunk
from oprag.errors import MissingSourceError, OptionError
from oprag.source import SourceKey, source_name, source_of

__all__ = ["STAMP_FIELD", "stamps"]

STAMP_FIELD = "chunk_index"


def stamps(chunks: Sequence[Chunk], source: str | None, source_key: SourceKey | None) -> list[dict[str, Any]]:
    """The metadata to add to each chunk.

    Args:
        chunks: The chunks of one or many sources, each source in sequence.
        source: The name for chunks that do not say their source.
        source_key: See `Assembly.source_key`.

    Raises:
        MissingSourceError: A chunk does not say its source, and `source` is not given.
        OptionError: `source` cannot name a source.
    """
    check_source(source)
    counts: dict[str, int] = {}
    added: list[dict[str, Any]] = []
    for index, chunk in enumerate(chunks):
        name = source_of(chunk, source_key, source)
        if name is None:
            raise MissingSourceError(
                f"chunk {index} does not say its source (metadata keys: {chunk.keys_text()}); name it with source=...",
                chunk,
            )
        # Without its name in the metadata, the chunk would count for another source later.
        named = {"source": name} if name == source and source_of(chunk, source_key) != name else {}
        added.append({**named, STAMP_FIELD: counts.get(name, 0)})
        counts[name] = counts.get(name, 0) + 1
    return added


def check_source(source: Any) -> None:
    """Refuse what cannot name a source.

    Raises:
        OptionError: The value is no string, or there is nothing in it but white space.
    """
    if source is not None and (not isinstance(source, str) or source_name(source) is None):
        raise OptionError(f"source must be a non-empty string or None, got {source!r}", source)
