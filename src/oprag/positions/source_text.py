"""The text of a source, in which chunks are located."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, compress, pairwise
from operator import itemgetter
from typing import Any

from oprag.chunk import Chunk
from oprag.positions.readings import stated_span

__all__ = ["MAX_PLACES", "Found", "SourceText"]

Found = tuple[int, int]
"""Start and end of a text in the text of its source."""

_SPACE = re.compile(r"\s+")
# Maximum number of places that are listed; of a text with more, only the places between two offsets are searched.
MAX_PLACES = 1000
# Minimum number of rising places that prove source order: in a random list the chance is under 1 %.
_MIN_RISING = 5
# Number of neighbors on each side that must rise where the list is known to be in insertion order.
_NEARBY = 2
# Maximum number of segments (text between the edges of overlapping places); comparing more takes too long.
_MAX_SEGMENTS = 500_000
# Minimum number of pieces for which indexing the blocks of the text pays off; fewer are searched one by one.
_MIN_PIECES = 50
# Minimum and maximum characters of a block. Small blocks fit into short pieces, but there are more of them.
_BLOCK = 16, 64
# The share of pieces that may be too short for a block.
_SHORT = 0.1
_MAX_CACHED = 50_000  # chunks for each text
_START = itemgetter(0)


class SourceText:
    """The text of a source, in which chunks are located.

    Args:
        text: The text.

    Attributes:
        learned: Number of chunks of the source with each text, as passed to `learn`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded = _Folded(text)
        self.learned: Counter[str] = Counter()
        self._places: dict[str, list[Found]] = {}

    def places(self, piece: str) -> list[Found]:
        """Return all places of a piece: verbatim, else with every run of white space collapsed to one space."""
        found = self._places.get(piece)
        return self._find([piece])[piece] if found is None else found

    def _find(self, pieces: Iterable[str]) -> dict[str, list[Found]]:
        """Find and cache the places of the pieces that are not cached yet; return these."""
        pieces = [piece for piece in dict.fromkeys(pieces) if piece not in self._places]
        if pieces and len(self._places) >= _MAX_CACHED:
            self._places, self.learned = {}, Counter()
        found = _places(pieces, self.text)
        found |= self._folded.places([piece for piece in pieces if not found[piece]])
        self._places.update(found)
        return found

    def learn(self, texts: Iterable[str]) -> None:
        """Narrow down the places of texts that occur more often than there are chunks with them.

        An additional place is inside another chunk, or the source repeats itself. Chunks cover the whole source, so a
        place belongs to a chunk with this text if no other chunk can cover all of it.

        Args:
            texts: The texts of all chunks of the source.
        """
        counts = Counter(texts)
        covered = bytearray(len(self.text))
        unclear: dict[str, list[Found]] = {}
        self._find(counts)
        for text, count in counts.items():
            places = self.places(text)
            if count < len(places) < MAX_PLACES:
                unclear[text] = places
                continue
            for start, end in places:
                covered[start:end] = b"\1" * (end - start)
            if len(places) >= MAX_PLACES:
                # The search stopped here: anything after the last place may be covered by this text.
                after = places[-1][0]
                covered[after:] = b"\1" * (len(covered) - after)
        self.learned = counts
        self._places.update(_own_places(unclear, counts, covered))

    def locate(
        self,
        chunks: Sequence[Chunk],
        *,
        pages: Sequence[Any] = (),
        unplaced: Sequence[bool] = (),
        in_sequence: bool = False,
    ) -> list[Found | None]:
        """Return the place of each chunk; None if it is not in the text, or its place is ambiguous.

        Args:
            chunks: Some or all chunks of the source.
            pages: The sort key of the page, or of another number, of each chunk; None without one.
            unplaced: Whether each chunk states no position: without one, chunks with equal texts are interchangeable.
            in_sequence: Whether these are all chunks of the source, in insertion order.
        """
        pages = pages or [None] * len(chunks)
        self._find(chunk.text for chunk in chunks)
        places = {chunk.text: self.places(chunk.text) for chunk in chunks}
        chosen = [only[0] if len(only := places[chunk.text]) == 1 else None for chunk in chunks]
        if None in chosen:
            self._choose_by_page(chunks, pages, chosen)
        # More chunks than places: some were added again, so numbers of equal chunks prove nothing.
        counts = Counter(chunk.text for chunk in chunks) | self.learned
        added_again = any(0 < len(found) < min(counts[text], MAX_PLACES) for text, found in places.items())
        if None in chosen and not added_again:
            self._choose_by_neighbors(chunks, chosen, _bounds_nearby(chosen) if in_sequence else _bounds(chosen))
            _assign_free(chunks, pages, places, chosen)
            self._take_any(chunks, unplaced, chosen)
        return chosen

    def _between(self, piece: str, low: float, high: float, *, last: bool = False) -> Found | None:
        """Return the first or the last place of a piece that starts after `low` and before `high`."""
        places = self.places(piece)
        if len(places) < MAX_PLACES:
            first, after = bisect_right(places, low, key=_START), bisect_left(places, high, key=_START)
            return (places[after - 1] if last else places[first]) if first < after else None
        if not self.text.startswith(piece, places[0][0]):
            return self._folded.between(piece, low, high, last=last)
        start = _search(self.text, piece, max(0, low + 1), min(high, len(self.text)), last=last)
        return (start, start + len(piece)) if start >= 0 else None

    def _choose_by_page(self, chunks: Sequence[Chunk], pages: Sequence[Any], chosen: list[Found | None]) -> None:
        """Choose the only place of a text on the page of its chunk, if the other chunks show where pages are."""
        extents: dict[Any, Found] = {}
        for page, at in zip(pages, chosen, strict=True):
            if page is not None and at is not None:
                start, end = extents.get(page, at)
                extents[page] = min(start, at[0]), max(end, at[1])
        known = sorted(extents)
        if any(extents[after][0] < extents[before][1] for before, after in pairwise(known)):
            return
        for index, chunk in enumerate(chunks):
            page = pages[index]
            if chosen[index] is None and page is not None:
                before, after = bisect_left(known, page), bisect_right(known, page)
                low = extents[known[before - 1]][1] - 1 if before else -math.inf
                high = extents[known[after]][0] if after < len(known) else math.inf
                at = self._between(chunk.text, low, high)
                if at is not None and at[1] <= high and at == self._between(chunk.text, low, high, last=True):
                    chosen[index] = at

    def _choose_by_neighbors(
        self, chunks: Sequence[Chunk], chosen: list[Found | None], bounds: Sequence[tuple[float, float] | None]
    ) -> None:
        """Choose the only place at which a chunk can be between its neighbors, else that of its own offset.

        Consecutive chunks without a place are in sequence, too: a place is the only one if it is the same when all of
        them are as early and as late as possible. Neighbors take precedence over offsets: one that was found by
        searching can be that of another copy.
        """
        left = [index for index, at in enumerate(chosen) if at is None]
        earliest: dict[int, Found] = {}
        latest: dict[int, Found] = {}
        for index in left:
            if (bound := bounds[index]) is not None:
                low = earliest[index - 1][0] if index - 1 in earliest else bound[0]
                if at := self._between(chunks[index].text, low, bound[1]):
                    earliest[index] = at
        for index in reversed(left):
            if (bound := bounds[index]) is not None:
                high = latest[index + 1][0] if index + 1 in latest else bound[1]
                if at := self._between(chunks[index].text, bound[0], high, last=True):
                    latest[index] = at
        taken: set[tuple[str, Found]] = set()
        for index in left:
            chunk, at = chunks[index], earliest.get(index)
            if at is None or at != latest.get(index):
                low, high = bounds[index] or (-math.inf, math.inf)
                hint = stated_span(chunk)
                at = hint and self._between(chunk.text, max(low, hint.start - 1), min(high, hint.start + 1))
            # Only one of several equal chunks can be at this place.
            if at is not None and (chunk.text, at) not in taken:
                chosen[index] = at
                taken.add((chunk.text, at))

    def _take_any(self, chunks: Sequence[Chunk], unplaced: Sequence[bool], chosen: list[Found | None]) -> None:
        """Assign free places in any order if there are no more places than chunks with this text."""
        taken = Counter(zip((chunk.text for chunk in chunks), chosen, strict=True))
        for index, chunk in enumerate(chunks):
            places = self.places(chunk.text)
            if chosen[index] is None and unplaced and unplaced[index]:
                free = [place for place in places if not taken[chunk.text, place]]
                if free and len(places) < MAX_PLACES and len(places) <= self.learned[chunk.text]:
                    chosen[index] = free[0]
                    taken[chunk.text, free[0]] += 1


