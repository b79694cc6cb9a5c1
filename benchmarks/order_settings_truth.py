"""The true order of chunks: each one is located in the text that was loaded, without oprag."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

__all__ = ["Truth", "Verdict"]

Made = tuple[str, int, str]  # key, number of the document, and text of a chunk
_TAGS = re.compile(r"<(style|script|title)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_NOT_WORDS = re.compile(r"[\W_]+")
_MIN_LINE = 20  # letters in a line that locates a chunk whose splitter rewrites texts


class Spot(NamedTuple):
    """A true place: letters and digits before the chunk, and whether its text occurs only once."""

    source: str
    version: str
    call: int
    start: int
    exact: bool

    def after(self, other: Spot) -> bool | None:
        """Compare; None for another text, an equal start, or a guess from another call of the splitter."""
        comparable = self.call == other.call or (self.exact and other.exact)
        if self[:2] != other[:2] or self.start == other.start or not comparable:
            return None
        return self.start > other.start


class Verdict(NamedTuple):
    """Pairs of chunks that compare, inverted ones, the sources that have some, and whether sources mix."""

    pairs: int
    inverted: int
    wrong: frozenset[str]
    torn: bool


class Truth:
    """The spots of chunks by key; None where even the text does not tell the place."""

    def __init__(self) -> None:
        self.spots: dict[str, Spot | None] = {}
        self._calls = 0

    def record(self, source: str, version: str, texts: Sequence[str], chunks: Sequence[Made]) -> None:
        """Locate the chunks of a call of a splitter, as it returned them, in the documents (pages, rows) of a file."""
        self._calls += 1
        places = _located(texts, chunks)
        if places.count(None) > len(chunks) // 20:
            # Splitters of HTML return texts without tags.
            plain = [html.unescape(_TAGS.sub(" ", text)) for text in texts]
            places = min(places, _located(plain, chunks), key=lambda found: found.count(None))
        for (key, _, _), place in zip(chunks, places, strict=True):
            spot = Spot(source, version, self._calls, *place) if place else None
            same = self.spots.get(key, spot)
            self.spots[key] = spot if spot and same and spot.start == same.start else None

    @property
    def share(self) -> float:
        """The share of the chunks with a known place."""
        return sum(spot is not None for spot in self.spots.values()) / max(len(self.spots), 1)

    def judge(self, keys: Iterable[str]) -> Verdict:
        """Compare the chunks of a context with the true order."""
        spots = [spot for key in keys if (spot := self.spots[key])]
        pairs = [(one.source, after) for one, two in combinations(spots, 2) if (after := one.after(two)) is not None]
        wrong = [source for source, after in pairs if after]
        runs = Counter(two.source for one, two in pairwise([None, *spots]) if two and (not one or one[0] != two[0]))
        return Verdict(len(pairs), len(wrong), frozenset(wrong), max(runs.values(), default=0) > 1)


def _located(texts: Sequence[str], chunks: Iterable[Made]) -> list[tuple[int, bool] | None]:
    squeezed = [_squeeze(text) for text in texts]
    starts = [0]
    for text in squeezed:
        starts.append(starts[-1] + len(text))
    last = [-1] * len(texts)
    places: list[tuple[int, bool] | None] = []
    for _, number, text in chunks:
        found = _find(squeezed[number], text, last[number])
        if found is not None:
            last[number] = found[0]
            found = starts[number] + found[0], found[1]
        places.append(found)
    return places


def _find(whole: str, text: str, last: int) -> tuple[int, bool] | None:
    """Where a text is; of several places, the first after `last`, where the chunk before it is.

    Such a guess is never after the true place, so chunks of one call stay in the order in which they were made.
    """
    wanted = _squeeze(text)
    first = whole.find(wanted) if wanted else -1
    if first >= 0:
        exact = whole.find(wanted, first + 1) < 0
        place = first if exact else whole.find(wanted, last + 1)
        return (place, exact) if place >= 0 else None
    before = 0
    for line in map(_squeeze, text.splitlines()):
        place = whole.find(line, last + 1) if len(line) >= _MIN_LINE else -1
        if place >= 0:
            return max(place - before, last, 0), False
        before += len(line)
    return None


def _squeeze(text: str) -> str:
    """Letters and digits only, since splitters drop spaces and markup."""
    return _NOT_WORDS.sub("", text).lower()
