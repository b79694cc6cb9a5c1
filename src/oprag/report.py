"""What adapters write about chunks and passages into the metadata of the framework's objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.chunk import Chunk
from oprag.context import chunk_to_dict
from oprag.stitch import Passage

__all__ = ["METADATA_KEY", "common_metadata", "passage_to_dict"]

METADATA_KEY = "oprag"
"""The one metadata key that adapters write to."""


def passage_to_dict(passage: Passage) -> dict[str, Any]:
    """Spans and chunks of a passage, as values that JSON can hold."""
    return {
        "source": passage.source,
        "spans": [span._asdict() for span in passage.spans],
        "chunks": [chunk_to_dict(chunk) for chunk in passage.chunks],
    }


def common_metadata(chunks: Sequence[Chunk]) -> dict[str, Any]:
    """The metadata that all chunks of a passage share; a page that only one of them has would be a false claim."""
    first, others = chunks[0].metadata, [chunk.metadata for chunk in chunks[1:]]
    return {
        key: value for key, value in first.items() if all(_same(value, other.get(key, _ABSENT)) for other in others)
    }


_ABSENT = object()


def _same(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except (TypeError, ValueError):
        # Arrays compare element by element.
        return first is second