def _own_places(
    unclear: Mapping[str, Sequence[Found]], counts: Mapping[str, int], covered: bytearray
) -> dict[str, list[Found]]:
    """Return the true places of texts for which they can be determined: no other text covers some character of them.

    Args:
        unclear: The places of texts that occur at more places than there are chunks with them.
        counts: Number of chunks with each text.
        covered: 1 for each character that another chunk certainly covers.
    """
    edges = sorted({edge for places in unclear.values() for place in places for edge in place})
    numbers = {edge: number for number, edge in enumerate(edges)}
    segments = {
        text: [range(numbers[start], numbers[end]) for start, end in places] for text, places in unclear.items()
    }
    if sum(len(place) for places in segments.values() for place in places) > _MAX_SEGMENTS:
        return {}
    free = [covered.find(0, start, end) >= 0 for start, end in pairwise(edges)]
    covering: list[list[str]] = [[] for _ in free]
    for text, places in segments.items():
        for segment in chain.from_iterable(places):
            covering[segment].append(text)
    own: dict[str, list[Found]] = {}
    # Resolving one text can resolve those that overlap it, so try these again.
    pending = set(unclear)
    while pending:
        found = {
            text: [any(free[one] and len(covering[one]) == 1 for one in place) for place in segments[text]]
            for text in pending
        }
        pending = set()
        for text, is_own in found.items():
            if sum(is_own) == counts[text]:
                own[text] = list(compress(unclear[text], is_own))
                for segment in chain.from_iterable(segments[text]):
                    covering[segment].remove(text)
                    pending.update(covering[segment])
                for segment in chain.from_iterable(compress(segments[text], is_own)):
                    free[segment] = False
        pending.difference_update(own)
    return own


