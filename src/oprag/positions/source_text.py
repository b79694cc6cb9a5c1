"""The text of a source, in which chunks are located."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any

__all__ = ["MAX_PLACES", "Found", "SourceText"]

Found = tuple[int, int]
"""Start and end of a text in the text of its source."""
MAX_PLACES = 1000
"""Maximum number of places that are listed. A text with more is in the source, but at no certain place."""

# Minimum number of rising places that prove source order: in a random list the chance is under 1 %.
_MIN_RISING = 5
# Number of neighbors on each side that must rise. Farther ones may be out of order, because they were added later.
_NEARBY = 2
# Minimum number of pieces for which indexing the words of the text pays off.
_MANY = 50
_WORD = re.compile(r"\S+")

_Bounds = tuple[float, float]
_ANYWHERE: _Bounds = (-math.inf, math.inf)
_NOWHERE: _Bounds = (math.inf, math.inf)


class SourceText:
    """The text of a source, in which chunks are located."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._places: dict[str, list[Found]] = {}
        # The text with every run of white space collapsed to one space, and where each word starts in both texts.
        self._collapsed = " ".join(text.split())
        words = [match.span() for match in _WORD.finditer(text)]
        self._words = array("q", [start for start, _ in words])
        self._collapsed_words = array("q", accumulate((end - start + 1 for start, end in words), initial=0))

    def places(self, piece: str) -> list[Found]:
        """Return all places of a piece: verbatim, else with every run of white space collapsed to one space."""
        return self._places_of([piece])[piece]

    def _places_of(self, pieces: Collection[str]) -> dict[str, list[Found]]:
        new = [piece for piece in pieces if piece not in self._places]
        words: dict[str, list[int]] = {}
        if len(new) >= _MANY:
            for word, start in zip(self._collapsed.split(), self._collapsed_words, strict=False):
                words.setdefault(word, []).append(start)
        self._places.update((piece, self._find(piece, words)) for piece in new)
        return {piece: self._places[piece] for piece in pieces}

    def _find(self, piece: str, words: Mapping[str, Sequence[int]]) -> list[Found]:
        # Loaders leave the mark at the start of a file in its first chunk; a text that was read here has none.
        own = piece.removeprefix("\ufeff")
        collapsed = " ".join(own.split())
        found = [
            (self._in_text(start), self._in_text(start + len(collapsed) - 1) + 1)
            for start in islice(_starts(collapsed, self._collapsed, words), MAX_PLACES)
        ]
        before = len(piece) - len(own.lstrip())
        verbatim = [at - before for at, _ in found if at >= before and self.text.startswith(piece, at - before)]
        return [(start, start + len(piece)) for start in verbatim] or found

    def _in_text(self, offset: int) -> int:
        """Convert an offset in the collapsed text, which is not that of a space."""
        word = bisect_right(self._collapsed_words, offset) - 1
        return self._words[word] + offset - self._collapsed_words[word]

    def locate(
        self,
        texts: Sequence[str],
        pages: Sequence[Any] = (),  # the key of the page of each chunk, or of its place on it; None without a page
        offsets: Sequence[int | None] = (),  # that the chunks state, unverified
        *,
        complete: bool = False,  # whether these are all chunks of the source
        in_sequence: bool = False,  # whether they are in the sequence in which the store received them
    ) -> list[Found | None]:
        """Return the place of each chunk; None if it is not in the text, or its place is ambiguous."""
        counts = Counter(texts)
        places = self._places_of(counts)
        # More chunks than places: some were added again, so numbers of equal chunks prove nothing.
        added_again = any(0 < len(found) < counts[text] for text, found in places.items())
        if complete:
            places = self._own_places(places, counts)
        places = {text: found if len(found) < MAX_PLACES else [] for text, found in places.items()}
        chosen = [only[0] if len(only := places[text]) == 1 else None for text in texts]
        for index, (low, high) in enumerate(_bounds(pages, chosen)):
            here = [at for at in places[texts[index]] if low < at[0] < high]
            if len(here) == 1:
                chosen[index] = here[0]
        if added_again or None not in chosen:
            return chosen
        everywhere = [_ANYWHERE] * len(texts)
        between = _bounds(range(len(texts)), chosen) if in_sequence or _rises(chosen) else everywhere
        stated = [_NOWHERE] * len(texts)
        for index, (offset, (low, high)) in enumerate(zip(offsets, between, strict=False)):
            # Some tools search for the first place of a text, so it proves little that a chunk states this one.
            if offset is not None and (complete or (offset, 0) > min(places[texts[index]], default=(0, 0))):
                stated[index] = max(low, offset - 1), min(high, offset + 1)
        for bounds in (stated, between, everywhere):
            _share(texts, places, bounds, chosen)
        return chosen

    def _own_places(self, places: Mapping[str, list[Found]], counts: Mapping[str, int]) -> dict[str, list[Found]]:
        """Leave out places inside other chunks where as many places as chunks are left: chunks cover the source."""
        # Imported on demand: loading NumPy takes longer than loading this package.
        import numpy as np

        own = dict(places)
        covering = np.zeros(len(self.text), np.int32)
        for found in places.values():
            for start, end in found:
                covering[start:end] += 1
            if len(found) == MAX_PLACES:
                covering[found[-1][0] :] += 1
        # Long texts first, because they contain the short ones. Equally long ones in sequence: each place that is left
        # out can show that of the next text. All again, because some contain each other's ends.
        for text in sorted(places, key=lambda text: (-len(text), places[text][:1])) * 2:
            if counts[text] < len(own[text]) < MAX_PLACES:
                alone = [(start, end) for start, end in own[text] if (covering[start:end] == 1).any()]
                if len(alone) == counts[text]:
                    for start, end in set(own[text]).difference(alone):
                        covering[start:end] -= 1
                    own[text] = alone
        return own


