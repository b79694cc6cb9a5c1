"""The outline of a source: its headings, sections or pages, found in its ordered chunks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

from oprag.assembly.section import SECTION_FIELDS, heading_levels
from oprag.assembly.stitch import place_in_source
from oprag.chunk import Chunk
from oprag.masking import start_of
from oprag.methods.answer import without_markers
from oprag.positions.readings import is_exact, page_of
from oprag.text_table import one_line, printable

__all__ = ["MAX_LINES", "OutlineEntry", "outline_entries", "section_paths"]

MAX_LINES = 60
"""Maximum number of entries that are shown."""

_MAX_TITLE_LENGTH = 100  # characters
_MAX_PARTS = 10  # parts of a source without headings, sections and pages
_SECTION_FIELDS = (*SECTION_FIELDS, "title")
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_MARKDOWN_NAME = re.compile(r"\.(?:md|markdown|mdown|mkdn?|mdwn|mdx|qmd|rmd)", re.IGNORECASE)
_URL_END = re.compile(r"[?#]")
# Shorter overlaps count only if they are whole lines.
_CERTAIN = 20
# More places than this where an overlap could begin mean repeating text; checking each would take quadratic time.
_MAX_PLACES = 64


class OutlineEntry(NamedTuple):
    """A heading, section, page or part of a source.

    Attributes:
        level: Its depth; entries with a larger number are inside those with a smaller one.
        title: Its title on one line.
        first: Index of its first chunk.
        last: Index of its last chunk (inclusive).
    """

    level: int
    title: str
    first: int
    last: int


class _Start(NamedTuple):
    """The start of an entry.

    Attributes:
        level: Its depth.
        title: Its title.
        row: Index of its chunk.
        inside: Whether that chunk contains text before the start.
        at: Its offset in the text of the source; 0 if it is not in the text.
    """

    level: int
    title: str
    row: int
    inside: bool = False
    at: int = 0


def outline_entries(chunks: Sequence[Chunk], source: str) -> list[OutlineEntry]:
    """Find the parts of a source.

    The first of these that finds more than one: heading metadata ("Header 1"), Markdown headings in the text, section
    metadata ("section", "title"), pages. Without them, about equal parts with the words that each begins with.

    Only ATX headings ("## Title") outside of code fences count. In a source without a Markdown extension they could be
    comments of a program, so most of them must have blank lines around them there.

    Args:
        chunks: All chunks of the source, placed and in order.
        source: The name of the source.
    """
    for find in (_headings_in_metadata, lambda rows: _headings_in_text(_joined(rows), source), _section_names):
        starts = find(chunks)
        if len(starts) > 1:
            return _entries(starts, len(chunks))
    pages = _pages(chunks)
    return pages if len(pages) > 1 else _equal_parts(chunks)


def section_paths(chunks: Sequence[Chunk], source: str) -> list[str]:
    """Return the headings over the start of each chunk, such as "Install > On Windows"; empty if there are none.

    They are Markdown headings in the text, as in the outline. Those that a chunk begins with count, later ones do not.

    Args:
        chunks: All chunks of the source, placed and in order.
        source: The name of the source.
    """
    joined = _joined(chunks)
    starts = _headings_in_text(joined, source)
    paths, above = [""], list[_Start]()
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


def _adjoin(joined: _Joined, first: _Start, second: _Start) -> bool:
    """Whether a heading is in the line under another one, apart from empty lines."""
    return len(joined.text[first.at : second.at].strip().splitlines()) == 1


def _entries(starts: Sequence[_Start], total: int) -> list[OutlineEntry]:
    """End each entry where the next entry of the same or a higher level begins."""
    last = [total - 1] * len(starts)
    unfinished: list[int] = []
    for number, start in enumerate(starts):
        while unfinished and starts[unfinished[-1]].level >= start.level:
            last[unfinished.pop()] = start.row - (not start.inside)
        unfinished.append(number)
    entries = [
        OutlineEntry(start.level, start.title, start.row, max(start.row, end))
        for start, end in zip(starts, last, strict=True)
    ]
    first = starts[0]
    if first.row > 0 or first.inside:
        level = min(start.level for start in starts)
        entries.insert(0, OutlineEntry(level, "(before the first heading)", 0, first.row - (not first.inside)))
    return entries


def _headings_in_metadata(chunks: Sequence[Chunk]) -> list[_Start]:
    """The headings that Markdown and HTML splitters store in metadata, such as "Header 1"."""
    starts: list[_Start] = []
    before: list[str] = [""] * 6
    for row, chunk in enumerate(chunks):
        path = heading_levels(chunk.metadata)
        for level, heading in enumerate(path):
            if heading and path[: level + 1] != before[: level + 1]:
                starts.append(_Start(level, _title(heading), row))
        before = path
    return starts


def _headings_in_text(joined: _Joined, source: str) -> list[_Start]:
    """The Markdown headings in the text of the source, in which overlaps of chunks occur once."""
    starts: list[_Start] = []
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
            row = bisect_right(joined.added, at) - 1
            title = _title(match[2].rstrip(" \t#"))
            starts.append(_Start(len(match[1]), title, row, joined.visible[row] < at, at))
            around = lines[max(0, number - 1) : number], lines[number + 1 : number + 2]
            alone += not any(one.strip() for near in around for one in near)
        at += len(line)
    return starts if _is_markdown(source) or 2 * alone > len(starts) > 1 else []


def _is_markdown(source: str) -> bool:
    """Whether the name of a source has a Markdown extension, before the query and fragment of a URL."""
    path = _URL_END.split(source, maxsplit=1)[0] if "://" in source else source
    return bool(_MARKDOWN_NAME.fullmatch(path[path.rfind(".") :].rstrip()))


class _Joined(NamedTuple):
    """The text of a source, made of its chunks.

    Attributes:
        text: Each character once, if overlaps are known.
        added: For each chunk, the offset of the first character that no chunk before it contains.
        visible: For each chunk, the offset of its first character that is not white space.
    """

    text: str
    added: list[int]
    visible: list[int]


def _joined(chunks: Sequence[Chunk]) -> _Joined:
    """Join ordered chunks; those that neither touch nor overlap are separated by line breaks."""
    overlapping = _overlapping(chunks)
    parts: list[str] = []
    added: list[int] = []
    visible: list[int] = []
    # The end of the text so far, and where the chunk that reaches it begins.
    end, begin, last = 0, 0, chunks[0]
    for chunk in chunks:
        text = chunk.text
        at = _begin(last, chunk, overlapping=overlapping) if added else 0
        if at is None or at > len(last.text):
            # One stripped character was a line break or a space; more of them contained a blank line.
            gap = "\n" if at == len(last.text) + 1 else "\n\n"
            parts.append(gap)
            end += len(gap)
            at = end - begin
        start = begin + at
        added.append(end)
        visible.append(start + len(text) - len(text.lstrip()))
        if start + len(text) >= end:
            parts.append(text[end - start :])
            end, begin, last = start + len(text), start, chunk
    return _Joined("".join(parts), added, visible)


def _begin(last: Chunk, chunk: Chunk, *, overlapping: bool) -> int | None:
    """Where a chunk begins, counted from the start of the last one, by its offset or by its text; None if unknown."""
    at = _distance(last, chunk)
    if at is not None and at >= 0 and chunk.text.startswith(last.text[at : at + len(chunk.text)]):
        return at
    length = _repeated(last.text, chunk.text, fences=overlapping)
    return len(last.text) - length if length else None


def _distance(last: Chunk, chunk: Chunk) -> int | None:
    """The difference of two offsets; None where they are unknown or count from different places."""
    mine, its = place_in_source(last), place_in_source(chunk)
    if mine is None or its is None or mine.page != its.page or not is_exact(last, mine) or not is_exact(chunk, its):
        return None
    return its.start - mine.start


def _overlapping(chunks: Sequence[Chunk]) -> bool:
    """Whether the texts of some adjacent chunks without offsets overlap."""
    return any(
        _distance(before, after) is None and _repeated(before.text, after.text, fences=False)
        for before, after in pairwise(chunks)
    )


def _repeated(before: str, after: str, *, fences: bool) -> int:
    """The number of characters at the end of a text that the next one repeats; 0 if that is not likely."""
    # Splitters do not repeat a whole chunk.
    return 0 if before == after else _overlap(before, after) or _repeated_lines(before, after, fences=fences)


def _overlap(before: str, after: str) -> int:
    """The number of characters at the end of a text that the next one repeats; 0 if they are too few to be certain."""
    seed = after[:_CERTAIN]
    if len(seed) < _CERTAIN:
        return 0
    at = before.find(seed, max(0, len(before) - len(after)))
    for _ in range(_MAX_PLACES):
        if at < 0:
            return 0
        if after.startswith(before[at:]):
            return len(before) - at
        at = before.find(seed, at + 1)
    return 0


def _repeated_lines(before: str, after: str, *, fences: bool) -> int:
    """The number of characters in whole lines, fewer than `_CERTAIN`, that the next text repeats.

    A fence alone can end one code block and begin another one, so it counts only if `fences`.
    """
    for at in range(max(0, len(before) - _CERTAIN + 1), len(before)):
        lines = before[at:]
        first = at == 0 or before[at - 1] in "\r\n"
        last = lines[-1] in "\r\n" or after[len(lines) : len(lines) + 1] in ("", "\r", "\n")
        if first and last and lines.strip() and after.startswith(lines):
            only_fences = all(_FENCE.fullmatch(line) for line in lines.splitlines() if line.strip())
            return 0 if only_fences and not fences else len(lines)
    return 0


def _section_names(chunks: Sequence[Chunk]) -> list[_Start]:
    """The sections by the first metadata key that names more than one."""
    names = {str(name).lower(): name for chunk in chunks for name in chunk.metadata}
    for field in _SECTION_FIELDS:
        values = [chunk.metadata.get(names.get(field, field)) for chunk in chunks]
        starts = [
            _Start(1, _title(value), row)
            for row, value in enumerate(values)
            if isinstance(value, str) and value.strip() and (row == 0 or values[row - 1] != value)
        ]
        if len(starts) > 1:
            return starts
    return []


def _pages(chunks: Sequence[Chunk]) -> list[OutlineEntry]:
    """The pages, combined into ranges if there are more than `MAX_LINES`; none if a chunk has no page."""
    if any(page_of(chunk) is None for chunk in chunks):
        return []
    runs = [(page, list(rows)) for page, rows in groupby(range(len(chunks)), lambda row: page_of(chunks[row]))]
    size = -(-len(runs) // MAX_LINES)
    entries = []
    for start in range(0, len(runs), size):
        combined = runs[start : start + size]
        first, last = combined[0][0], combined[-1][0]
        title = f"page {first}" if first == last else f"pages {first} to {last}"
        entries.append(OutlineEntry(0, _title(title), combined[0][1][0], combined[-1][1][-1]))
    return entries


def _equal_parts(chunks: Sequence[Chunk]) -> list[OutlineEntry]:
    """Parts with about the same number of chunks."""
    number = min(_MAX_PARTS, len(chunks))
    edges = [len(chunks) * part // number for part in range(number + 1)]
    return [
        OutlineEntry(0, f"begins “{_title(chunks[first].text)}”", first, after - 1) for first, after in pairwise(edges)
    ]


def _title(text: str) -> str:
    """A title on one line, without text that could be read as the number of a passage."""
    return without_markers(printable(one_line(start_of(text.strip(), _MAX_TITLE_LENGTH))))
