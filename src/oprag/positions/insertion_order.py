"""Checks whether a store's insertion order is the order of the source, by the overlaps of chunk texts.

A splitter cuts a document from start to end, and most stores remember the order in which chunks were added. This is the
order of the document unless a part of it was added later: by an update, a second ingestion or a second writer. If the
splitter overlaps chunks, the texts show which chunks are adjacent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from oprag.chunk import Chunk, StorePlace
from oprag.positions.fields import PAGE_FIELDS
from oprag.positions.witnesses import confirmed_order

__all__ = [
    "ADDED_AGAIN",
    "TORN_APART",
    "InsertionOrder",
    "ListedSource",
    "StoredChunk",
    "occurrences",
    "overlaps_of",
    "places_in_store",
    "read_insertion_order",
]

# Reasons why the insertion order is not the order of the source.
ADDED_AGAIN = "the source seems to have been added to the store more than once"
TORN_APART = "chunks that overlap were added to the store apart from each other"

# Minimum characters of an overlap; a shorter match of an end and a start may be a common phrase.
_MIN_OVERLAP = 20
_HALF = _MIN_OVERLAP // 2
# Characters at the end of a chunk to search for overlaps if no adjacent chunks overlap (else the longest overlap).
_SEARCH_LENGTH = 400
# If a source was added again, one of its first chunks occurs again.
_FIRST = 3
# Minimum number of repeated chunks; fewer may come from a source that repeats itself.
_MIN_REPEATED = 5
_MAX_STARTS = 20
# Minimum share of adjacent chunks that overlap if the splitter overlaps chunks.
_MIN_OVERLAPPING = 0.1
# An overlap shorter than this share of the shortest other overlap is a coincidence.
_MIN_RELATIVE_LENGTH = 0.6
_EXCEPTIONS = 10  # one in this many overlaps may be shorter
# Windows of equal size overlap by the same number of characters in at least this share of the pairs.
_EQUAL_SHARE = 0.8
# Repeated headings and sentences look like overlaps of chunks that are not adjacent. Up to this share of the pairs of
# adjacent chunks without an overlap, such matches are coincidences.
_COINCIDENCES = 0.02


class StoredChunk(NamedTuple):
    """A chunk as it is stored.

    Attributes:
        key: Its key in the store; `StoreAdapter.key` returns the same key for a retrieved chunk.
        text: Its text.
        metadata: Its metadata.
        id: The id for updating it in the store; empty if it is the same as the key.
        node: The node (LlamaIndex only).
    """

    key: str
    text: str
    metadata: Mapping[str, Any] = MappingProxyType({})
    id: str = ""
    node: Any = None

    def as_chunk(self, rank: int) -> Chunk:
        """Convert to a `Chunk` whose id is the one for updating it in the store.

        Args:
            rank: The rank of the chunk.
        """
        return Chunk(self.text, rank, metadata=self.metadata, id=self.id or self.key)


class ListedSource(NamedTuple):
    """All chunks of a source, as a store lists them.

    Attributes:
        chunks: The chunks.
        keys: For each chunk, its key in the store and the number of earlier chunks with that key.
        key: Returns the key of a retrieved chunk.
        in_sequence: Whether the chunks are in insertion order.
    """

    chunks: Sequence[Chunk]
    keys: Sequence[tuple[str, int]]
    key: Callable[[Chunk], str | None]
    in_sequence: bool


class InsertionOrder(NamedTuple):
    """The place of each chunk of a source in a store's insertion order.

    Attributes:
        places: The place of each chunk, by its key and the number of earlier chunks with that key.
        refuted: Why insertion order is not the order of the source; empty if nothing contradicts it.
    """

    places: Mapping[tuple[str, int], StorePlace]
    refuted: str = ""


def read_insertion_order(stored: Sequence[StoredChunk], store: str) -> InsertionOrder:
    """Check whether the insertion order of the chunks of one source is the order of the source.

    Args:
        stored: All chunks of the source that the search can find, in insertion order. Several may have the same key,
            for example in stores that use texts as keys.
        store: The name of the store, for messages.
    """
    texts = [chunk.text for chunk in stored]
    count = _count_once(texts)
    texts = texts[:count]
    overlaps = overlaps_of(texts)
    refuted = ""
    if _added_again(texts):
        refuted = ADDED_AGAIN
    elif _torn_apart(texts, overlaps, [_page_of(chunk) for chunk in stored]):
        refuted = TORN_APART
    elif _ends_as_it_begins(texts, overlaps):
        overlaps = [0] * len(overlaps)
    evidence = f"{store}, {sum(map(bool, overlaps))} of {len(overlaps)} neighbors overlap"
    places = [StorePlace(0, 0, evidence)]
    for number, (before, overlap) in enumerate(zip(texts, overlaps, strict=False), 1):
        last = places[-1]
        start = last.start + len(before) - overlap if overlap else 0
        places.append(StorePlace(last.run + (not overlap), number, evidence, start))
    confirmed = None if refuted else confirmed_order([chunk.metadata for chunk in stored[:count]], texts)
    if confirmed is not None:
        evidence = f"{store}, confirmed by {confirmed.field}"
        for number, index in enumerate(confirmed.order):
            places[index] = places[index]._replace(number=number, evidence=evidence, confirmed_by=confirmed.field)
    keys = occurrences(chunk.key for chunk in stored)
    return InsertionOrder({key: places[index % count] for index, key in enumerate(keys)}, refuted)


def places_in_store(chunks: Sequence[Chunk], store: str) -> tuple[list[StorePlace], str]:
    """Check all chunks of one source, given in insertion order.

    Returns:
        The place of each chunk, and why insertion order is not the order of the source (empty if nothing contradicts
        it).
    """
    order = read_insertion_order(
        [StoredChunk(str(row), chunk.text, chunk.metadata) for row, chunk in enumerate(chunks)], store
    )
    return [order.places[str(row), 0] for row in range(len(chunks))], order.refuted


def occurrences(keys: Iterable[str | None]) -> list[tuple[str, int]]:
    """Pair each key with the number of equal keys before it; skips None."""
    before: Counter[str] = Counter()
    numbered: list[tuple[str, int]] = []
    for key in keys:
        if key is not None:
            numbered.append((key, before[key]))
            before[key] += 1
    return numbered


def _count_once(texts: Sequence[str]) -> int:
    """Return the number of chunks, counting chunks once if all were added several times in the same order."""
    if texts.count(texts[0]) == 1:
        return len(texts)
    again = texts.index(texts[0], 1)
    times, rest = divmod(len(texts), again)
    repeated = again >= _MIN_REPEATED and not rest and list(texts) == list(texts[:again]) * times
    return again if repeated else len(texts)


def _added_again(texts: Sequence[str]) -> bool:
    """Return whether a second version of the source follows: it starts like the first and mostly repeats it."""
    # A few repeated chunks at the end are not a second version.
    starts = (start for start in range(1, 2 * len(texts) // 3 + 1) if texts[start] in texts[: min(start, _FIRST)])
    for start in islice(starts, _MAX_STARTS):
        # Count each text once: one such as "Yes" may occur many times.
        later = set(texts[start:])
        if 2 * len(later.intersection(texts[:start])) > len(later):
            return True
    return False


def overlaps_of(texts: Sequence[str]) -> list[int]:
    """Return the overlap of each text with the next, in characters.

    The overlap is 0 if it proves nothing: other chunks have the same end or start, as with a form or a letterhead, or
    it is much shorter than most of the others.
    """
    starts, ends = Counter(text[:_MIN_OVERLAP] for text in texts), Counter(text[-_MIN_OVERLAP:] for text in texts)
    found = [
        _overlap(before, after) if starts[after[:_MIN_OVERLAP]] == 1 == ends[before[-_MIN_OVERLAP:]] else 0
        for before, after in pairwise(texts)
    ]
    minimum = _min_length(found)
    return [length if length >= minimum else 0 for length in found]


def _min_length(lengths: Iterable[int]) -> float:
    """Return the minimum length of a real overlap: half the median, and not much less than the shortest others.

    A phrase that happens to repeat where two parts of a source meet is shorter than the overlap of the splitter.
    """
    present = sorted(filter(None, lengths))
    if len(present) < 2:
        return 0.0
    # Skip the very shortest, which may be such phrases.
    return max(present[len(present) // 2] / 2, _MIN_RELATIVE_LENGTH * present[1 + (len(present) - 1) // _EXCEPTIONS])


def _ends_as_it_begins(texts: Sequence[str], overlaps: Sequence[int]) -> bool:
    """Return whether the last chunk overlaps the first, so that the source may start in the middle of the list."""
    first, last = texts[0], texts[-1]
    if len(texts) < 3 or not any(overlaps):
        return False
    unique = sum(text.startswith(first[:_MIN_OVERLAP]) for text in texts) == 1
    unique = unique and sum(text.endswith(last[-_MIN_OVERLAP:]) for text in texts) == 1
    return unique and _overlap(last, first) >= max(_MIN_OVERLAP, _min_length(overlaps))


def _overlap(before: str, after: str) -> int:
    start = after[:_MIN_OVERLAP]
    if len(start) < _MIN_OVERLAP:
        return 0
    at = before.find(start, max(0, len(before) - len(after)))
    while at >= 0 and not after.startswith(before[at:]):
        at = before.find(start, at + 1)
    return len(before) - at if at >= 0 else 0


def _page_of(chunk: StoredChunk) -> list[Any]:
    values = [chunk.metadata.get(field) for field in PAGE_FIELDS]
    return [value if isinstance(value, str | int | float) else None for value in values]


def _torn_apart(texts: Sequence[str], overlaps: Sequence[int], pages: Sequence[Any]) -> bool:
    """Return whether chunks overlap distant chunks instead of adjacent ones, so a part was added elsewhere.

    A single such pair proves little among a hundred adjacent chunks without an overlap: reports repeat a sentence now
    and then. It is proof if another pair leads back from the moved part.
    """
    apart = _apart(texts, overlaps, pages)
    found = [*filter(None, overlaps), *(length for _, _, length in apart)]
    minimum = _min_length(found)
    links = [(end, start) for end, start, length in apart if length >= minimum]
    if not links or len(found) < _MIN_OVERLAPPING * len(overlaps):
        return False
    return len(links) > _COINCIDENCES * (len(overlaps) - len(found) + len(apart)) or _leads_back(links)


def _leads_back(links: Sequence[tuple[int, int]]) -> bool:
    """Return whether one link jumps from a chunk to a moved part, and another from its end to the following chunk."""
    ends = {start: end for end, start in links}
    return any(end + 1 in ends and ends[end + 1] >= start for end, start in links)


def _apart(texts: Sequence[str], overlaps: Sequence[int], pages: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Find overlaps of chunks that are not adjacent, in text that occurs nowhere else in the source.

    Chunks of different pages are not compared: loaders that record pages make a document of each, and splitters do not
    overlap documents.

    Returns:
        For each overlap, the index of the chunk that ends with it, of the chunk that starts with it, and its length.
    """
    starts: dict[str, int | None] = {}
    for index, text in enumerate(texts):
        if (not index or not overlaps[index - 1]) and len(text) >= _MIN_OVERLAP:
            start = text[:_MIN_OVERLAP]
            starts[start] = None if start in starts else index
    ends = Counter(text[-_MIN_OVERLAP:] for text in texts)
    search_length = max([*overlaps, _MIN_OVERLAP]) if any(overlaps) else _SEARCH_LENGTH
    found: list[tuple[int, int, int]] = []
    for index, text in enumerate(texts):
        # An end that several chunks share is a header or a footer, not an overlap.
        if (index < len(overlaps) and overlaps[index]) or ends[text[-_MIN_OVERLAP:]] > 1:
            continue
        for at in range(max(0, len(text) - search_length), len(text) - _MIN_OVERLAP + 1):
            other = starts.get(text[at : at + _MIN_OVERLAP])
            if other is None or other in (index, index + 1) or pages[other] != pages[index]:
                continue
            if texts[other].startswith(text[at:]):
                found.append((index, other, len(text) - at))
    halves = {(end, length): _halves(texts[end][-length:]) for end, _, length in found}
    rare = _rare({half for both in halves.values() for half in both}, texts)
    size = _window_overlap(overlaps)
    longest: dict[int, tuple[int, int, int]] = {}
    for one in found:
        # An overlap of exactly the splitter's length is real, even if parts of its text occur often.
        if one[2] == size or rare.issuperset(halves[one[0], one[2]]):
            longest.setdefault(one[0], one)
    return list(longest.values())


