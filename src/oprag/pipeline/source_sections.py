"""Find the sections of chunks whose metadata name none: in the headings of their sources, which are read for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprag._internal.masking import masked_error, shown
from oprag._internal.warn import warn
from oprag.chunk import Chunk, changed
from oprag.errors import OpragError, RetrievalWarning
from oprag.options import ContextOptions
from oprag.pipeline.headings import section_paths
from oprag.pipeline.neighbors import best_of_sources, read_in_order
from oprag.pipeline.section import section_of

__all__ = ["with_sections"]

_MAX_ERROR_LENGTH = 90  # characters in a warning


def with_sections(
    selected: Sequence[Chunk],
    options: ContextOptions,
    read: Callable[[Chunk, int], Sequence[Chunk]],
    known: dict[Any, dict[str, str]],
) -> list[Chunk]:
    """Set the section of selected chunks, best first, whose metadata name none.

    Args:
        selected: The chunks.
        options: The options of the context.
        read: Returns the chunks around a given one; none if its source cannot be read.
        known: Cache of the sections by the ids and texts of the chunks, by source and options; updated.
    """
    unnamed = {chunk.source for chunk in selected if not section_of(chunk)}
    names = {one: (one, options.source_key, options.position_key) for one in unnamed}
    for chunk in best_of_sources(selected):
        if chunk.source in unnamed and names[chunk.source] not in known:
            known[names[chunk.source]] = _sections(chunk, options, read)
    found: list[Chunk] = []
    for chunk in selected:
        sections = known.get(names.get(chunk.source), {})
        section = sections.get(chunk.id or "") or sections.get(chunk.text)
        found.append(changed(chunk, section=section) if section else chunk)
    return found


def _sections(chunk: Chunk, options: ContextOptions, read: Callable[[Chunk, int], Sequence[Chunk]]) -> dict[str, str]:
    """Return the sections of all chunks of a source by their ids and texts; of texts in several sections, none."""
    try:
        ordered = read_in_order(chunk, options, read)
    except OpragError as error:
        # A header does not make a question fail.
        warn(
            "{section} in header= is empty for sources whose chunks cannot be read: "
            f"{shown(masked_error(error.__cause__ or error), _MAX_ERROR_LENGTH, end=False)}",
            RetrievalWarning,
            cause="headings that cannot be read",
        )
        return {}
    if not ordered:
        return {}
    found: dict[str, str] = {}
    for one, path in zip(ordered, section_paths(ordered, chunk.source or ""), strict=True):
        for name in filter(None, (one.id, one.text)):
            found[name] = path if found.get(name, path) == path else ""
    return found
