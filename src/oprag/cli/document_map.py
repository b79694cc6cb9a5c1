"""The places of kept and dropped chunks in their sources."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, get_args

from oprag.chunk import Chunk, DropReason
from oprag.context import Context
from oprag.positions.ladder import page_of
from oprag.text_table import escaped, shortened

__all__ = ["KEPT", "Cell", "DocumentMap", "Mark", "Row", "Segment", "as_svg", "map_of", "strip"]

KEPT = "kept"


class Mark(NamedTuple):
    """A chunk on the line of its source: kept, or dropped for a reason."""

    start: int
    end: int
    chunk: Chunk
    state: str
    detail: str = ""


class Segment(NamedTuple):
    """A part of a line, and the state of the chunk that is there."""

    start: int
    end: int
    state: str


class Row(NamedTuple):
    """One source as a line, with its retrieved chunks, best first."""

    source: str
    length: int
    pages: tuple[int, ...]  # start offset of each page; empty for a source without pages
    marks: tuple[Mark, ...]

    def segments(self, states: Sequence[str]) -> list[Segment]:
        """The parts of the line that have chunks, one after another; where chunks overlap the first state counts."""
        borders: list[tuple[int, int, int]] = []
        for number, state in enumerate(states):
            for mark in self.marks:
                start, end = max(0, mark.start), min(self.length, mark.end)
                if mark.state == state and start < end:
                    borders += [(start, 1, number), (end, -1, number)]
        found: list[Segment] = []
        standing = [0] * len(states)
        last = 0
        for place, step, number in sorted(borders):
            if last < place and any(standing):
                first = next(state for state, count in enumerate(standing) if count)
                found.append(Segment(last, place, states[first]))
            last = place
            standing[number] += step
        return found


class DocumentMap(NamedTuple):
    """All sources, and how many chunks have each state."""

    rows: tuple[Row, ...]
    counts: dict[str, int]  # "kept" first, then reasons in the sequence in which they are applied
    unplaced: int  # chunks that have no place on any of the lines

    @property
    def states(self) -> tuple[str, ...]:
        """The states that occur, "kept" always."""
        return tuple(self.counts)

    @property
    def length(self) -> int:
        """The characters of all sources."""
        return sum(row.length for row in self.rows)

    def covered(self) -> dict[str, int]:
        """How many characters have each state; "" for those that were not retrieved."""
        found = {"": self.length, **dict.fromkeys(self.states, 0)}
        for row in self.rows:
            for start, end, state in row.segments(self.states):
                found[state] += end - start
                found[""] -= end - start
        return found


def map_of(context: Context, lengths: Mapping[str, int | Sequence[int]]) -> DocumentMap:
    """The places of a context's chunks in sources of these lengths, or whose pages have these lengths."""
    marks: dict[str, list[Mark]] = {name: [] for name in lengths}
    unplaced = 0
    retrieved = list(_retrieved(context))
    for chunk, state, detail in sorted(retrieved, key=lambda one: one[0].rank):
        name = _name(chunk, lengths)
        place = None if name is None else _place(chunk, lengths[name])
        if name is None or place is None:
            unplaced += 1
        else:
            marks[name].append(Mark(*place, chunk, state, detail))
    rows = tuple(
        Row(name, sum(_pages(length)), _begins(length), tuple(marks[name])) for name, length in lengths.items()
    )
    found = [state for _, state, _ in retrieved]
    return DocumentMap(rows, {state: found.count(state) for state in _in_sequence(found)}, unplaced)


def _retrieved(context: Context) -> Iterator[tuple[Chunk, str, str]]:
    for chunk in context.kept:
        yield chunk, KEPT, ""
    for drop in context.dropped:
        yield drop.chunk, drop.reason, drop.detail


def _in_sequence(found: Sequence[str]) -> list[str]:
    known: list[str] = [KEPT, *get_args(DropReason)]
    return [*(state for state in known if state == KEPT or state in found), *sorted(set(found) - set(known))]


def _name(chunk: Chunk, lengths: Mapping[str, int | Sequence[int]]) -> str | None:
    """The name of the line; `source_key` may have made another source of the chunk."""
    return next((name for name in (chunk.source, chunk.metadata.get("source")) if name in lengths), None)


def _place(chunk: Chunk, length: int | Sequence[int]) -> tuple[int, int] | None:
    span, pages = chunk.span, _pages(length)
    if span is None:
        return None
    page = 1 if span.page is None else span.page
    if not isinstance(page, int) or not 1 <= page <= len(pages) or span.start > pages[page - 1]:
        return None
    before = sum(pages[: page - 1])
    return before + span.start, before + min(span.end, pages[page - 1])


def _pages(length: int | Sequence[int]) -> Sequence[int]:
    return [length] if isinstance(length, int) else length


def _begins(length: int | Sequence[int]) -> tuple[int, ...]:
    return () if isinstance(length, int) else tuple(accumulate(length, initial=0))[:-1]