def _places(pieces: Sequence[str], text: str) -> dict[str, list[Found]]:
    """Return all places of each piece in a text, up to a maximum."""
    # Searching the whole text for every piece takes quadratic time, so index the blocks of the text.
    blocks: dict[str, list[int]] = {}
    size = 0
    if len(pieces) >= _MIN_PIECES:
        size = min(max((sorted(map(len, pieces))[int(_SHORT * len(pieces))] + 1) // 2, _BLOCK[0]), _BLOCK[1])
        for start in range(0, len(text), size):
            blocks.setdefault(text[start : start + size], []).append(start)
    return {
        piece: [(start, start + len(piece)) for start in _starts(piece, text, blocks, size)] if piece.strip() else []
        for piece in pieces
    }


def _starts(piece: str, text: str, blocks: Mapping[str, Sequence[int]], size: int) -> list[int]:
    """Return the start offsets of a piece; `blocks` maps blocks of `size` characters to their offsets in the text."""
    if blocks and len(piece) >= 2 * size - 1:
        # An occurrence of the piece contains a whole block, which starts at one of these shifts.
        inside = [(shift, blocks.get(piece[shift : shift + size], ())) for shift in range(size)]
        if sum(len(starts) for _, starts in inside) <= MAX_PLACES:
            places = sorted(start - shift for shift, starts in inside for start in starts if start >= shift)
            return [place for place in places if text.startswith(piece, place)]
    found: list[int] = []
    start = text.find(piece)
    while start >= 0 and len(found) < MAX_PLACES:
        found.append(start)
        start = text.find(piece, start + 1)
    return found


def _search(text: str, piece: str, start: float, end: float, *, last: bool) -> int:
    """Return the first or last offset of a piece in `start` to `end` (exclusive), or -1 if it does not occur there."""
    return (text.rfind if last else text.find)(piece, int(start), int(end) + len(piece) - 1)


def _bounds(chosen: list[Found | None]) -> list[tuple[float, float] | None]:
    """Return the offsets between which each chunk must start, from the neighbors whose place is certain.

    Returns no bounds if the certain places are out of order or too few.
    """
    starts = [place[0] for place in chosen if place is not None]
    if len(starts) < _MIN_RISING or any(second < first for first, second in pairwise(starts)):
        return [None] * len(chosen)
    edges = [-math.inf, *starts, math.inf]
    before = list(accumulate((place is not None for place in chosen), initial=0))
    return [(edges[count], edges[count + 1]) for count in before[:-1]]


def _bounds_nearby(chosen: list[Found | None]) -> list[tuple[float, float] | None]:
    """Like `_bounds`, but uses only the nearest neighbors of each chunk.

    Part of a store's insertion order may be wrong, because some chunks were added later. Where the places around a
    chunk do not rise, it has no bounds.
    """
    starts = [place[0] for place in chosen if place is not None]
    before = list(accumulate((place is not None for place in chosen), initial=0))
    bounds: list[tuple[float, float] | None] = []
    for count in before[:-1]:
        around = starts[max(0, count - _NEARBY) : count + _NEARBY]
        rising = all(first <= second for first, second in pairwise(around))
        low = starts[count - 1] if count else -math.inf
        high = starts[count] if count < len(starts) else math.inf
        bounds.append((low, high) if rising and around else None)
    return bounds


def _assign_free(
    chunks: Sequence[Chunk], pages: Sequence[Any], places: dict[str, list[Found]], chosen: list[Found | None]
) -> None:
    """Assign the free places of a text if there are as many as remaining chunks with this text."""
    equal: dict[str, list[int]] = {}
    for index, chunk in enumerate(chunks):
        if len(places[chunk.text]) < MAX_PLACES:
            equal.setdefault(chunk.text, []).append(index)
    for text, indices in equal.items():
        taken = {chosen[index] for index in indices}
        free = [place for place in places[text] if place not in taken]
        left = [index for index in indices if chosen[index] is None]
        if len(free) == len(left):
            for index, place in zip(_by_page(left, pages), free, strict=True):
                chosen[index] = place


def _by_page(indices: Sequence[int], pages: Sequence[Any]) -> list[int]:
    """Sort equal chunks by page if all of their pages are known."""
    if any(pages[index] is None for index in indices):
        return list(indices)
    return sorted(indices, key=pages.__getitem__)


def _folded(text: str) -> str:
    return _SPACE.sub(" ", text.strip())


class _Folded:
    """A text with every run of white space collapsed to one space; maps places back to the original offsets."""

    def __init__(self, text: str) -> None:
        self._original = text
        self._text: str | None = None
        self._shifts: list[tuple[int, int]] = []

    def places(self, pieces: Iterable[str]) -> dict[str, list[Found]]:
        """Return the places of each piece in the original text."""
        folded = {piece: _folded(piece) for piece in pieces}
        if not folded:
            return {}
        if self._text is None:
            # Assign both in one statement: other threads may do the same.
            self._shifts, self._text = self._fold()
        found = _places([*dict.fromkeys(folded.values())], self._text or "")
        return {piece: [self._original_place(*place) for place in found[text]] for piece, text in folded.items()}

    def between(self, piece: str, low: float, high: float, *, last: bool) -> Found | None:
        """Return the first or the last place of a piece that starts after `low` and before `high`.

        Offsets are those of the original text. `places` was called before.
        """
        text, piece = self._text or "", _folded(piece)
        first = bisect_right(range(len(text)), low, key=self._back)
        after = bisect_left(range(len(text)), high, key=self._back)
        start = _search(text, piece, first, after, last=last)
        return self._original_place(start, start + len(piece)) if start >= 0 else None

    def _fold(self) -> tuple[list[tuple[int, int]], str]:
        """Return the folded text, and how much shorter it is from each run of several white spaces on."""
        parts: list[str] = []
        shifts: list[tuple[int, int]] = []
        last = shorter = 0
        for match in _SPACE.finditer(self._original):
            parts += (self._original[last : match.start()], " ")
            last = match.end()
            if match.end() - match.start() > 1:
                shorter += match.end() - match.start() - 1
                shifts.append((match.end() - shorter, shorter))
        return shifts, "".join([*parts, self._original[last:]])

    def _original_place(self, start: int, end: int) -> Found:
        return self._back(start), self._back(end - 1) + 1

    def _back(self, offset: int) -> int:
        index = bisect_left(self._shifts, (offset + 1, 0))
        return offset + (self._shifts[index - 1][1] if index else 0)
