"""Join chunks that touch or overlap into passages, without repeating or losing text.

Offsets only suggest an overlap; the text must confirm it, because offsets can be wrong: LlamaIndex finds them with a
text search, which in repetitive text stops at an earlier copy. If repetitive text would confirm several overlaps, the
chunks are not joined: repeated text is better than lost text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oprag.chunk import Chunk, Passage, PositionKind, Span
from oprag.positions.fields import NUMBERING_FIELD
from oprag.positions.readings import is_exact

__all__ = [
    "NUMBERED",
    "STRIPPED",
    "added_texts",
    "each_alone",
    "place_in_source",
    "span_in_source",
    "stitch",
]

# Prefix of the page of spans that are relative to a run; no real page has such a name, so they never match other spans.
_RUN = "\0run "
# Maximum gap in characters that counts as whitespace stripped by the splitter; a missing chunk is rarely shorter.
STRIPPED = 4
# Kinds whose keys end with the number of the chunk in its source or run.
NUMBERED = (PositionKind.STAMPED, PositionKind.LINKS)
# Matches of fewer characters may be coincidence: adjacent texts often share a letter.
_COINCIDENCE = 8
# More candidate matches than this indicate repetitive text; checking all of them would take quadratic time.
_MAX_PLACES = 64


def each_alone(chunks: Sequence[Chunk]) -> list[Passage]:
    """One passage per chunk."""
    return [Passage(chunk.text, (chunk,), () if chunk.span is None else (chunk.span,)) for chunk in chunks]


def stitch(chunks: Sequence[Chunk], separator: str) -> list[Passage]:
    """Join consecutive chunks of the list that touch or overlap in their source."""
    passages: list[Passage] = []
    runs: list[_Run] = []
    for chunk in chunks:
        if runs and runs[-1].take(chunk) is not None:
            continue
        run = _Run(chunk)
        if runs and not runs[-1].leads_to(run):
            passages.append(_passage(runs, separator))
            runs = []
        runs.append(run)
    if runs:
        passages.append(_passage(runs, separator))
    return passages


def added_texts(chunks: Iterable[Chunk]) -> Iterator[str]:
    """Yield what each chunk adds to the passage of the chunks before it: its whole text, the end of it, or nothing."""
    run: _Run | None = None
    for chunk in chunks:
        added = None if run is None else run.take(chunk)
        if added is None:
            run, added = _Run(chunk), chunk.text
        yield added


def place_in_source(chunk: Chunk) -> Span | None:
    """The span of a chunk in its source, else in its run of chunks that overlap; None if both are unknown."""
    run = None if chunk.place is None else chunk.place.run
    if chunk.span is not None or run is None or chunk.position is None or not chunk.position.known:
        return chunk.span
    return run._replace(page=f"{_RUN}{run.page}")


def span_in_source(place: Span | None) -> Span | None:
    """The span of a place that `place_in_source` returned; None for a place in a run."""
    return None if place is None or (isinstance(place.page, str) and place.page.startswith(_RUN)) else place


class _Run:
    """Contiguous text: a chunk, and the chunks that touch or overlap it."""

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
        """The last `length` characters; joining the full text for each chunk would take quadratic time."""
        parts: list[str] = []
        for part in reversed(self.texts):
            if length <= 0:
                break
            parts.append(part[-length:])
            length -= len(part)
        return "".join(reversed(parts))

    def take(self, chunk: Chunk) -> str | None:
        """Add the chunk if its text continues or repeats the run's, and return what is new; None if unconfirmed."""
        span = place_in_source(chunk)
        new = self._new_text(chunk, span)
        if new is None or self.span is None or span is None:
            return None
        self.chunks.append(chunk)
        if new:
            self.texts.append(new)
        self.spans.add(span)
        self.span = Span(self.span.start, max(self.span.end, span.end), self.span.page)
        return new

    def _new_text(self, chunk: Chunk, span: Span | None) -> str | None:
        """The text that the chunk adds to the run; None if it may not belong there."""
        run = self.span
        if run is None or span is None or not run.start <= span.start <= run.end:
            return None
        if not self.exact or not is_exact(chunk, span) or not self._comparable(chunk, span):
            return None
        if span.start == run.end:
            return None if _follows(self.chunks[-1], chunk) is False else chunk.text
        if span.end <= run.end:
            return "" if self._contains(chunk, span, run.end - span.start) else None
        overlap = run.end - span.start
        return chunk.text[overlap:] if _overlap_is_certain(self.tail(len(chunk.text)), chunk.text, overlap) else None

    def _contains(self, chunk: Chunk, span: Span, before_end: int) -> bool:
        """Whether the run contains the chunk's text this many characters before its end, and only there."""
        # Different chunks of a source cannot have the same span, so the offset is wrong.
        if span in self.spans:
            return False
        tail = self.tail(before_end + len(chunk.text))
        return _occurs_only_at(chunk.text, tail, len(tail) - before_end)

    def leads_to(self, other: _Run) -> bool:
        """Whether the other run follows in the source, with nothing but whitespace between."""
        last, first = self.chunks[-1], other.chunks[0]
        if last.source is None or last.source != first.source:
            return False
        follows = _follows(last, first)
        if follows is not None:
            return follows
        if self.span is None or other.span is None or self.span.page != other.span.page:
            return False
        return self.exact and other.exact and 0 < other.span.start - self.span.end <= STRIPPED

    def _comparable(self, chunk: Chunk, span: Span) -> bool:
        """Whether the offsets are relative to the same source and page."""
        return (
            self.span is not None
            and self.span.page == span.page
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
    """The spans in the source of the runs for which they are known."""
    return [run.span for run in runs if run.in_source and run.span is not None]


def _follows(first: Chunk, second: Chunk) -> bool | None:
    """Whether the second chunk is the next after the first in the source; None if unknown from their positions."""
    if first.place is not None and second.place is not None and min(first.place.number, second.place.number) >= 0:
        return first.place.number + 1 == second.place.number
    a, b = first.position, second.position
    # The sequence of a store tells it only where all chunks are listed, or texts overlap.
    if a is None or b is None or a.kind is not b.kind or a.kind not in NUMBERED:
        return None
    if first.document_id != second.document_id and NUMBERING_FIELD not in first.metadata:
        # Other tools may number the chunks of each document from 0.
        return None
    return bool(a.key[:-1] == b.key[:-1] and a.key[-1] + 1 == b.key[-1])


def _occurs_only_at(piece: str, text: str, at: int) -> bool:
    """Whether the piece occurs in the text at this offset and nowhere else."""
    return text.find(piece) == at and text.find(piece, at + 1) < 0


def _overlap_is_certain(before: str, after: str, overlap: int) -> bool:
    """Whether the end of the first text equals the start of the second for this length, and for no other length."""
    if not before.endswith(after[:overlap]):
        return False
    if any(before.endswith(after[:length]) for length in range(overlap + 1, _COINCIDENCE)):
        return False
    proposed = len(before) - overlap
    # A much shorter match within a long overlap is a repeated word, not another possible overlap.
    seed = after[: max(_COINCIDENCE, overlap // 4)]
    for index, place in enumerate(_places(seed, before, 0)):
        if index == _MAX_PLACES or (place != proposed and after.startswith(before[place:])):
            return False
    return not _repeats(before + after[overlap:], max(_COINCIDENCE, len(after) - overlap))


def _repeats(text: str, minimum: int) -> bool:
    """Whether the text repeats a pattern: it ends with at least `minimum` characters of its own start."""
    for index, place in enumerate(_places(text[:minimum], text, 1)):
        if index == _MAX_PLACES or text.startswith(text[place:]):
            return True
    return False


def _places(piece: str, text: str, start: int) -> Iterator[int]:
    """All offsets of a piece in a text, including overlapping ones."""
    while (start := text.find(piece, start)) >= 0:
        yield start
        start += 1
