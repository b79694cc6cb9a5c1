"""The chunk map of a context: the positions of its chunks in the documents, and their order in the context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple

from oprag.compare.db.records import ChunkRecord

__all__ = ["ChunkMap", "DocumentLine", "chunk_map"]

_WIDTH = 600
_STRIP, _GOLD, _ORDER = 14, 5, 64
_BETWEEN_PAGES = 2  # characters
_MAX_TICKS = 400


class DocumentLine(NamedTuple):
    """The documents of a question laid end to end: the start of each document and page, and the document lengths."""

    starts: Mapping[tuple[str, int | None], int]
    lengths: Mapping[str, int]

    @classmethod
    def of(cls, parts: Mapping[tuple[str, int | None], int], documents: Sequence[str]) -> DocumentLine:
        """Lay out documents in this order; `parts` has the length of each (document, page), page None if unpaged."""
        starts: dict[tuple[str, int | None], int] = {}
        lengths: dict[str, int] = {}
        end = 0
        for document in documents:
            begin = end
            pages = sorted((page or 0, length) for (name, page), length in parts.items() if name == document)
            for page, length in pages:
                starts[document, page or None] = end
                end += length + (_BETWEEN_PAGES if page else 0)
            lengths[document] = max(1, end - begin)
            starts.setdefault((document, None), begin)
            end = begin + lengths[document]
        return cls(starts, lengths)

    @property
    def length(self) -> int:
        """The number of characters of all documents."""
        return sum(self.lengths.values())

    def span(self, place: ChunkRecord) -> tuple[int, int] | None:
        """The start and end of a chunk on the line; None if its document is not on it."""
        start = self.starts.get((place.document, place.page))
        return None if start is None else (start + place.start, start + place.end)


class ChunkMap(NamedTuple):
    """The SVG paths of a chunk map, which is 600 wide.

    Attributes:
        kept: The parts of the documents that kept chunks cover.
        dropped: The parts that chunks cover which were retrieved but dropped.
        gold: The gold evidence.
        order: A line for each chunk in the order of the context, the first at the top.
        label: Text alternative of the map.
    """

    kept: str
    dropped: str
    gold: str
    order: str
    label: str


def chunk_map(
    line: DocumentLine,
    kept: Sequence[ChunkRecord],
    dropped: Sequence[ChunkRecord],
    evidence: Iterable[tuple[str, int, int]],
) -> ChunkMap:
    """Draw the kept chunks of a context in context order, the dropped chunks, and the gold evidence."""
    scale = _WIDTH / max(1, line.length)
    spans, dropped_spans = ([span for place in places if (span := line.span(place))] for places in (kept, dropped))
    gold = [
        _box((line.starts[name, None] + start) * scale, _STRIP + 2, max(2.0, (end - start) * scale), _GOLD)
        for name, start, end in evidence
        if (name, None) in line.starts
    ]
    step = _ORDER / max(1, len(spans))
    top = _STRIP + _GOLD + 6
    order = [
        _box(start * scale, top + number * step, max(4.0, (end - start) * scale), max(1.0, min(4.0, step)))
        for number, (start, end) in enumerate(spans)
        if number % (1 + len(spans) // _MAX_TICKS) == 0
    ]
    backward = sum(one[0] > other[0] for one, other in pairwise(spans))
    label = (
        f"{len(spans)} kept chunks in {line.length:,} characters, in the order of the context: "
        f"{backward} times the next chunk comes before the previous one in the documents"
    )
    return ChunkMap(_strip(spans, scale), _strip(dropped_spans, scale), "".join(gold), "".join(order), label)


def _strip(spans: Iterable[tuple[int, int]], scale: float) -> str:
    """A box for each part of the line that spans cover, rounded outward to whole pixels."""
    boxes: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        left, right = floor(start * scale), ceil(end * scale)
        if start < end and boxes and left <= boxes[-1][1]:
            boxes[-1] = boxes[-1][0], max(right, boxes[-1][1])
        elif start < end:
            boxes.append((left, right))
    return "".join(_box(left, 0, right - left, _STRIP) for left, right in boxes)


def _box(left: float, top: float, width: float, height: float) -> str:
    left = min(left, _WIDTH - width)
    return f"M{left:.0f} {top:.3g}h{max(1, round(width))}v{height:.3g}h-{max(1, round(width))}z"
