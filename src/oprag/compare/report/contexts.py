"""Two contexts of a question side by side: their chunk maps, and chunk texts from the data of the experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor
from typing import Any, NamedTuple

from oprag.compare.data.data_set import DataSet
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import ChunkRecord, ContextRecord, QuestionRecord, StoredAnswer
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.masking import shown
from oprag.text_table import escaped, one_line, shortened

__all__ = [
    "MAX_NAME_LENGTH",
    "CellName",
    "ChunkMap",
    "DocumentLine",
    "Side",
    "SizeLimits",
    "Texts",
    "chosen",
    "chunk_map",
    "sides_of",
    "texts_of",
]

_NO_EXPERIMENT = (
    "A results file does not contain document text, so only the positions of chunks are shown. "
    "`oprag report --experiment FILE.toml` adds their texts."
)
MAX_NAME_LENGTH = 200
"""Maximum number of characters of a document or question name, which is repeated for every chunk."""
_EXCERPT = 70  # characters of a chunk shown next to its position
# Options that only reorder the kept chunks.
_ORDERS = ("order", "source_ranking")
# Of chunk maps, in pixels.
_WIDTH = 600
_STRIP, _GOLD, _ORDER = 14, 5, 64
_BETWEEN_PAGES = 2  # characters
_MAX_TICKS = 400


@dataclass(frozen=True)
class Texts:
    """The texts of documents.

    Attributes:
        data: The data sets by name; empty without texts.
        questions: The keys of the questions whose documents have not changed since they were answered.
        lacking: Why texts are missing; empty if none are.
    """

    data: Mapping[str, DataSet] = field(default_factory=dict, repr=False)
    questions: frozenset[str] = frozenset()
    lacking: str = _NO_EXPERIMENT

    def document(self, question: str, data: str, name: str) -> str | Sequence[str] | None:
        """The text of a document of a question (by its key), or its pages; None if missing."""
        available = question in self.questions and data in self.data
        return self.data[data].documents.get(name) if available else None


def texts_of(given: ResolvedExperiment | None, question_keys: Sequence[str]) -> Texts:
    """The texts of the documents of the questions in a results file.

    A question's key depends on the text of its documents, so a document that has changed since is not shown.
    """
    if given is None:
        return Texts()
    known = {row.key for row in given.question_records}
    questions = frozenset(known.intersection(question_keys))
    lacking = ""
    if len(questions) < len(question_keys):
        lacking = (
            f"Texts are shown for {len(questions):,} of {len(question_keys):,} questions. For the others, the "
            "documents are missing in the data of the experiment, or have changed since the questions were answered."
        )
    return Texts(given.experiment.data, questions, lacking)


class CellName(NamedTuple):
    """A cell with its row, its key, its display name, and the values of its setting."""

    row: int
    key: str
    name: str
    values: Mapping[str, Any]


class SizeLimits(NamedTuple):
    """How much of a question is shown."""

    answer: int  # characters of each answer
    chunks: int  # number of chunks of each context
    chunk: int  # characters of each chunk
    prompts: int  # characters of the prompts of each context


class Side(NamedTuple):
    """One of the two contexts, as shown."""

    name: str
    summary: str
    map: str
    chunks: Sequence[Mapping[str, Any]]
    more: int


def chosen(
    cells: Sequence[CellName], answers: Mapping[str, StoredAnswer], scores: Mapping[str, float]
) -> list[CellName]:
    """The two cells whose contexts are shown, preferably two that differ only in the order.

    Among such pairs, the one with the largest score difference; otherwise the best and the worst cell with
    different contexts.
    """
    with_context = [cell for cell in cells if cell.key in answers and answers[cell.key].context is not None]
    # Cells without a score cannot be compared, so use them only if fewer than two have a score.
    candidates = scored if len(scored := [cell for cell in with_context if cell.key in scores]) > 1 else with_context
    groups: dict[str, list[CellName]] = {}
    for cell in candidates:
        shared = sorted((name, str(value)) for name, value in cell.values.items() if name not in _ORDERS)
        groups.setdefault(str(shared), []).append(cell)
    found = [_farthest(group, answers, scores) for group in groups.values()]
    pairs = [pair for pair in found if pair is not None]
    if not pairs and (farthest := _farthest(candidates, answers, scores)) is not None:
        pairs = [farthest]
    if not pairs:
        return candidates[:1]
    score_differences = [abs(scores.get(one.key, 0) - scores.get(other.key, 0)) for one, other in pairs]
    return list(pairs[score_differences.index(max(score_differences))])


def _farthest(
    cells: Sequence[CellName], answers: Mapping[str, StoredAnswer], scores: Mapping[str, float]
) -> tuple[CellName, CellName] | None:
    """The two cells with different contexts and the largest score difference, in input order; None if none differ."""
    for first in sorted(cells, key=lambda cell: scores.get(cell.key, 0)):
        others = [cell for cell in cells if answers[cell.key].context != answers[first.key].context]
        if others:
            other = max(others, key=lambda cell: scores.get(cell.key, 0) - scores.get(first.key, 0))
            return (first, other) if cells.index(first) < cells.index(other) else (other, first)
    return None


def sides_of(
    number: int,
    question: QuestionRecord,
    pair: Sequence[tuple[CellName, StoredAnswer, float | None]],
    *,
    reader: ResultsReader,
    texts: Texts,
    limits: SizeLimits,
) -> tuple[list[Side], list[Mapping[str, Any]]]:
    """The contexts of two cells, and the texts of their chunks in the order of the documents."""
    sides: list[Side] = []
    shown: dict[tuple[int, int], ChunkRecord] = {}
    indexes: dict[str, int] = {}
    for cell, answer, score in pair:
        context = reader.context(answer.context or "")
        index = indexes.setdefault(context.index_key, len(indexes) + 1)
        depth = cell.values.get("max_candidates") or cell.values.get("k")
        search, store = cell.values.get("search", ""), cell.values.get("store", "")
        hits = reader.retrieved(context.index_key, question.question, search, store, depth)
        rows = [row for row, _, _ in context.kept]
        places = reader.pieces(context.index_key, [*rows, *hits])
        line = _line(question, context, reader, texts)
        picture = chunk_map(
            line,
            [places[row] for row in rows if row in places],
            [places[row] for row in hits if row in places and row not in rows],
            question.evidence,
        )
        chunks = [
            {
                "anchor": f"q{number}-{index}-{row}",
                "place": _place(places[row], several=len(question.documents) > 1),
                "figures": f"rank {rank}" + ("" if cosine is None else f", cosine {cosine:.2f}"),
                "gold": _is_gold(line, places[row], question),
                "excerpt": shortened(one_line(_text(question, places[row], texts)), _EXCERPT),
            }
            for row, rank, cosine in context.kept[: limits.chunks]
            if row in places
        ]
        shown |= {(index, row): places[row] for row in rows[: limits.chunks] if row in places}
        parts = [f"{len(rows):,} chunks"] + [f"{count:,} dropped by {why}" for why, count in context.dropped.items()]
        parts += [] if score is None else [f"score {score:.3f}"]
        more = len(rows) - len(chunks)
        sides.append(Side(cell.name, ", ".join(parts), picture.svg, chunks, more))
    chunk_texts: list[Mapping[str, Any]] = [
        {
            "anchor": f"q{number}-{index}-{row}",
            "place": _place(place, several=len(question.documents) > 1),
            "text": shortened(text, limits.chunk),
        }
        for (index, row), place in sorted(
            shown.items(), key=lambda one: (one[1].document, one[1].page or 0, *one[1][2:])
        )
        if limits.chunk and (text := _text(question, place, texts))
    ]
    return sides, chunk_texts


def _line(question: QuestionRecord, context: ContextRecord, reader: ResultsReader, texts: Texts) -> DocumentLine:
    """The documents laid end to end; their lengths come from the texts if available, else from the results file."""
    parts: dict[tuple[str, int | None], int] = {}
    known = reader.document_ends(context.index_key)
    for name in question.documents:
        document = texts.document(question.key, question.data, name)
        if document is None:
            parts |= {place: length for place, length in known.items() if place[0] == name}
        elif isinstance(document, str):
            parts[name, None] = len(document)
        else:
            parts |= {(name, page): len(text) for page, text in enumerate(document, 1)}
    return DocumentLine.of(parts, question.documents)


def _text(question: QuestionRecord, place: ChunkRecord, texts: Texts) -> str:
    document = texts.document(question.key, question.data, place.document)
    if document is None:
        return ""
    if place.page is not None and not isinstance(document, str):
        document = document[place.page - 1] if place.page <= len(document) else ""
    return (document if isinstance(document, str) else "")[place.start : place.end]


def _place(place: ChunkRecord, *, several: bool) -> str:
    where = f"{shown(place.document, MAX_NAME_LENGTH)}, " if several else ""
    where += "" if place.page is None else f"page {place.page}, "
    return f"{where}characters {place.start:,}–{place.end:,}"


def _is_gold(line: DocumentLine, place: ChunkRecord, question: QuestionRecord) -> bool:
    span = line.span(place)
    return span is not None and any(
        span[0] < line.starts[name, None] + end and line.starts[name, None] + start < span[1]
        for name, start, end in question.evidence
        if (name, None) in line.starts
    )


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

    @property
    def svg(self) -> str:
        """The map as SVG."""
        return (
            f'<svg class="map" viewBox="0 0 {_WIDTH} 90" role="img" aria-label="{escaped(self.label)}">'
            f'<path class="out" d="{self.dropped}"/><path class="kept" d="{self.kept}"/>'
            f'<path class="gold" d="{self.gold}"/><path class="kept" d="{self.order}"/></svg>'
        )


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
