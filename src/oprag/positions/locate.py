"""Finding existing chunks in the original text, so that an index can be given positions without embedding anew."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from oprag.chunk import Chunk
from oprag.errors import ChunkError, MissingSourceError
from oprag.masking import describe
from oprag.positions.ladder import stated_span
from oprag.positions.sources import SourceKey, source_of, text_of, warn_about_key

__all__ = ["Located", "locate_positions"]

_SPACE = re.compile(r"\s+")
# A text that stands at more places than this is boilerplate; which of them is meant cannot be told.
_MOST_PLACES = 1000
# So many chunks that rise by chance, in a list that is not in sequence, are less likely than one in a hundred.
_ENOUGH = 5


@dataclass(frozen=True, slots=True)
class Located:
    """Where a chunk stands in the original text.

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

    A chunk is looked for as it is, then with every run of white space read as one space. Where the text stands at
    several places, one is chosen only if something tells which: neighbours in the given sequence that leave one place
    between them, an offset that the chunk already has, or as many equal chunks as places. Otherwise the chunk stays
    without an offset, and says why.

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
        text = _text_of(source, source_texts)
        group = [chunks[index] for index in indices]
        results.update(zip(indices, _locate(group, source, text), strict=True))
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


Place = tuple[int, int]


def _locate(chunks: list[Chunk], source: str, text: str) -> list[Located]:
    """Locate the chunks of one source."""
    folded = _Folded(text)
    places: dict[str, list[Place]] = {}
    for chunk in chunks:
        if chunk.text not in places:
            places[chunk.text] = _places(chunk.text, text) or folded.places(chunk.text)
    chosen = [only[0] if len(only := places[chunk.text]) == 1 else None for chunk in chunks]
    bounds = _bounds(chosen)
    for index, chunk in enumerate(chunks):
        if chosen[index] is None:
            chosen[index] = _choose(chunk, places[chunk.text], bounds[index])
    _share_out(chunks, places, chosen)
    return [
        Located(chunk, source, place[0], place[1])
        if place is not None
        else Located(chunk, source, None, None, _why(len(places[chunk.text])))
        for chunk, place in zip(chunks, chosen, strict=True)
    ]


def _why(count: int) -> str:
    return f"its text stands at {count} places, and nothing tells which" if count else "its text is not in the source"


def _places(piece: str, text: str) -> list[Place]:
    if not piece.strip():
        return []
    found: list[Place] = []
    start = text.find(piece)
    while start >= 0 and len(found) < _MOST_PLACES:
        found.append((start, start + len(piece)))
        start = text.find(piece, start + 1)
    return found


def _bounds(chosen: list[Place | None]) -> list[tuple[float, float]]:
    """Between which offsets each chunk must begin, by the neighbours whose place is certain.

    Where these do not stand in the given sequence, or are too few to tell, the sequence says nothing.
    """
    starts = [place[0] for place in chosen if place is not None]
    if len(starts) < _ENOUGH or any(second < first for first, second in pairwise(starts)):
        return [(-math.inf, math.inf)] * len(chosen)
    edges = [-math.inf, *starts, math.inf]
    before = list(accumulate((place is not None for place in chosen), initial=0))
    return [(edges[count], edges[count + 1]) for count in before[:-1]]


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


def _share_out(chunks: list[Chunk], places: dict[str, list[Place]], chosen: list[Place | None]) -> None:
    """Where as many places of a text are free as chunks with it are left, each of these gets one, in sequence."""
    equal: dict[str, list[int]] = {}
    for index, chunk in enumerate(chunks):
        equal.setdefault(chunk.text, []).append(index)
    for text, indices in equal.items():
        taken = {chosen[index] for index in indices}
        free = [place for place in places[text] if place not in taken]
        left = [index for index in indices if chosen[index] is None]
        if len(free) == len(left):
            for index, place in zip(left, free, strict=True):
                chosen[index] = place


class _Folded:
    """A text with every run of white space read as one space, and the way back to its offsets."""

    def __init__(self, text: str) -> None:
        self._original = text
        self._text: str | None = None
        self._shifts: list[tuple[int, int]] = []

    def places(self, piece: str) -> list[Place]:
        """The places of a piece in the original text."""
        if self._text is None:
            self._fold()
        folded = _SPACE.sub(" ", piece.strip())
        return [(self._back(start), self._back(end - 1) + 1) for start, end in _places(folded, self._text or "")]

    def _fold(self) -> None:
        """Note, after every run of more than one white space, how much shorter the folded text is from there on."""
        parts: list[str] = []
        last = shorter = 0
        for match in _SPACE.finditer(self._original):
            parts += (self._original[last : match.start()], " ")
            last = match.end()
            if match.end() - match.start() > 1:
                shorter += match.end() - match.start() - 1
                self._shifts.append((match.end() - shorter, shorter))
        self._text = "".join([*parts, self._original[last:]])

    def _back(self, offset: int) -> int:
        index = bisect_left(self._shifts, (offset + 1, 0))
        return offset + (self._shifts[index - 1][1] if index else 0)
