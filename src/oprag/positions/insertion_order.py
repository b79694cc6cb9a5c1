"""The sequence in which a store received the chunks of a source: what their texts confirm, and what refutes it.

A splitter cuts a document from its start to its end, and most stores remember the sequence of what they were given.
That is the order of the document unless a part of it was added later: an update, a second ingestion, two writers. Where
a splitter repeats the end of a chunk at the start of the next one, the texts tell which chunks are neighbors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from oprag.chunk import Chunk, StorePlace
from oprag.positions.ladder import PAGE_FIELDS

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

# Why a sequence is not the order of the source.
ADDED_AGAIN = "the source seems to have been added to the store more than once"
TORN_APART = "chunks that overlap were added to the store apart from each other"

# Shorter agreements of an end and a start are words that come often.
_OVERLAP = 20
_HALF = _OVERLAP // 2
# Where no neighbors overlap, there is little to find; elsewhere the longest overlap says how far to look.
_REACH = 400
# The first chunks of a source, of which one comes again where the source was added again.
_FIRST = 3
# Fewer chunks that come again and again can be those of a source that repeats itself.
_PERIOD = 5
_MOST_STARTS = 20
# A splitter that repeats text does so more often than this.
_SHARE = 0.1
# An overlap that is shorter than this share of the shortest of the others is another accident.
_SHORTER = 0.6
_FEW = 10  # one in so many overlaps may be shorter
# Windows of one size overlap in the same number of characters, at this share of the places.
_EQUAL = 0.8
# Headings and sentences that come again look like overlaps of chunks that are not neighbors, at fewer of the places
# where neighbors do not overlap than this.
_ACCIDENTS = 0.02


class StoredChunk(NamedTuple):
    """A chunk of a source as its store has it.

    Attributes:
        key: Its key in the store, as `StoreAdapter.key` gives it for a chunk that was found.
        text: Its text.
        metadata: Its metadata.
        id: The id by which the store changes it; empty where that is the key.
        node: LlamaIndex: the node.
    """

    key: str
    text: str
    metadata: Mapping[str, Any] = MappingProxyType({})
    id: str = ""
    node: Any = None

    def as_chunk(self, rank: int) -> Chunk:
        """As a chunk whose id is the one by which the store changes it.

        Args:
            rank: Its rank.
        """
        return Chunk(self.text, rank, metadata=self.metadata, id=self.id or self.key)


class ListedSource(NamedTuple):
    """All chunks of a source, as a store lists them.

    Attributes:
        chunks: The chunks.
        keys: The key of each in the store, and the number of chunks with that key before it.
        key: Returns the key of a chunk that was found.
        in_sequence: Whether the store received them in this sequence.
    """

    chunks: Sequence[Chunk]
    keys: Sequence[tuple[str, int]]
    key: Callable[[Chunk], str | None]
    in_sequence: bool


class InsertionOrder(NamedTuple):
    """Where each chunk of a source stands.

    Attributes:
        places: The place of each chunk by its key and the number of chunks with that key before it.
        refuted: Why the sequence is not the order of the source, in words; empty where nothing contradicts it.
    """

    places: Mapping[tuple[str, int], StorePlace]
    refuted: str = ""


def read_insertion_order(stored: Sequence[StoredChunk], store: str) -> InsertionOrder:
    """Judge the sequence in which a store received the chunks of one source.

    Args:
        stored: All chunks of the source that the search can find, in that sequence; some may have the same key, as
            where texts are the keys.
        store: The name of the store, for messages.
    """
    texts = [chunk.text for chunk in stored]
    count = _once(texts)
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
    keys = occurrences(chunk.key for chunk in stored)
    return InsertionOrder({key: places[index % count] for index, key in enumerate(keys)}, refuted)


def places_in_store(chunks: Sequence[Chunk], store: str) -> tuple[list[StorePlace], str]:
    """Judge all chunks of one source, given in the sequence in which a store received them.

    Returns:
        The place of each chunk; and why the sequence is not the order of the source, empty if nothing contradicts it.
    """
    order = read_insertion_order(
        [StoredChunk(str(row), chunk.text, chunk.metadata) for row, chunk in enumerate(chunks)], store
    )
    return [order.places[str(row), 0] for row in range(len(chunks))], order.refuted


def occurrences(keys: Iterable[str | None]) -> list[tuple[str, int]]:
    """Each key with the number of equal ones before it; those that are missing are left out."""
    before: Counter[str] = Counter()
    numbered: list[tuple[str, int]] = []
    for key in keys:
        if key is not None:
            numbered.append((key, before[key]))
            before[key] += 1
    return numbered


def _once(texts: Sequence[str]) -> int:
    """How many chunks the source has, where the same ones were added several times in the same sequence."""
    if texts.count(texts[0]) == 1:
        return len(texts)
    again = texts.index(texts[0], 1)
    times, rest = divmod(len(texts), again)
    repeated = again >= _PERIOD and not rest and list(texts) == list(texts[:again]) * times
    return again if repeated else len(texts)


def _added_again(texts: Sequence[str]) -> bool:
    """Whether another version of the source follows: it begins as the first one, and most of it is there before."""
    # A few repeated chunks at the end are not another version.
    starts = (start for start in range(1, 2 * len(texts) // 3 + 1) if texts[start] in texts[: min(start, _FIRST)])
    for start in islice(starts, _MOST_STARTS):
        # Each once: an answer such as "Yes" may come again and again.
        later = set(texts[start:])
        if 2 * len(later.intersection(texts[:start])) > len(later):
            return True
    return False


def overlaps_of(texts: Sequence[str]) -> list[int]:
    """The characters that the end of each text and the start of the next one have in common.

    0 where that proves nothing: other chunks have the same end or start, as with a form or a letterhead,
    or they agree in much less than most of the others do.
    """
    starts, ends = Counter(text[:_OVERLAP] for text in texts), Counter(text[-_OVERLAP:] for text in texts)
    found = [
        _overlap(before, after) if starts[after[:_OVERLAP]] == 1 == ends[before[-_OVERLAP:]] else 0
        for before, after in pairwise(texts)
    ]
    least = _least(found)
    return [length if length >= least else 0 for length in found]


def _least(lengths: Iterable[int]) -> float:
    """The length from which overlaps count: half the median, and not much less than the shortest of the others.

    A repeated phrase where two parts of a source meet agrees in less than windows of one size do.
    """
    there = sorted(filter(None, lengths))
    if len(there) < 2:
        return 0.0
    # Of the shortest ones some may be such phrases.
    return max(there[len(there) // 2] / 2, _SHORTER * there[1 + (len(there) - 1) // _FEW])


def _ends_as_it_begins(texts: Sequence[str], overlaps: Sequence[int]) -> bool:
    """Whether the last chunk continues in the first one as neighbors do, so that the two may be in the middle."""
    first, last = texts[0], texts[-1]
    if len(texts) < 3 or not any(overlaps):
        return False
    alone = sum(text.startswith(first[:_OVERLAP]) for text in texts) == 1
    alone = alone and sum(text.endswith(last[-_OVERLAP:]) for text in texts) == 1
    return alone and _overlap(last, first) >= max(_OVERLAP, _least(overlaps))


def _overlap(before: str, after: str) -> int:
    start = after[:_OVERLAP]
    if len(start) < _OVERLAP:
        return 0
    at = before.find(start, max(0, len(before) - len(after)))
    while at >= 0 and not after.startswith(before[at:]):
        at = before.find(start, at + 1)
    return len(before) - at if at >= 0 else 0


def _page_of(chunk: StoredChunk) -> list[Any]:
    values = [chunk.metadata.get(field) for field in PAGE_FIELDS]
    return [value if isinstance(value, str | int | float) else None for value in values]


def _torn_apart(texts: Sequence[str], overlaps: Sequence[int], pages: Sequence[Any]) -> bool:
    """Whether chunks that overlap none of their neighbors continue in others, so that a part was added elsewhere.

    One such pair proves little among a hundred places where neighbors do not overlap: reports repeat a sentence here
    and there. It does where another pair leads back, around the part that was moved.
    """
    apart = _apart(texts, overlaps, pages)
    found = [*filter(None, overlaps), *(length for _, _, length in apart)]
    least = _least(found)
    links = [(end, start) for end, start, length in apart if length >= least]
    if not links or len(found) < _SHARE * len(overlaps):
        return False
    return len(links) > _ACCIDENTS * (len(overlaps) - len(found) + len(apart)) or _leads_back(links)


def _leads_back(links: Sequence[tuple[int, int]]) -> bool:
    """Whether a part that a chunk continues in ends where the chunk after that one begins."""
    ends = {start: end for end, start in links}
    return any(end + 1 in ends and ends[end + 1] >= start for end, start in links)


def _apart(texts: Sequence[str], overlaps: Sequence[int], pages: Sequence[Any]) -> list[tuple[int, int, int]]:
    """The overlaps of chunks that are not neighbors, in text that is nowhere else in the source.

    Chunks of two pages do not overlap: loaders that write pages make a document of each, and a splitter stays in it.

    Returns:
        The number of the chunk that ends with the text, that of the chunk that begins with it, and its length.
    """
    starts: dict[str, int | None] = {}
    for index, text in enumerate(texts):
        if (not index or not overlaps[index - 1]) and len(text) >= _OVERLAP:
            start = text[:_OVERLAP]
            starts[start] = None if start in starts else index
    ends = Counter(text[-_OVERLAP:] for text in texts)
    reach = max([*overlaps, _OVERLAP]) if any(overlaps) else _REACH
    found: list[tuple[int, int, int]] = []
    for index, text in enumerate(texts):
        # A header or a footer does not continue elsewhere.
        if (index < len(overlaps) and overlaps[index]) or ends[text[-_OVERLAP:]] > 1:
            continue
        for at in range(max(0, len(text) - reach), len(text) - _OVERLAP + 1):
            other = starts.get(text[at : at + _OVERLAP])
            if other is None or other in (index, index + 1) or pages[other] != pages[index]:
                continue
            if texts[other].startswith(text[at:]):
                found.append((index, other, len(text) - at))
    halves = {(end, length): _halves(texts[end][-length:]) for end, _, length in found}
    rare = _rare({half for both in halves.values() for half in both}, texts)
    size = _window_overlap(overlaps)
    longest: dict[int, tuple[int, int, int]] = {}
    for one in found:
        # What is as long as all others is no accident, however often a part of it comes.
        if one[2] == size or rare.issuperset(halves[one[0], one[2]]):
            longest.setdefault(one[0], one)
    return list(longest.values())


def _window_overlap(overlaps: Sequence[int]) -> int:
    """The characters in which windows of one size overlap; 0 where the overlaps are not that of such windows."""
    times = Counter(filter(None, overlaps)).most_common(1)
    if not times or times[0][1] < _PERIOD or times[0][1] < _EQUAL * len(overlaps):
        return 0
    return times[0][0]


def _halves(overlap: str) -> tuple[str, str]:
    """An overlap in two parts, since a page number in it makes every footer another one."""
    return overlap[: len(overlap) // 2], overlap[len(overlap) // 2 :]


def _rare(parts: Collection[str], texts: Sequence[str]) -> set[str]:
    """The parts of overlaps that are in two chunks only, found in one pass over the texts."""
    # Lines of a log begin alike, so parts are looked up whole, by the lengths that begin so.
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