class Cell(NamedTuple):
    """A part of a source, one character wide on the terminal."""

    # "kept" where anything was kept, else the reason for which most of what was retrieved was dropped, or "".
    state: str
    half: bool  # whether that is half of the cell or more


def strip(row: Row, states: Sequence[str], width: int) -> list[Cell]:
    """The cells of a source; the first of the states is the most important one."""
    segments = row.segments(states)
    starts, ends = [segment.start for segment in segments], [segment.end for segment in segments]
    cells: list[Cell] = []
    for number in range(width):
        begin, end = _border(row, number, width), _border(row, number, width, 1)
        counts = dict.fromkeys(states, 0)
        for segment in segments[bisect_right(ends, begin) : bisect_left(starts, end)]:
            counts[segment.state] += min(end, segment.end) - max(begin, segment.start)
        cells.append(_cell(counts, end - begin))
    return cells


def _border(row: Row, number: int, width: int, size: int = 0) -> int:
    """Where a cell begins, or ends with size 1; a source that is shorter than the strip has no empty cells."""
    begin = number * row.length // width
    return max(begin + 1, (number + 1) * row.length // width) if size else begin


def _cell(counts: Mapping[str, int], length: int) -> Cell:
    kept = counts.get(KEPT, 0)
    state = KEPT if kept else max(counts, key=counts.__getitem__, default="")
    if not counts.get(state):
        return Cell("", half=False)
    return Cell(state, 2 * counts[state] >= length)


_WIDTH, _LEFT, _RIGHT = 960, 150, 24
_LINE = _WIDTH - _LEFT - _RIGHT
_LANE, _KEPT_LANE = 12, 22
_THINNEST = 1.5  # a mark that is narrower could not be seen, or pointed at
_MOST_PAGES = 200  # more borders than this are a grey area
_EXCERPT = 120
_KIND = "oprag-map"

# Light and dark colours that people with any colour vision tell apart, for reasons in the sequence of the lanes. Each
# state has a lane of its own too, so that no colour is needed.
_COLOURS = [
    ("#1a7f37", "#4ac26b"),
    ("#9a6700", "#d4a72c"),
    ("#0550ae", "#6cb6ff"),
    ("#bc4c00", "#f0883e"),
    ("#8250df", "#c297ff"),
    ("#bf3989", "#ff80c8"),
    ("#57606a", "#afb8c1"),
]


def as_svg(chart: DocumentMap, question: str) -> str:
    """The map as SVG: a row for each source, a lane in it for each state, a mark with a tooltip for each chunk.

    Light or dark as the reader's system is; nothing is loaded from elsewhere, and text of documents is escaped.
    """
    from oprag.compare.report.charts.svg import picture

    lanes = _Lanes(chart.states)
    body: list[str] = []
    top = 64
    for row in chart.rows:
        body += _row(row, lanes, top)
        top += lanes.height + 58
    body += _legend(chart, lanes, top)
    height = top + 22 * (len(chart.states) + 1 + bool(chart.unplaced)) + 8
    return picture(
        [
            f"<style>{_style(chart)}</style>",
            f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
            f'<text class="head" x="24" y="32">{escaped(shortened(question, 100))}</text>',
            *body,
        ],
        title=f"Where the context of “{question}” lies in its documents",
        description=_description(chart),
        width=_WIDTH,
        height=height,
        kind=_KIND,
    )


class _Lanes:
    """Where each state stands in a row."""

    def __init__(self, states: tuple[str, ...]) -> None:
        self.places: dict[str, tuple[int, int]] = {}
        self.height = 0
        for state in states:
            high = _KEPT_LANE if state == KEPT else _LANE
            self.places[state] = (self.height, high)
            self.height += high + 4


def _row(row: Row, lanes: _Lanes, top: int) -> Iterator[str]:
    pages = f"{len(row.pages):,} pages, " if row.pages else ""
    yield f'<text class="name" x="24" y="{top}">{escaped(shortened(row.source, 90))}'
    yield f'<tspan class="quiet" dx="10">{pages}{row.length:,} characters</tspan></text>'
    top += 12
    scale = _LINE / max(1, row.length)
    for state, (down, high) in lanes.places.items():
        middle = top + down + high / 2 + 4
        yield f'<text class="lane" x="{_LEFT - 10}" y="{middle:g}" text-anchor="end">{escaped(state)}</text>'
        yield f'<rect class="line" x="{_LEFT}" y="{top + down}" width="{_LINE}" height="{high}"/>'
    if 1 < len(row.pages) <= _MOST_PAGES:
        for begin in row.pages[1:]:
            at = f"{_LEFT + begin * scale:.2f}"
            yield f'<line class="border" x1="{at}" x2="{at}" y1="{top}" y2="{top + lanes.height - 4}"/>'
    # The best ones last, and so on top.
    for mark in reversed(row.marks):
        down, high = lanes.places[mark.state]
        wide = max(_THINNEST, (mark.end - mark.start) * scale)
        left = min(_LEFT + mark.start * scale, _LEFT + _LINE - wide)
        number = list(lanes.places).index(mark.state)
        yield (
            f'<rect class="s{number}" x="{left:.2f}" y="{top + down}" width="{wide:.2f}" height="{high}">'
            f"<title>{escaped(_tooltip(mark))}</title></rect>"
        )
    below = top + lanes.height + 10
    yield f'<text class="quiet" x="{_LEFT}" y="{below}">{"page 1" if row.pages else "0"}</text>'
    last = f"page {len(row.pages):,}" if row.pages else f"{row.length:,}"
    yield f'<text class="quiet" x="{_LEFT + _LINE}" y="{below}" text-anchor="end">{last}</text>'


def _legend(chart: DocumentMap, lanes: _Lanes, top: int) -> Iterator[str]:
    lines = [*_counted(chart).items(), ("", "not retrieved")]
    for number, (state, text) in enumerate(lines):
        y = top + 22 * number
        kind = "line" if state not in lanes.places else f"s{list(lanes.places).index(state)}"
        yield f'<rect class="{kind}" x="24" y="{y - 11}" width="16" height="14"/>'
        yield f'<text class="text" x="50" y="{y}">{escaped(text)}</text>'
    if chart.unplaced:
        text = f"{chart.unplaced:,} retrieved chunks have no place in these documents"
        yield f'<text class="text" x="50" y="{top + 22 * len(lines)}">{text}</text>'


def _counted(chart: DocumentMap) -> dict[str, str]:
    return {
        state: f"{state if state == KEPT else f'dropped by {state}'}: {count:,} {'chunk' if count == 1 else 'chunks'}"
        for state, count in chart.counts.items()
    }


def _description(chart: DocumentMap) -> str:
    parts = [*_counted(chart).values(), f"{chart.length:,} characters in all"]
    for row in chart.rows:
        kept = [mark for mark in row.marks if mark.state == KEPT]
        places = ", ".join(_characters(mark) for mark in sorted(kept, key=lambda mark: mark.start)[:12])
        more = f" and {len(kept) - 12} more" if len(kept) > 12 else ""
        parts.append(f"{row.source}: {f'kept are {places}{more}' if kept else 'nothing was kept'}")
    return ". ".join(parts) + "."


def _tooltip(mark: Mark) -> str:
    chunk = mark.chunk
    lines = [f"rank {chunk.rank}, {mark.state if mark.state == KEPT else f'dropped by {mark.state}'}"]
    if mark.detail:
        lines[0] += f" ({mark.detail})"
    if chunk.neighbor_of is not None:
        lines[0] += f", beside rank {chunk.neighbor_of}"
    figures = {"score": chunk.score, "similarity": chunk.similarity}
    known = [f"{name} {figure:.3f}" for name, figure in figures.items() if figure is not None]
    lines.append(", ".join([*known, _characters(mark)]))
    lines.append(shortened(" ".join(chunk.text.split()), _EXCERPT))
    return "\n".join(lines)


def _characters(mark: Mark) -> str:
    span = mark.chunk.span
    if span is None or span.page is None:
        return f"characters {mark.start:,}–{mark.end:,}"
    return f"page {page_of(mark.chunk)}, characters {span.start:,}–{span.end:,}"


def _style(chart: DocumentMap) -> str:
    """The rules, each for this kind of picture alone: within a page they would else hold for the page."""

    def of(rules: dict[str, str]) -> str:
        return "".join(f".{_KIND} {name}{{{rule}}}" for name, rule in rules.items())

    def states(dark: int) -> dict[str, str]:
        colours = [_COLOURS[number % len(_COLOURS)][dark] for number in range(len(chart.states))]
        return {f".s{number}": f"fill:{colour}" for number, colour in enumerate(colours)}

    light = {
        "text": "font:13px system-ui,sans-serif;fill:#1f2328",
        ".head": "font-size:17px;font-weight:600",
        ".name": "font-weight:600",
        ".quiet": "font-size:11px;font-weight:400;fill:#59636e",
        ".lane": "font-size:11px;font-weight:400;fill:#59636e",
        ".page": "fill:#fff",
        ".line": "fill:#eaeef2",
        ".border": "stroke:#afb8c1;stroke-width:1",
        "rect:hover": "stroke:#1f2328",
        "rect.page:hover": "stroke:none",
        "rect.line:hover": "stroke:none",
    }
    dark = {
        "text": "fill:#f0f6fc",
        ".quiet": "fill:#9198a1",
        ".lane": "fill:#9198a1",
        ".page": "fill:#0d1117",
        ".line": "fill:#212830",
        ".border": "stroke:#59636e",
        "rect:hover": "stroke:#f0f6fc",
    }
    return f"{of(light | states(0))}@media (prefers-color-scheme:dark){{{of(dark | states(1))}}}"
