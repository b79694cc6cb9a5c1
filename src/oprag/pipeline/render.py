"""Render ordered chunks as passages, and passages as the text of a context."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from oprag._internal.masking import describe
from oprag._internal.text_table import one_line, printable
from oprag._internal.tokens import TokenCounter
from oprag.chunk import Chunk, Passage
from oprag.errors import OptionError
from oprag.options import ContextOptions, Header
from oprag.pipeline.stitch import each_alone, stitch
from oprag.positions.fields import heading_levels, level_fields, with_usual_fields
from oprag.positions.readings import page_of

__all__ = [
    "MARKER",
    "SECTION_FIELDS",
    "SHOWN_SEPARATOR",
    "CitedHeader",
    "Show",
    "between",
    "counter_of_shown",
    "header_of",
    "passages_of",
    "render",
    "section_of",
    "shown_text",
    "with_header",
    "without_markers",
]

Show = Callable[[Passage], str]
"""Formats a passage as a framework's prompt will show it."""

SHOWN_SEPARATOR = "\n\n"
"""The separator that frameworks put between two documents or nodes."""

MARKER = re.compile(r"\[(\d{1,6}(?:\s*(?:[,;\-–—]|,?\s?(?:and|&)\s)\s*\d{1,6})*)\]")
"""Numbers of passages in a text that cites them: [1], and also [1, 3], [1; 3], [1-3] or [1, 2 and 4]."""


_LIST_FIELD = "headings"  # a list, the outermost heading first
_PATH_FIELD = "header_path"  # LlamaIndex's Markdown parser: the headings above that of the chunk
SECTION_FIELDS = ("section", "section_title", "heading", "chapter")
_FIELDS = frozenset({_LIST_FIELD, _PATH_FIELD, *SECTION_FIELDS})
_MAX_LENGTH = 100  # characters of a heading


class CitedHeader(str):
    """A header with the number by which an answer cites a passage: nothing else in the context may look like it."""

    __slots__ = ()


def passages_of(ordered: Sequence[Chunk], options: ContextOptions) -> list[Passage]:
    """The passages of ordered chunks."""
    return stitch(ordered, options.separator) if options.stitch else each_alone(ordered)


def render(passages: Sequence[Passage], options: ContextOptions, show: Show | None = None, first: int = 1) -> str:
    """Render passages, with gaps only in source order, in which one comes after the other; `show` replaces all."""
    if show is not None:
        return SHOWN_SEPARATOR.join(map(show, passages))
    if options.header is None and not options.gap:
        return options.separator.join([passage.text for passage in passages if passage.text])
    parts: list[str] = []
    last: Passage | None = None
    for number, passage in enumerate(passages, first):
        text = with_header(passage, options.header, number)
        if not text:
            continue
        if last is not None:
            parts.append(between(last, passage, options))
        parts.append(text)
        last = passage
    return "".join(parts)


def between(first: Passage, second: Passage, options: ContextOptions) -> str:
    """The text between two passages: the separator, or the gap between two separators."""
    same_source = first.source is not None and first.source == second.source
    if options.gap and same_source and options.order == "source":
        return f"{options.separator}{options.gap}{options.separator}"
    return options.separator


def with_header(passage: Passage, header: Header | None, number: int = 1) -> str:
    """The text of a passage under its header; `number` is its number in the context."""
    above, text = header_of(passage, header, number), shown_text(passage.text, header)
    return f"{above}\n{text}" if above else text


def shown_text(text: str, header: Header | None) -> str:
    """A text of a document, or of its metadata, as it is shown with this header."""
    return without_markers(text) if isinstance(header, CitedHeader) else text


def counter_of_shown(options: ContextOptions) -> TokenCounter:
    """The counter of tokens for the texts of passages as they are shown."""
    return lambda text: options.count_tokens(shown_text(text, options.header))


def header_of(passage: Passage, header: Header | None, number: int = 1) -> str:
    """The line above a passage; empty without a header."""
    if header is None:
        return ""
    if callable(header):
        above = header(passage)
        if not isinstance(above, str):
            raise OptionError(f"a header function must return a string, got {describe(above)}", header)
        return above
    first, last = (passage.spans[0], passage.spans[-1]) if passage.spans else (None, None)
    page = page_of(passage.chunks[0])
    return header.format(
        number=number,
        source=shown_text(passage.source or "", header),
        section=shown_text(section_of(passage.chunks[0]), header),
        page="" if page is None else shown_text(str(page), header),
        start="" if first is None else first.start,
        end="" if last is None else last.end,
        rank=passage.rank,
    )


def without_markers(text: str) -> str:
    """The text with spaces inside the brackets of markers, so that they are not read as markers."""
    return MARKER.sub(r"[ \1 ]", text) if "[" in text else text


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
