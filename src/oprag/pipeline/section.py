"""The section of a chunk: the path of its headings, as splitters and parsers write it to metadata, else its own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from oprag._internal.text_table import one_line, printable
from oprag.chunk import Chunk
from oprag.positions.fields import heading_levels, level_fields, with_usual_fields

__all__ = ["SECTION_FIELDS", "section_of"]

_LIST_FIELD = "headings"  # a list, the outermost heading first
_PATH_FIELD = "header_path"  # LlamaIndex's Markdown parser: the headings above that of the chunk
SECTION_FIELDS = ("section", "section_title", "heading", "chapter")
_FIELDS = frozenset({_LIST_FIELD, _PATH_FIELD, *SECTION_FIELDS})
_MAX_LENGTH = 100  # characters of a heading


def section_of(chunk: Chunk) -> str:
    """Return the headings over a chunk, the outermost first, such as "Install > On Windows"; empty if unknown."""
    metadata = with_usual_fields(chunk.metadata)
    if not _may_have_headings(tuple(metadata)):
        return chunk.section
    listed = metadata.get(_LIST_FIELD)
    headings = listed if isinstance(listed, list | tuple) else []
    headings = headings or [heading for heading in heading_levels(metadata) if heading]
    path = metadata.get(_PATH_FIELD)
    if not headings and isinstance(path, str):
        headings = path.split("/")
    if not headings:
        stated = (metadata.get(name) for name in SECTION_FIELDS)
        headings = [next((heading for heading in stated if isinstance(heading, str) and heading), "")]
    titles = [printable(one_line(heading))[:_MAX_LENGTH] for heading in headings if isinstance(heading, str)]
    return " > ".join(filter(None, titles)) or chunk.section


@lru_cache
def _may_have_headings(fields: tuple[Any, ...]) -> bool:
    """Whether one of these metadata keys may contain headings; cached, as the chunks of a store share their keys."""
    return bool(level_fields(fields)) or not _FIELDS.isdisjoint(fields)
