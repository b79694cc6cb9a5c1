"""Join chunks that touch or overlap into passages, without repeating or losing text.

Offsets only suggest an overlap; the text must confirm it, because offsets can be wrong: LlamaIndex finds them with a
text search, which in repetitive text stops at an earlier copy. If repetitive text would confirm several overlaps, the
chunks are not joined: repeated text is better than lost text.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from oprag.chunk import Chunk, Passage, PositionKind, Span
from oprag.positions.fields import NUMBERING_FIELD
from oprag.positions.overlaps import overlap_of
from oprag.positions.readings import is_exact

__all__ = [
    "NUMBERED",
    "STRIPPED",
    "JoinedText",
    "added_texts",
    "each_alone",
    "join_chunks",
    "place_in_source",
    "span_in_source",
    "stitch",
]

# Prefix of the page of spans that are relative to a run; no real page has such a name, so they never match other spans.
_RUN = "\0run "
# Maximum gap in characters that counts as whitespace stripped by the splitter; a missing chunk is rarely shorter.
STRIPPED = 4
# An end that no offset reaches, for chunks that may be anywhere.
_ANYWHERE = sys.maxsize
# Kinds whose keys end with the number of the chunk in its source or run.
NUMBERED = (PositionKind.STAMPED, PositionKind.LINKS)
# Matches of fewer characters may be coincidence: adjacent texts often share a letter.
_COINCIDENCE = 8
# More candidate matches than this indicate repetitive text; checking all of them would take quadratic time.
_MAX_PLACES = 64
# Short lines that a splitter repeats.
_MAX_LINES = 4


def each_alone(chunks: Sequence[Chunk]) -> list[Passage]:
    """One passage per chunk."""
    return [_alone(chunk) for chunk in chunks]


def _alone(chunk: Chunk) -> Passage:
    return Passage(chunk.text, (chunk,), () if chunk.span is None else (chunk.span,))


def stitch(chunks: Sequence[Chunk], separator: str) -> list[Passage]:
    """Join consecutive chunks of the list that touch or overlap in their source."""
    passages: list[Passage] = []
    for group in _near(chunks):
        if len(group) == 1:
            passages.append(_alone(group[0]))
            continue
        runs: list[_Run] = []
        for chunk in group:
            span = place_in_source(chunk)
            if runs and runs[-1].take(chunk, span) is not None:
                continue
            if runs and not runs[-1].leads_to(chunk, span):
                passages.append(_passage(runs, separator))
                runs = []
            runs.append(_Run(chunk, span))
        passages.append(_passage(runs, separator))
    return passages


def _near(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Split a list where the offsets alone tell that the next chunk touches none of those before it."""
    group: list[Chunk] = []
    end = 0
    for chunk in chunks:
        if chunk.span is None or chunk.place is not None:
            end = _ANYWHERE
        else:
            start, stop, _ = chunk.span
            if group and start > end + STRIPPED:
                position = chunk.position
                if position is not None and position.kind not in NUMBERED:
                    yield group
                    group = []
            if stop > end or not group:
                end = stop
        group.append(chunk)
    if group:
        yield group


