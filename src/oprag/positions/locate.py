"""Finding existing chunks in the original text, so that an index gets positions without new embeddings."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, compress, pairwise
from typing import Any

from oprag.chunk import Chunk, PositionKind
from oprag.errors import ChunkError, MissingSourceError
from oprag.masking import describe
from oprag.positions.ladder import stated_span
from oprag.positions.sources import SourceKey, source_of, text_of, warn_about_key

__all__ = ["Located", "Place", "SourceText", "locate_positions"]

Place = tuple[int, int]

_SPACE = re.compile(r"\s+")
# A text that occurs more often is boilerplate; which place is meant is unknown.
_MOST_PLACES = 1000
# The chance that this many places rise in a list that is not in sequence is less than one in a hundred.
_ENOUGH = 5
# How many neighbors on each side tell whether a sequence that is known to be one has a seam there.
_NEARBY = 2
# Comparing more stretches of text, into which the places that overlap cut each other, takes too long.
_MOST_STRETCHES = 500_000
# Fewer pieces are looked for one by one, since the blocks of a text have to be listed first.
_MANY = 50
# Small blocks fit into short pieces, and there are more of them.
_BLOCK = 16, 64  # minimum and maximum of characters
# The part of the pieces that may be too short for a block.
_SHORT = 0.1
# How many chunks of a text are remembered.
_MOST_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Located:
    """The place of a chunk in the original text.

    Attributes:
        chunk: The chunk.
        source: The name of its source.
        start: Offset of its first character; None where it was not found, or at several places.
        end: End offset (exclusive).
        detail: Why it has no offset; empty when it has one.
    """

    chunk: Chunk
    source: str
    start: int | None
    end: int | None
    detail: str = ""

    @property
    def id(self) -> str | None:
        """The identity of the chunk in its store."""
        return self.chunk.id

    @property
    def metadata(self) -> dict[str, int]:
        """What to add to the metadata of the chunk in its store; empty where it was not found."""
        return {} if self.start is None or self.end is None else {"start_index": self.start, "end_index": self.end}


def locate_positions(
    chunks: Iterable[Chunk],
    source_texts: Mapping[Any, str] | Callable[[str], str],
    *,
    source_key: SourceKey | None = None,
) -> list[Located]:
    """Find chunks in the texts that they were cut from.

    A chunk is looked for as it is, then with every run of white space read as one space. If its text occurs at several
    places, one is chosen only if it is certain: neighbors in the given sequence leave one place between them, the chunk
    has an offset already, or there are as many equal chunks as places. Otherwise the chunk gets no offset, and `detail`
    says why.

    Args:
        chunks: The chunks, best in the sequence of their source (as a store lists them, or sorted by any hint).
        source_texts: The whole text of each source by its name or path, or a function of the name that reads it.
        source_key: See `ContextOptions.source_key`.

    Returns:
        One result for each chunk, in the given sequence. `(located.id, located.metadata)` is what a metadata-only
        update of a store needs; nothing has to be embedded again.

    Raises:
        ChunkError: Something is not a chunk.
        MissingSourceError: A chunk does not say its source, or its text was not given.

    Example:
        >>> found = locate_positions([Chunk("bark.", 0, source="pets")], {"pets": "Cats purr. Dogs bark."})
        >>> found[0].metadata
        {'start_index': 16, 'end_index': 21}
    """
    chunks = list(chunks)
    for chunk in chunks:
        if not isinstance(chunk, Chunk):
            raise ChunkError(f"expected oprag.Chunk objects, got {type(chunk).__name__}", chunk)
    warn_about_key("source_key", source_key, chunks)
    groups: dict[str, list[int]] = {}
    for index, chunk in enumerate(chunks):
        source = source_of(chunk, source_key)
        if source is None:
            raise MissingSourceError(
                f"chunk {index} does not say its source (metadata keys: {chunk.keys_text()}); "
                "name it with source_key=...",
                chunk,
            )
        groups.setdefault(source, []).append(index)
    results: dict[int, Located] = {}
    for source, indices in groups.items():
        text = SourceText(_text_of(source, source_texts))
        places = text.locate([chunks[index] for index in indices])
        for index, place in zip(indices, places, strict=True):
            chunk = chunks[index]
            start, end = place or (None, None)
            detail = "" if place else _why(len(text.places(chunk.text)))
            results[index] = Located(chunk, source, start, end, detail)
    return [results[index] for index in range(len(chunks))]


def _text_of(source: str, source_texts: Mapping[Any, str] | Callable[[str], str]) -> str:
    if callable(source_texts):
        text: Any = source_texts(source)
    else:
        text = text_of(source_texts, source)
    if not isinstance(text, str):
        got = "" if text is None else f", got {type(text).__name__}"
        raise MissingSourceError(f"the text of the source {describe(source)} was not given{got}", source)
    return text


class SourceText:
    """The text of a source, in which chunks are looked for.

    Args:
        text: The text.

    Attributes:
        learned: How many chunks of the source have each text, where `learn` was told.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._folded = _Folded(text)
        self.learned: Counter[str] = Counter()
        self._places: dict[str, list[Place]] = {}

    def places(self, piece: str) -> list[Place]:
        """All places of a piece: as it is, else with every run of white space read as one space."""
        found = self._places.get(piece)
        return self._look_for([piece])[piece] if found is None else found

    def _look_for(self, pieces: Iterable[str]) -> dict[str, list[Place]]:
        """The places of the pieces that were not looked for before, which are remembered."""
        pieces = [piece for piece in dict.fromkeys(pieces) if piece not in self._places]
        if pieces and len(self._places) >= _MOST_REMEMBERED:
            self._places, self.learned = {}, Counter()
        found = _places(pieces, self.text)
        found |= self._folded.places([piece for piece in pieces if not found[piece]])
        self._places.update(found)
        return found

    def learn(self, texts: Iterable[str]) -> None:
        """Find out which places of a text are meant, if it occurs more often than there are chunks with it.

        It can be a part of other chunks there, or the source repeats itself. Chunks cover the whole source, so a place
        is one of its own if no other chunk can cover all of it.

        Args:
            texts: The texts of all chunks of the source.
        """
        counts = Counter(texts)
        covered = bytearray(len(self.text))
        unclear: dict[str, list[Place]] = {}
        self._look_for(counts)
        for text, count in counts.items():
            places = self.places(text)
            if len(places) <= count:
                for start, end in places:
                    covered[start:end] = b"\1" * (end - start)
            elif len(places) < _MOST_PLACES:
                unclear[text] = places
            else:
                # The places that are not known are after the last one.
                after = places[-1][0]
                covered[after:] = b"\1" * (len(covered) - after)
        self.learned = counts
        self._places.update(_own_places(unclear, counts, covered))

    def locate(self, chunks: Sequence[Chunk], *, in_sequence: bool = False) -> list[Place | None]:
        """The place of each chunk; None where it is not in the text, or nothing tells which of its places is meant.

        Args:
            chunks: Some chunks of the source, or all of them.
            in_sequence: Whether they are all of them, in the sequence in which a store received them.
        """
        self._look_for(chunk.text for chunk in chunks)
        places = {chunk.text: self.places(chunk.text) for chunk in chunks}
        chosen = [only[0] if len(only := places[chunk.text]) == 1 else None for chunk in chunks]
        if None in chosen:
            bounds = _bounds_nearby(chosen) if in_sequence else _bounds(chosen)
            taken: set[tuple[str, Place]] = set()
            for index, chunk in enumerate(chunks):
                if chosen[index] is None and (place := _choose(chunk, places[chunk.text], bounds[index])):
                    # Of equal chunks that say to be at one place, the others are elsewhere.
                    chosen[index] = None if (chunk.text, place) in taken else place
                    taken.add((chunk.text, place))
            _share_out(chunks, places, chosen)
            self._take_any(chunks, chosen)
        return chosen

    def _take_any(self, chunks: Sequence[Chunk], chosen: list[Place | None]) -> None:
        """Give a chunk any of its places where each is that of a chunk with this text, and nothing says which is meant.

        A page or another position would say it; without one, equal texts are interchangeable.
        """
        taken = Counter(zip((chunk.text for chunk in chunks), chosen, strict=True))
        for index, chunk in enumerate(chunks):
            places = self.places(chunk.text)
            if chosen[index] is None and chunk.position and not chunk.position.known:
                free = [place for place in places if not taken[chunk.text, place]]
                if free and len(places) <= self.learned[chunk.text]:
                    chosen[index] = free[0]
                    taken[chunk.text, free[0]] += 1


