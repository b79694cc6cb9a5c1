"""Numbering the chunks of each source at ingestion (rung 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.chunk import Chunk
from oprag.errors import MissingSourceError
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
        MissingSourceError: A chunk does not say its source, and `source` is not given or cannot be a name.
    """
    if source is not None and source_name(source) is None:
        raise MissingSourceError(f"source must be a non-empty string, got {source!r}", source)
    counts: dict[str, int] = {}
    added: list[dict[str, Any]] = []
    for index, chunk in enumerate(chunks):
        name = source_of(chunk, source_key)
        stamp: dict[str, Any] = {}
        if name is None:
            if source is None:
                raise MissingSourceError(
                    f"chunk {index} does not say its source (metadata keys: {chunk.keys_text()}); "
                    "name it with source=...",
                    chunk,
                )
            name = stamp["source"] = source
        stamp[STAMP_FIELD] = counts.get(name, 0)
        counts[name] = stamp[STAMP_FIELD] + 1
        added.append(stamp)
    return added
