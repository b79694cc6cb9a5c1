"""Joining chunks that touch or overlap into passages, without repeating or losing text.

Offsets only propose an overlap; the text has to confirm it. Offsets in the wild lie: LlamaIndex finds them by
searching, and on repetitive text the search stops at an earlier copy. Where a repeating text would confirm more than
one overlap, nothing can be confirmed, and the chunks are left apart: losing nothing wins over repeating nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from oprag.chunk import Chunk, PositionKind, Span, counted, quoted
from oprag.positions.ladder import is_exact

__all__ = ["Passage", "each_alone", "place_in_source", "repeated_part", "stitch"]

# No page has such a name, so spans in a run are never compared with others.
_RUN = "\0run "
# White space that a splitter strips between two chunks is rarely longer, and a chunk that was not retrieved rarely
# shorter.
_STRIPPED = 4
# The last part of their keys counts the chunks of a source, or of a run.
_NUMBERED = (PositionKind.STAMPED, PositionKind.LINKS, PositionKind.STORE)
# A text that agrees with itself at another place over fewer characters proves nothing: neighbours often share a letter.
_COINCIDENCE = 8
# More places than this where two texts might agree mean a repeating text; looking at each of them would take quadratic
# time.
_MOST_PLACES = 64


class Passage(NamedTuple):
    """One run of source text; its repr is one line with the start of the text.

    Attributes:
        text: The text; each part of the source once, as far as offsets tell what overlaps.
        chunks: The chunks that it was made of, in order.
        spans: Where it stands in the source, in order; empty where that is not known. More than one where white space
            between chunks was stripped by the splitter.
    """

    text: str
    chunks: tuple[Chunk, ...]
    spans: tuple[Span, ...]

    @property
    def source(self) -> str | None:
        """The name of the source."""
        return self.chunks[0].source

    @property
    def rank(self) -> int:
        """The best rank among the chunks."""
        return min(chunk.rank for chunk in self.chunks)

    def __repr__(self) -> str:
        chunks = counted(len(self.chunks), "chunk")
        size = f"{counted(len(self.text), 'character')}: {quoted(self.text)}"
        return f"Passage(source={quoted(self.source)}, {chunks}, {size})"


def each_alone(chunks: Sequence[Chunk]) -> list[Passage]:
    """Each chunk as a passage of its own."""
    return [Passage(chunk.text, (chunk,), () if chunk.span is None else (chunk.span,)) for chunk in chunks]


def stitch(chunks: Sequence[Chunk], separator: str) -> list[Passage]:
    """Join neighbours in the list that touch or overlap in their source."""
    passages: list[Passage] = []
    runs: list[_Run] = []
    for chunk in chunks:
        if runs and runs[-1].take(chunk):
            continue
        run = _Run(chunk)
        if runs and not runs[-1].leads_to(run):
            passages.append(_passage(runs, separator))
            runs = []
        runs.append(run)
    if runs:
        passages.append(_passage(runs, separator))
    return passages


def place_in_source(chunk: Chunk) -> Span | None:
    """Where a chunk stands in its source, else in the run of the store that it was received in.

    In such a run the texts of all neighbors overlap; it is named as if it were a page.
    """
    place = chunk.store_place
    if chunk.span is not None or place is None or chunk.position is None or not chunk.position.known:
        return chunk.span
    return Span(place.start, place.start + len(chunk.text), f"{_RUN}{place.run}")


class _Run:
    """Text without a hole: one chunk, and the chunks that touch or overlap it."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunks = [chunk]
        self.texts = [chunk.text]
        self.span = place_in_source(chunk)
        self.spans = {self.span}
        self.exact = self.span is not None and is_exact(chunk, self.span)
        self.in_source = chunk.span is not None

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def tail(self, length: int) -> str:
        """The last characters; joining the whole text for each chunk would take quadratic time."""
        parts: list[str] = []
        for part in reversed(self.texts):
            if length <= 0:
                break
            parts.append(part[-length:])
            length -= len(part)
        return "".join(reversed(parts))

    def take(self, chunk: Chunk) -> bool:
        """Add the chunk where its text continues or repeats the run's; False where that cannot be confirmed."""
        its = place_in_source(chunk)
        new = self._new_text(chunk, its)
        if new is None or self.span is None or its is None:
            return False
        self.chunks.append(chunk)
        if new:
            self.texts.append(new)
        self.spans.add(its)
        self.span = Span(self.span.start, max(self.span.end, its.end), self.span.page)
        return True

    def _new_text(self, chunk: Chunk, its: Span | None) -> str | None:
        """The text that the chunk adds to the run; None where it is not certain that it belongs there."""
        mine = self.span
        if mine is None or its is None or not mine.start <= its.start <= mine.end:
            return None
        if not self.exact or not is_exact(chunk, its) or not self._comparable(chunk, its):
            return None
        if its.start == mine.end:
            return None if _follows(self.chunks[-1], chunk) is False else chunk.text
        if its.end <= mine.end:
            return "" if self._contains(chunk, its, mine.end - its.start) else None
        overlap = mine.end - its.start
        return chunk.text[overlap:] if _overlap_is_certain(self.tail(len(chunk.text)), chunk.text, overlap) else None

    def _contains(self, chunk: Chunk, its: Span, before_end: int) -> bool:
        """Whether the run contains the chunk's text this many characters before its end, and only there."""
        # Two different chunks of one source cannot have the same span: the offset is wrong.
        if its in self.spans:
            return False
        around = self.tail(before_end + len(chunk.text))
        return _stands_once(chunk.text, around, len(around) - before_end)

    def leads_to(self, other: _Run) -> bool:
        """Whether nothing but white space stands between the two runs in the source."""
        last, first = self.chunks[-1], other.chunks[0]
        if last.source is None or last.source != first.source:
            return False
        neighbours = _follows(last, first)
        if neighbours is not None:
            return neighbours
        if self.span is None or other.span is None or self.span.page != other.span.page:
            return False
        return self.exact and other.exact and 0 < other.span.start - self.span.end <= _STRIPPED

    def _comparable(self, chunk: Chunk, its: Span) -> bool:
        """Whether the offsets count from the same place."""
        return (
            self.span is not None
            and self.span.page == its.page
            and chunk.source is not None
            and self.chunks[-1].source == chunk.source
        )