def _starts(piece: str, text: str, words: Mapping[str, Sequence[int]]) -> Iterator[int]:
    """Yield the offsets of a piece; `words` are those of the words of the text, if many pieces are searched."""
    # Searching the whole text for each piece takes quadratic time, so search around the rarest of its words.
    rarest = min(piece.split()[1:-1], key=lambda word: len(words.get(word, ())), default="")
    if words and rarest and len(words.get(rarest, ())) < MAX_PLACES:
        shift = piece.index(f" {rarest} ") + 1
        for at in words.get(rarest, ()):
            if at >= shift and text.startswith(piece, at - shift):
                yield at - shift
        return
    start = text.find(piece) if piece else -1
    while start >= 0:
        yield start
        start = text.find(piece, start + 1)


def _rises(chosen: Sequence[Found | None]) -> bool:
    starts = [at[0] for at in chosen if at is not None]
    return len(starts) >= _MIN_RISING and starts == sorted(starts)


def _bounds(keys: Sequence[Any], chosen: Sequence[Found | None]) -> list[_Bounds]:
    """Return between which offsets each chunk must start: those of its neighbors by key, if these rise."""
    known = sorted((key, at[0]) for key, at in zip(keys, chosen, strict=False) if key is not None and at is not None)
    ordered, starts = [key for key, _ in known], [start for _, start in known]
    bounds: dict[Any, _Bounds] = {None: _ANYWHERE}
    for key in keys:
        if key not in bounds:
            first, after = bisect_left(ordered, key), bisect_right(ordered, key)
            around = starts[max(0, first - _NEARBY) : after + _NEARBY]
            low = starts[first - 1] if first else -math.inf
            high = starts[after] if after < len(starts) else math.inf
            bounds[key] = (low, high) if around == sorted(around) else _ANYWHERE
    return [bounds[key] for key in keys]


def _share(
    texts: Sequence[str],
    places: Mapping[str, Sequence[Found]],
    bounds: Sequence[_Bounds],
    chosen: list[Found | None],
) -> None:
    """Give chunks with equal texts and bounds the free places there, if there are as many."""
    taken = set(zip(texts, chosen, strict=True))
    alike: dict[tuple[str, _Bounds], list[int]] = {}
    for index, text in enumerate(texts):
        if chosen[index] is None:
            alike.setdefault((text, bounds[index]), []).append(index)
    for (text, (low, high)), indices in alike.items():
        free = [at for at in places[text] if low < at[0] < high and (text, at) not in taken]
        if len(free) == len(indices):
            for index, at in zip(indices, free, strict=True):
                chosen[index] = at
                taken.add((text, at))