def added_texts(chunks: Iterable[Chunk]) -> Iterator[str]:
    """Yield what each chunk adds to the passage of the chunks before it: its whole text, the end of it, or nothing."""
    run: _Run | None = None
    for chunk in chunks:
        span = place_in_source(chunk)
        added = None if run is None else run.take(chunk, span)
        if added is None:
            run, added = _Run(chunk, span), chunk.text
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

    __slots__ = ("chunks", "span", "spans", "texts")

    def __init__(self, chunk: Chunk, span: Span | None) -> None:
        self.chunks = [chunk]
        self.texts = [chunk.text]
        self.span = span
        self.spans = [span]

    def tail(self, length: int) -> str:
        """The last `length` characters; joining the full text for each chunk would take quadratic time."""
        parts: list[str] = []
        for part in reversed(self.texts):
            if length <= 0:
                break
            parts.append(part[-length:])
            length -= len(part)
        return "".join(reversed(parts))

    def take(self, chunk: Chunk, span: Span | None) -> str | None:
        """Add the chunk if its text continues or repeats the run's, and return what is new; None if unconfirmed."""
        run = self.span
        if run is None or span is None or not run.start <= span.start <= run.end or not self._comparable(chunk, span):
            return None
        new = self._new_text(chunk, run, span)
        if new is None:
            return None
        self.chunks.append(chunk)
        if new:
            self.texts.append(new)
        self.spans.append(span)
        self.span = Span(run.start, max(run.end, span.end), run.page)
        return new

    def _new_text(self, chunk: Chunk, run: Span, span: Span) -> str | None:
        """The text that the chunk adds to the run; None if it may not belong there."""
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
        at = len(tail) - before_end
        return tail.find(chunk.text) == at and tail.find(chunk.text, at + 1) < 0

    def leads_to(self, chunk: Chunk, span: Span | None) -> bool:
        """Whether the chunk follows in the source, with nothing but whitespace between."""
        last = self.chunks[-1]
        if last.source is None or last.source != chunk.source:
            return False
        follows = _follows(last, chunk)
        if self.span is None or span is None or (follows is not None and not self._lacks_a_chunk(chunk, span)):
            return bool(follows)
        return 0 < span.start - self.span.end <= STRIPPED and self._comparable(chunk, span)

    def _lacks_a_chunk(self, chunk: Chunk, span: Span) -> bool:
        """Whether offsets leave room for a chunk between, which was deleted or which the filter of the search hides."""
        if self.span is None or chunk.position is None or chunk.position.kind in NUMBERED:
            return False
        hole = span.start - self.span.end
        return 2 * hole > max(len(self.chunks[-1].text), len(chunk.text)) and self._comparable(chunk, span)

    def _comparable(self, chunk: Chunk, span: Span) -> bool:
        """Whether offsets are exact, and relative to the same source and page."""
        first = self.chunks[0]
        return (
            self.span is not None
            and self.span.page == span.page
            and chunk.source is not None
            and first.source == chunk.source
            and self.spans[0] is not None
            and is_exact(first, self.spans[0])
            and is_exact(chunk, span)
        )


def _passage(runs: Sequence[_Run], separator: str) -> Passage:
    chunks = tuple(chunk for run in runs for chunk in run.chunks)
    # A place in a run of overlapping chunks is not a place in the source.
    spans = tuple(run.span for run in runs if run.span is not None and run.chunks[0].span is not None)
    if chunks[0].span is None or chunks[-1].span is None:
        # Those between would not tell where the passage begins or ends.
        spans = ()
    return Passage(separator.join(["".join(run.texts) for run in runs]), chunks, spans)


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


class JoinedText(NamedTuple):
    """The text of a source, made of its chunks."""

    text: str  # each character once, if overlaps are known
    added: list[int]  # for each chunk, the offset of the first character that no chunk before it contains
    visible: list[int]  # for each chunk, the offset of its first character that is not white space

    def row_at(self, offset: int) -> int:
        """The index of the first chunk that contains the character at an offset."""
        return bisect_right(self.added, offset) - 1

    def rows_of(self, start: int, end: int) -> range:
        """The indices of the chunks that contain a part of the text: one chunk if it contains the whole part."""
        first, last = self.row_at(start), self.row_at(end - 1)
        return range(last if self.visible[last] <= start else first, last + 1)


def join_chunks(chunks: Sequence[Chunk]) -> JoinedText:
    """Join ordered chunks; those that neither touch nor overlap are separated by line breaks."""
    parts: list[str] = []
    added: list[int] = []
    visible: list[int] = []
    # The end of the text so far, and where the chunk that reaches it begins.
    end, begin, last = 0, 0, chunks[0]
    for chunk in chunks:
        text = chunk.text
        at = _begin(last, chunk) if added else 0
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
    return JoinedText("".join(parts), added, visible)


def _begin(last: Chunk, chunk: Chunk) -> int | None:
    """Where a chunk begins, counted from the start of the last one, by its offset or by its text; None if unknown."""
    mine, its = place_in_source(last), place_in_source(chunk)
    if mine and its and mine.page == its.page and is_exact(last, mine) and is_exact(chunk, its):
        at = its.start - mine.start
        if at >= 0 and chunk.text.startswith(last.text[at : at + len(chunk.text)]):
            return at
    length = _repeated(last.text, chunk.text)
    return len(last.text) - length if length else None


def _repeated(before: str, after: str) -> int:
    """The number of characters at the end of a text that the next one repeats: an overlap, or a few short lines."""
    # Splitters do not repeat a whole chunk.
    if before == after:
        return 0
    if length := overlap_of(before, after):
        return length
    lines = before.splitlines(keepends=True)[-_MAX_LINES:]
    for first in range(len(lines)):
        repeated = "".join(lines[first:])
        # A fence alone may end a code block, while the next text begins one.
        marked = repeated.strip("`~ \r\n\t")
        if marked and f"{after}\n".startswith(repeated if repeated.endswith("\n") else f"{repeated}\n"):
            return len(repeated)
    return 0