def _own_places(
    unclear: Mapping[str, Sequence[Place]], counts: Mapping[str, int], covered: bytearray
) -> dict[str, list[Place]]:
    """The places that are meant of the texts of which this can be told: where nothing else covers some character.

    Args:
        unclear: The places of texts that are at more places than there are chunks with them.
        counts: How many chunks have each text.
        covered: 1 for each character that another chunk covers for certain.
    """
    edges = sorted({edge for places in unclear.values() for place in places for edge in place})
    numbers = {edge: number for number, edge in enumerate(edges)}
    stretches = {
        text: [range(numbers[start], numbers[end]) for start, end in places] for text, places in unclear.items()
    }
    if sum(len(place) for places in stretches.values() for place in places) > _MOST_STRETCHES:
        return {}
    free = [covered.find(0, start, end) >= 0 for start, end in pairwise(edges)]
    covering: list[list[str]] = [[] for _ in free]
    for text, places in stretches.items():
        for stretch in chain.from_iterable(places):
            covering[stretch].append(text)
    own: dict[str, list[Place]] = {}
    # What was told of one text tells more of those that overlap with it.
    asked = set(unclear)
    while asked:
        found = {
            text: [any(free[one] and len(covering[one]) == 1 for one in place) for place in stretches[text]]
            for text in asked
        }
        asked = set()
        for text, meant in found.items():
            if sum(meant) == counts[text]:
                own[text] = list(compress(unclear[text], meant))
                for stretch in chain.from_iterable(stretches[text]):
                    covering[stretch].remove(text)
                    asked.update(covering[stretch])
                for stretch in chain.from_iterable(compress(stretches[text], meant)):
                    free[stretch] = False
        asked.difference_update(own)
    return own