def _window_overlap(overlaps: Sequence[int]) -> int:
    """Return the overlap of windows of equal size, in characters; 0 if the chunks are not such windows."""
    times = Counter(filter(None, overlaps)).most_common(1)
    if not times or times[0][1] < _MIN_REPEATED or times[0][1] < _EQUAL_SHARE * len(overlaps):
        return 0
    return times[0][0]


def _halves(overlap: str) -> tuple[str, str]:
    """Split an overlap in two: a page number makes every footer unique, but only in one half."""
    return overlap[: len(overlap) // 2], overlap[len(overlap) // 2 :]


def _rare(parts: Collection[str], texts: Sequence[str]) -> set[str]:
    """Return the parts that occur at most twice, counted in one pass over the texts."""
    # Lines of a log have the same start, so look up whole parts, by the lengths of all parts with this start.
    lengths: dict[str, set[int]] = {}
    for part in parts:
        lengths.setdefault(part[:_HALF], set()).add(len(part))
    times = dict.fromkeys(parts, 0)
    for text in texts if parts else ():
        for at in range(len(text) - _HALF + 1):
            for length in lengths.get(text[at : at + _HALF], ()):
                part = text[at : at + length]
                if len(part) == length and part in times:
                    times[part] += 1
    return {part for part, count in times.items() if count <= 2}
