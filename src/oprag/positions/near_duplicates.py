"""Finds near-duplicates of earlier texts without embeddings, in time linear in the length of the texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from zlib import crc32

__all__ = ["near_duplicates"]

_WORDS = re.compile(r"\w+")
_SHINGLE = 5  # words
_MIN_SHINGLES = 8  # a shorter text may be a common phrase
_MIN_SHARE = 0.8  # of the shingles of a near-duplicate
# A sample of the shingles tells which texts are worth comparing.
_ONE_IN = 8
_MIN_SAMPLED_SHARE = 0.6
_MAX_COMPARED = 3
_MAX_TEXTS = 16  # a phrase in more texts is boilerplate, which is not used to find texts


def near_duplicates(texts: Sequence[str], related: Callable[[int, int], bool]) -> dict[int, int]:
    """Map the index of each text that shares at least 80 % of its shingles with one earlier text to the latter's index.

    Args:
        texts: The texts.
        related: Returns whether two texts, given by index, share text by design.
    """
    words: dict[str, int] = {}
    earlier: dict[int, list[int]] = {}
    found: dict[int, int] = {}
    for index, text in enumerate(texts):
        shingles = _shingles(text, words)
        sample = [shingle for shingle in shingles if shingle % _ONE_IN == 0]
        if len(shingles) >= _MIN_SHINGLES:
            matches = [earlier.get(shingle, ()) for shingle in sample]
            shared = Counter(other for texts_with_it in matches for other in texts_with_it)
            distinctive = sum(len(texts_with_it) < _MAX_TEXTS for texts_with_it in matches)
            likely = [
                (-count, other)
                for other, count in shared.items()
                if count >= _MIN_SAMPLED_SHARE * distinctive and not related(index, other)
            ]
            for _, other in sorted(likely)[:_MAX_COMPARED]:
                if len(shingles & _shingles(texts[other], words)) >= _MIN_SHARE * len(shingles):
                    found[index] = other
                    break
        for shingle in sample:
            texts_with_it = earlier.setdefault(shingle, [])
            if len(texts_with_it) < _MAX_TEXTS:
                texts_with_it.append(index)
    return found


def _shingles(text: str, numbers: dict[str, int]) -> set[int]:
    """Return the hashes of all runs of five words; equal runs have equal hashes in every process."""
    words: list[int] = []
    for word in _WORDS.findall(text.lower()):
        number = numbers.get(word)
        if number is None:
            number = numbers[word] = crc32(word.encode("utf-8", "surrogatepass"))
        words.append(number)
    # Unlike those of strings, hashes of tuples of integers are the same in every process.
    return set(map(hash, zip(*(words[start:] for start in range(_SHINGLE)), strict=False)))
