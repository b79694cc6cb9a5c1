"""Find the Markdown headings in the text of a source, and the sections of chunks whose metadata name none."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from oprag._internal.masking import masked_error, shown
from oprag._internal.text_table import one_line, printable
from oprag._internal.warn import warn
from oprag.chunk import Chunk, changed
from oprag.errors import OpragError, RetrievalWarning
from oprag.options import ContextOptions
from oprag.pipeline.neighbors import best_of_sources, read_in_order
from oprag.pipeline.render import section_of, without_markers
from oprag.pipeline.stitch import JoinedText, join_chunks

__all__ = ["Heading", "headings_in", "title_of", "with_sections"]

_MAX_TITLE_LENGTH = 100  # characters
_MAX_ERROR_LENGTH = 90  # characters in a warning
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_MARKDOWN_NAME = re.compile(r"\.(?:md|markdown|mdown|mkdn?|mdwn|mdx|qmd|rmd)", re.IGNORECASE)
_URL_END = re.compile(r"[?#]")


class Heading(NamedTuple):
    """A heading, or another start of a part of a source."""

    level: int  # its depth
    title: str  # its title on one line
    row: int  # index of its chunk
    inside: bool = False  # whether that chunk contains text before it
    at: int = 0  # its offset in the text of the source; 0 if it is not in the text


def headings_in(joined: JoinedText, source: str) -> list[Heading]:
    """Find the Markdown headings in the text of a source.

    Only ATX headings ("## Title") outside of code fences count. In a source without a Markdown extension they could be
    comments of a program, so most of them must have blank lines around them there.
    """
    found: list[Heading] = []
    alone = 0
    fence = ""
    at = 0
    lines = joined.text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        stripped = line.rstrip()
        if match := _FENCE.fullmatch(stripped):
            mark, info = match[1], match[2].strip()
            # A closing fence is at least as long as the opening one; a line such as "```x``` y" is not a fence.
            if not fence:
                fence = "" if mark[0] == "`" and "`" in info else mark
            elif mark.startswith(fence) and not info:
                fence = ""
        elif not fence and (match := _HEADING.fullmatch(stripped)):
            row = joined.row_at(at)
            found.append(Heading(len(match[1]), title_of(match[2].rstrip(" \t#")), row, joined.visible[row] < at, at))
            around = lines[max(0, number - 1) : number], lines[number + 1 : number + 2]
            alone += not any(one.strip() for near in around for one in near)
        at += len(line)
    return found if _is_markdown(source) or 2 * alone > len(found) > 1 else []


def _is_markdown(source: str) -> bool:
    """Whether the name of a source has a Markdown extension, before the query and fragment of a URL."""
    path = _URL_END.split(source, maxsplit=1)[0] if "://" in source else source
    return bool(_MARKDOWN_NAME.fullmatch(path[path.rfind(".") :].rstrip()))


def _section_paths(chunks: Sequence[Chunk], source: str) -> list[str]:
    """The headings over the start of each of all chunks of a source, in order, such as "Install > On Windows"."""
    joined = join_chunks(chunks)
    starts = headings_in(joined, source)
    paths, above = [""], list[Heading]()
    for start in starts:
        above = [*(one for one in above if one.level < start.level), start]
        paths.append(" > ".join(one.title for one in above if one.title))
    found = []
    for begin, chunk in zip(joined.visible, chunks, strict=True):
        number = bisect_right(starts, begin, key=attrgetter("at"))
        if number and starts[number - 1].at == begin:
            end = begin + len(chunk.text.strip())
            # A heading right under another one counts, too.
            while (
                number < len(starts) and starts[number].at < end and _adjoin(joined, *starts[number - 1 : number + 1])
            ):
                number += 1
        found.append(paths[number])
    return found


def _adjoin(joined: JoinedText, first: Heading, second: Heading) -> bool:
    """Whether a heading is in the line under another one, apart from empty lines."""
    return len(joined.text[first.at : second.at].strip().splitlines()) == 1


def title_of(text: str) -> str:
    """A title on one line, without text that could be read as the number of a passage."""
    return without_markers(printable(one_line(shown(text.strip(), _MAX_TITLE_LENGTH, end=False))))


def with_sections(
    selected: Sequence[Chunk],
    options: ContextOptions,
    read: Callable[[Chunk, int], Sequence[Chunk]],
    known: dict[Any, dict[str, str]],
) -> list[Chunk]:
    """Set the section of chunks, best first, whose metadata name none; `known` caches those of each source."""
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
    for one, path in zip(ordered, _section_paths(ordered, chunk.source or ""), strict=True):
        for name in filter(None, (one.id, one.text)):
            found[name] = path if found.get(name, path) == path else ""
    return found
