"""Which source a chunk came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from oprag.chunk import Chunk
from oprag.values import ordinal

__all__ = ["SourceKey", "source_of"]

SourceKey = str | tuple[str, ...] | Callable[[Chunk], Any]

# Names before ids: a PDF reader makes one document a page, each with a random id, so grouping by id would tear the file
# apart.
_NAMES = ("source", "file_path", "url", "file_name")
_IDS = ("ref_doc_id", "document_id")


def source_of(chunk: Chunk, source_key: SourceKey | None = None, fallback: str | None = None) -> str | None:
    """The name of the chunk's source, or None when nothing names it.

    Looked up in this sequence: `source_key`, `chunk.source`, the metadata keys `source`, `file_path`, `url`,
    `file_name`, `ref_doc_id` and `document_id`, and `chunk.document_id`. A value counts when it is a non-empty string
    or a finite number; any other falls to the next key.

    Args:
        chunk: The chunk.
        source_key: A metadata key, several of which the first that counts is taken, or a function of the chunk.
        fallback: A name that goes before the ids, which frameworks make at random.
    """
    if source_key is not None:
        given = source_key(chunk) if callable(source_key) else first_name(chunk.metadata, source_key)
        if (name := source_name(given)) is not None:
            return name
    if chunk.source is not None and (name := source_name(chunk.source)) is not None:
        return name
    metadata = chunk.metadata
    return first_name(metadata, _NAMES) or fallback or first_name(metadata, _IDS) or source_name(chunk.document_id)


def first_name(metadata: Mapping[str, Any], keys: str | tuple[str, ...]) -> str | None:
    """The first of these metadata values that can name a source."""
    for key in (keys,) if isinstance(keys, str) else keys:
        value = metadata.get(key)
        if value is not None and (name := source_name(value)) is not None:
            return name
    return None


def source_name(value: Any) -> str | None:
    """The value as the name of a source; 5, 5.0 and "5" are one name, since stores change the type of numbers."""
    if isinstance(value, str):
        return value if value and not value.isspace() else None
    number = ordinal(value)
    if number is None:
        opposite = ordinal(_negated(value))
        number = None if opposite is None else -opposite
    return None if number is None else str(number)


def _negated(value: Any) -> Any:
    """The opposite of a number, by Python's own numbers: those of NumPy have a smallest one without an opposite."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        return -int(value) if isinstance(value, Integral) else -float(value)
    except (ValueError, OverflowError, TypeError, ArithmeticError):
        return None