def _why(count: int) -> str:
    return (
        f"its text occurs at {count} places, and which one is meant is unknown"
        if count
        else "its text is not in the source"
    )


def _places(pieces: Sequence[str], text: str) -> dict[str, list[Place]]:
    """All places of each piece in a text; of boilerplate the first ones."""
    # Looking for each piece from the start of the text takes a time that is the square of its length.
    blocks: dict[str, list[int]] = {}
    size = 0
    if len(pieces) >= _MANY:
        size = min(max((sorted(map(len, pieces))[int(_SHORT * len(pieces))] + 1) // 2, _BLOCK[0]), _BLOCK[1])
        for start in range(0, len(text), size):
            blocks.setdefault(text[start : start + size], []).append(start)
    return {
        piece: [(start, start + len(piece)) for start in _starts(piece, text, blocks, size)] if piece.strip() else []
        for piece in pieces
    }


def _starts(piece: str, text: str, blocks: Mapping[str, Sequence[int]], size: int) -> list[int]:
    """Where a piece begins, by the blocks of a size into which the text was cut."""
    if blocks and len(piece) >= 2 * size - 1:
        # Wherever the piece begins, the first block that begins in it is one of these.
        inside = [(shift, blocks.get(piece[shift : shift + size], ())) for shift in range(size)]
        if sum(len(starts) for _, starts in inside) <= _MOST_PLACES:
            places = sorted(start - shift for shift, starts in inside for start in starts if start >= shift)
            return [place for place in places if text.startswith(piece, place)]
    found: list[int] = []
    start = text.find(piece)
    while start >= 0 and len(found) < _MOST_PLACES:
        found.append(start)
        start = text.find(piece, start + 1)
    return found


def _bounds(chosen: list[Place | None]) -> list[tuple[float, float]]:
    """Between which offsets each chunk must begin, by the neighbors whose place is certain.

    Where these do not stand in the given sequence, or are too few to tell, the sequence says nothing.
    """
    starts = [place[0] for place in chosen if place is not None]
    if len(starts) < _ENOUGH or any(second < first for first, second in pairwise(starts)):
        return [(-math.inf, math.inf)] * len(chosen)
    edges = [-math.inf, *starts, math.inf]
    before = list(accumulate((place is not None for place in chosen), initial=0))
    return [(edges[count], edges[count + 1]) for count in before[:-1]]


def _bounds_nearby(chosen: list[Place | None]) -> list[tuple[float, float]]:
    """As `_bounds`, by the nearest neighbors of each chunk alone.

    A store has a sequence, of which a part may have been added later. Where the places around a chunk do not rise, the
    sequence says nothing of it.
    """
    starts = [place[0] for place in chosen if place is not None]
    before = list(accumulate((place is not None for place in chosen), initial=0))
    bounds: list[tuple[float, float]] = []
    for count in before[:-1]:
        around = starts[max(0, count - _NEARBY) : count + _NEARBY]
        rising = all(first <= second for first, second in pairwise(around))
        low = starts[count - 1] if count else -math.inf
        high = starts[count] if count < len(starts) else math.inf
        bounds.append((low, high) if rising and around else (-math.inf, math.inf))
    return bounds


def _choose(chunk: Chunk, places: list[Place], bounds: tuple[float, float]) -> Place | None:
    """The only place inside the bounds, or of several the one at which the chunk already says to be.

    The bounds go before what the chunk says: an offset that was found by searching can be that of another copy.
    """
    low, high = bounds
    inside = [place for place in places if low < place[0] < high]
    if len(inside) == 1:
        return inside[0]
    hint = stated_span(chunk)
    return next((place for place in inside if hint is not None and place[0] == hint.start), None)


def _share_out(chunks: Sequence[Chunk], places: dict[str, list[Place]], chosen: list[Place | None]) -> None:
    """Where as many places of a text are free as chunks with it are left, each of these gets one."""
    equal: dict[str, list[int]] = {}
    for index, chunk in enumerate(chunks):
        equal.setdefault(chunk.text, []).append(index)
    for text, indices in equal.items():
        taken = {chosen[index] for index in indices}
        free = [place for place in places[text] if place not in taken]
        left = [index for index in indices if chosen[index] is None]
        if len(free) == len(left):
            for index, place in zip(_by_page(left, chunks), free, strict=True):
                chosen[index] = place


def _by_page(indices: Sequence[int], chunks: Sequence[Chunk]) -> list[int]:
    """Equal chunks in the sequence of their pages, where all of these are known."""
    pages = {
        index: position.key
        for index in indices
        if (position := chunks[index].position) and position.kind is PositionKind.PAGE
    }
    return sorted(indices, key=pages.__getitem__) if len(pages) == len(indices) else list(indices)


class _Folded:
    """A text with every run of white space read as one space, and the way back to its offsets."""

    def __init__(self, text: str) -> None:
        self._original = text
        self._text: str | None = None
        self._shifts: list[tuple[int, int]] = []

    def places(self, pieces: Iterable[str]) -> dict[str, list[Place]]:
        """The places of each piece in the original text."""
        folded = {piece: _SPACE.sub(" ", piece.strip()) for piece in pieces}
        if not folded:
            return {}
        if self._text is None:
            # At once, since other threads may do the same.
            self._shifts, self._text = self._fold()
        found = _places([*dict.fromkeys(folded.values())], self._text or "")
        return {
            piece: [(self._back(start), self._back(end - 1) + 1) for start, end in found[text]]
            for piece, text in folded.items()
        }

    def _fold(self) -> tuple[list[tuple[int, int]], str]:
        """Note, after every run of more than one white space, how much shorter the folded text is from there on."""
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

    def _back(self, offset: int) -> int:
        index = bisect_left(self._shifts, (offset + 1, 0))
        return offset + (self._shifts[index - 1][1] if index else 0)
