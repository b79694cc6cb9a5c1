"""Overlaps of texts: which chunks of a source follow each other, told by the text that a splitter repeats.

The one place where overlaps are found. Boilerplate, refrains and forms repeat text as well; most of this module is
about not mistaking these for overlaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

__all__ = ["overlap_of", "overlaps_of", "successors"]

# Minimum characters of an overlap; a shorter match of an end and a start may be a common phrase.
_MIN_OVERLAP = 20
_HALF = _MIN_OVERLAP // 2
# More places than this where an overlap could begin mean repeating text; checking each would take quadratic time.
_MAX_PLACES = 64
# An overlap shorter than this share of the shortest other overlap is a coincidence.
_MIN_RELATIVE_LENGTH = 0.6
_EXCEPTIONS = 10  # one in this many overlaps may be shorter
# Characters at the end of a chunk to search for overlaps if no adjacent chunks overlap (else the longest overlap), and
# maximum number of chunks for it: a splitter that overlaps chunks does so nearly everywhere.
_SEARCH_LENGTH = 400
_MAX_SEARCHED = 200
# Repeated headings and sentences look like overlaps of chunks that are not adjacent. Up to this share of the pairs of
# adjacent chunks without an overlap, such matches are coincidences.
_COINCIDENCES = 0.02


def overlaps_of(texts: Sequence[str]) -> list[int]:
    """Return the overlap of each text with the next in characters; 0 if it is short, or other chunks share its text."""
    starts, ends = Counter(text[:_MIN_OVERLAP] for text in texts), Counter(text[-_MIN_OVERLAP:] for text in texts)
    found = [
        overlap_of(before, after) if starts[after[:_MIN_OVERLAP]] == 1 == ends[before[-_MIN_OVERLAP:]] else 0
        for before, after in pairwise(texts)
    ]
    # A phrase that happens to repeat where two parts of a source meet is shorter than the overlaps of the splitter; the
    # very shortest may be such phrases.
    lengths = sorted(filter(None, found))
    if len(lengths) < 2:
        return found
    minimum = max(lengths[len(lengths) // 2] / 2, _MIN_RELATIVE_LENGTH * lengths[1 + (len(lengths) - 1) // _EXCEPTIONS])
    return [length if length >= minimum else 0 for length in found]


def overlap_of(before: str, after: str) -> int:
    """Return the number of characters at the end of a text that the other one starts with; 0 if they are few."""
    start = after[:_MIN_OVERLAP]
    if len(start) < _MIN_OVERLAP:
        return 0
    at = before.find(start, max(0, len(before) - len(after)))
    for _ in range(_MAX_PLACES):
        if at < 0 or after.startswith(before[at:]):
            break
        at = before.find(start, at + 1)
    return len(before) - at if at >= 0 and after.startswith(before[at:]) else 0


def successors(texts: Sequence[str], overlaps: Sequence[int]) -> dict[int, int]:
    """Return, by the index of a chunk, that of the chunk which it overlaps with text that occurs nowhere else."""
    following = {index: index + 1 for index, overlap in enumerate(overlaps) if overlap}
    apart = _apart(texts, overlaps)
    few = len(apart) <= _COINCIDENCES * (len(overlaps) - len(following))
    return following if few else following | apart


def _apart(texts: Sequence[str], overlaps: Sequence[int]) -> dict[int, int]:
    """Find overlaps of chunks that are not adjacent, in text that occurs nowhere else in the source."""
    starts: dict[str, int | None] = {}
    for index, text in enumerate(texts):
        if (not index or not overlaps[index - 1]) and len(text) >= _MIN_OVERLAP:
            start = text[:_MIN_OVERLAP]
            starts[start] = None if start in starts else index
    # An end that several chunks share is a header or a footer, not an overlap.
    ends = Counter(text[-_MIN_OVERLAP:] for text in texts)
    searched = [
        index
        for index, (text, overlap) in enumerate(zip(texts, [*overlaps, 0], strict=True))
        if not overlap and ends[text[-_MIN_OVERLAP:]] == 1
    ]
    length = max([*overlaps, _MIN_OVERLAP]) if any(overlaps) else _SEARCH_LENGTH
    if not any(overlaps) and len(searched) > _MAX_SEARCHED:
        return {}
    found: list[tuple[int, int, str]] = []
    for index in searched:
        text = texts[index]
        for at in range(max(0, len(text) - length), len(text) - _MIN_OVERLAP + 1):
            other = starts.get(text[at : at + _MIN_OVERLAP])
            if other is not None and other not in (index, index + 1) and texts[other].startswith(text[at:]):
                found.append((index, other, text[at:]))
    rare = _rare({half for _, _, overlap in found for half in _halves(overlap)}, texts)
    following: dict[int, int] = {}
    taken: set[int] = set()
    for end, after, overlap in found:
        if end not in following and after not in taken and rare.issuperset(_halves(overlap)):
            following[end] = after
            taken.add(after)
    return following


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
