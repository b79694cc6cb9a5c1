"""Overlaps of texts: which chunks of a source follow each other, told by the text that a splitter repeats.

The one place where overlaps are found. Boilerplate, refrains and forms repeat text as well; most of this module is
about not mistaking these for overlaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["apart", "ends_as_it_begins", "overlap_of", "overlaps_of", "successors"]

# Minimum characters of an overlap; a shorter match of an end and a start may be a common phrase.
_MIN_OVERLAP = 20
_HALF = _MIN_OVERLAP // 2
# Characters at the end of a chunk to search for overlaps if no adjacent chunks overlap (else the longest overlap).
_SEARCH_LENGTH = 400
# Chunks that are searched if no adjacent chunks overlap, spread over the list.
_SAMPLE = 100
# Minimum number of windows that overlap by the same number of characters.
_MIN_WINDOWS = 5
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


def overlaps_of(texts: Sequence[str]) -> list[int]:
    """Return the overlap of each text with the next, in characters.

    The overlap is 0 if it proves nothing: other chunks have the same end or start, as with a form or a letterhead, or
    it is much shorter than most of the others.
    """
    starts, ends = Counter(text[:_MIN_OVERLAP] for text in texts), Counter(text[-_MIN_OVERLAP:] for text in texts)
    found = [
        overlap_of(before, after) if starts[after[:_MIN_OVERLAP]] == 1 == ends[before[-_MIN_OVERLAP:]] else 0
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


def ends_as_it_begins(texts: Sequence[str], overlaps: Sequence[int]) -> bool:
    """Return whether the last chunk overlaps the first, so that the source may start in the middle of the list."""
    first, last = texts[0], texts[-1]
    if len(texts) < 3 or not any(overlaps):
        return False
    unique = sum(text.startswith(first[:_MIN_OVERLAP]) for text in texts) == 1
    unique = unique and sum(text.endswith(last[-_MIN_OVERLAP:]) for text in texts) == 1
    return unique and overlap_of(last, first) >= max(_MIN_OVERLAP, _min_length(overlaps))


def overlap_of(before: str, after: str) -> int:
    """Return the number of characters at the end of a text that the other one starts with; 0 if they are few."""
    start = after[:_MIN_OVERLAP]
    if len(start) < _MIN_OVERLAP:
        return 0
    at = before.find(start, max(0, len(before) - len(after)))
    while at >= 0 and not after.startswith(before[at:]):
        at = before.find(start, at + 1)
    return len(before) - at if at >= 0 else 0


def apart(texts: Sequence[str], overlaps: Sequence[int], pages: Sequence[Any]) -> dict[int, int]:
    """Return, by the index of a chunk, that of the distant chunk which it overlaps; empty if these are coincidences.

    A single such pair proves little among a hundred adjacent chunks without an overlap: reports repeat a sentence now
    and then. It is proof if another pair leads back from the moved part.

    Args:
        texts: The texts of all chunks of a source, as listed.
        overlaps: Their `overlaps_of`.
        pages: Their pages. Chunks of different pages are not compared: loaders that record pages make a document of
            each, and splitters do not overlap documents.
    """
    pairs = _apart(texts, overlaps, pages)
    found = [*filter(None, overlaps), *(length for _, _, length in pairs)]
    minimum = _min_length(found)
    links = {end: start for end, start, length in pairs if length >= minimum}
    if not links or len(found) < _MIN_OVERLAPPING * len(overlaps):
        return {}
    few = len(links) <= _COINCIDENCES * (len(overlaps) - len(found) + len(pairs))
    return {} if few and not _leads_back(links) else links


def successors(texts: Sequence[str], pages: Sequence[Any]) -> dict[int, int]:
    """Return, by the index of a chunk, that of the chunk which it overlaps with text that occurs nowhere else.

    Args:
        texts: The texts of chunks of a source, in any order.
        pages: Their pages.
    """
    overlaps = overlaps_of(texts)
    found = {index: index + 1 for index, overlap in enumerate(overlaps) if overlap}
    for end, start, _ in _apart(texts, overlaps, pages):
        found.setdefault(end, start)
    return found


def _leads_back(links: Mapping[int, int]) -> bool:
    """Return whether one link jumps from a chunk to a moved part, and another from its end to the following chunk."""
    ends = {start: end for end, start in links.items()}
    return any(end + 1 in ends and ends[end + 1] >= start for end, start in links.items())


def _apart(texts: Sequence[str], overlaps: Sequence[int], pages: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Find overlaps of chunks that are not adjacent, in text that occurs nowhere else in the source.

    Returns:
        For each overlap, the index of the chunk that ends with it, of the chunk that starts with it, and its length.
    """
    starts: dict[str, int | None] = {}
    for index, text in enumerate(texts):
        if (not index or not overlaps[index - 1]) and len(text) >= _MIN_OVERLAP:
            start = text[:_MIN_OVERLAP]
            starts[start] = None if start in starts else index
    # An end that several chunks share is a header or a footer, not an overlap.
    ends = Counter(text[-_MIN_OVERLAP:] for text in texts)
    searched = [
        index
        for index, text in enumerate(texts)
        if not (index < len(overlaps) and overlaps[index]) and ends[text[-_MIN_OVERLAP:]] == 1
    ]
    length = max([*overlaps, _MIN_OVERLAP]) if any(overlaps) else _SEARCH_LENGTH
    if not any(overlaps) and len(searched) > 2 * _SAMPLE:
        # A splitter that overlaps chunks does so nearly everywhere, and searching all of them takes long.
        sample = searched[:: len(searched) // _SAMPLE]
        if not any(True for _ in _matches(sample, texts, starts, pages, length)):
            return []
    found = list(_matches(searched, texts, starts, pages, length))
    halves = {(end, size): _halves(texts[end][-size:]) for end, _, size in found}
    rare = _rare({half for both in halves.values() for half in both}, texts)
    window = _window_overlap(overlaps)
    longest: dict[int, tuple[int, int, int]] = {}
    for one in found:
        # An overlap of exactly the splitter's length is real, even if parts of its text occur often.
        if one[2] == window or rare.issuperset(halves[one[0], one[2]]):
            longest.setdefault(one[0], one)
    return list(longest.values())


def _matches(
    indices: Iterable[int],
    texts: Sequence[str],
    starts: Mapping[str, int | None],
    pages: Sequence[Any],
    search_length: int,
) -> Iterator[tuple[int, int, int]]:
    """Yield each end of these chunks that another chunk of their page starts with, as in `_apart`."""
    for index in indices:
        text = texts[index]
        for at in range(max(0, len(text) - search_length), len(text) - _MIN_OVERLAP + 1):
            other = starts.get(text[at : at + _MIN_OVERLAP])
            if other is None or other in (index, index + 1) or pages[other] != pages[index]:
                continue
            if texts[other].startswith(text[at:]):
                yield index, other, len(text) - at


def _window_overlap(overlaps: Sequence[int]) -> int:
    """Return the overlap of windows of equal size, in characters; 0 if the chunks are not such windows."""
    times = Counter(filter(None, overlaps)).most_common(1)
    if not times or times[0][1] < _MIN_WINDOWS or times[0][1] < _EQUAL_SHARE * len(overlaps):
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
