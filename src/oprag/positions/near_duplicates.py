"""Texts that nearly repeat an earlier one, found without embeddings, in time linear in their length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from zlib import crc32

__all__ = ["near_duplicates"]

_WORDS = re.compile(r"\w+")
_SHINGLE = 5  # words
_ONE_IN = 8  # shingles are compared
# With fewer of them, a few common phrases would make a duplicate.
_FEWEST = 4
_SHARE = 0.8
# A phrase of more texts is boilerplate, by which texts are not found.
_MOST_TEXTS = 16


def near_duplicates(texts: Sequence[str], related: Callable[[int, int], bool]) -> dict[int, int]:
    """The numbers of the texts of which at least 80 % are in one earlier text, with the number of that one.

    Args:
        texts: The texts.
        related: Whether two of them, by their numbers, share text by design.
    """
    numbers: dict[str, int] = {}
    earlier: dict[int, list[int]] = {}
    found: dict[int, int] = {}
    for index, text in enumerate(texts):
        shingles = _shingles(text, numbers)
        if len(shingles) >= _FEWEST:
            shared = Counter(other for shingle in shingles for other in earlier.get(shingle, ()))
            enough = _SHARE * len(shingles)
            others = (other for other, number in shared.items() if number >= enough and not related(index, other))
            if (first := min(others, default=None)) is not None:
                found[index] = first
        for shingle in shingles:
            there = earlier.setdefault(shingle, [])
            if len(there) < _MOST_TEXTS:
                there.append(index)
    return found


def _shingles(text: str, numbers: dict[str, int]) -> set[int]:
    """A sample of the runs of five words, the same in every text and process."""
    words: list[int] = []
    for word in _WORDS.findall(text.lower()):
        number = numbers.get(word)
        if number is None:
            number = numbers[word] = crc32(word.encode("utf-8", "surrogatepass"))
        words.append(number)
    runs = zip(*(words[start:] for start in range(_SHINGLE)), strict=False)
    # Of whole numbers a tuple's hash does not change from process to process.
    return {shingle for shingle in map(hash, runs) if shingle % _ONE_IN == 0}