def _passage(runs: Sequence[_Run], separator: str) -> Passage:
    if len(runs) == 1:
        (run,) = runs
        return Passage(run.text, tuple(run.chunks), tuple(_known_spans(runs)))
    chunks = tuple(chunk for run in runs for chunk in run.chunks)
    return Passage(separator.join([run.text for run in runs]), chunks, tuple(_known_spans(runs)))


def _known_spans(runs: Sequence[_Run]) -> list[Span]:
    """Where runs stand in the source, for those of which that is known."""
    return [run.span for run in runs if run.in_source and run.span is not None]


def _follows(first: Chunk, second: Chunk) -> bool | None:
    """Whether one chunk is the next of the other in the source, or None where their positions do not tell."""
    a, b = first.position, second.position
    if a is None or b is None or a.kind is not b.kind or a.kind not in _NUMBERED:
        return None
    return bool(a.key[:-1] == b.key[:-1] and a.key[-1] + 1 == b.key[-1])


def repeated_part(text: str, place: Span, other: str, its: Span) -> tuple[int, int] | None:
    """The start and end of the part of a text that another text of the same source or page has too.

    None where that is not certain. Each place has as many characters as its text.
    """
    if place.start >= its.end or its.start >= place.end or place == its:
        return None
    begin, end = its.start - place.start, its.end - place.start
    if begin <= 0 and end >= len(text):
        # As far before its place as `_Run` looks.
        skipped = max(0, -begin - len(text))
        return (0, len(text)) if _stands_once(text, other[skipped:], -begin - skipped) else None
    if begin >= 0 and end <= len(text):
        return (begin, end) if _stands_once(other, text, begin) else None
    if begin < 0:
        return (0, end) if _overlap_is_certain(other, text, end) else None
    return (begin, len(text)) if _overlap_is_certain(text, other, len(text) - begin) else None


def _stands_once(piece: str, text: str, at: int) -> bool:
    """Whether the piece is in the text at this place, and at no other one."""
    return text.find(piece) == at and text.find(piece, at + 1) < 0


def _overlap_is_certain(before: str, after: str, overlap: int) -> bool:
    """Whether the end of one text is the start of the other over exactly this length, and over no other length."""
    if not before.endswith(after[:overlap]):
        return False
    if any(before.endswith(after[:length]) for length in range(overlap + 1, _COINCIDENCE)):
        return False
    proposed = len(before) - overlap
    # A much shorter agreement inside a long one is a word that comes twice, not another overlap.
    seed = after[: max(_COINCIDENCE, overlap // 4)]
    for index, place in enumerate(_places(seed, before, 0)):
        if index == _MOST_PLACES or (place != proposed and after.startswith(before[place:])):
            return False
    return not _repeats(before + after[overlap:], max(_COINCIDENCE, len(after) - overlap))


def _repeats(text: str, least: int) -> bool:
    """Whether the text is one pattern over and over, as far as it reaches: its start is its end again."""
    for index, place in enumerate(_places(text[:least], text, 1)):
        if index == _MOST_PLACES or text.startswith(text[place:]):
            return True
    return False


def _places(piece: str, text: str, start: int) -> Iterator[int]:
    """Every place of a piece in a text, overlapping ones too."""
    while (start := text.find(piece, start)) >= 0:
        yield start
        start += 1
