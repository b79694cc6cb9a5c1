"""Texts that nearly repeat an earlier one, found without embeddings, in time linear in their length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from zlib import crc32

__all__ = ["near_duplicates"]

_WORDS = re.compile(r"\w+")
_SHINGLE = 5  # words
# A shorter text may be a phrase that comes often.
_FEWEST = 8  # shingles
_SHARE = 0.8
# A sample of the shingles says which texts are worth a comparison.
_ONE_IN = 8
_SAMPLED_SHARE = 0.6
_MOST_COMPARED = 3
# A phrase of more texts is boilerplate, by which texts are not found.
_MOST_TEXTS = 16


def near_duplicates(texts: Sequence[str], related: Callable[[int, int], bool]) -> dict[int, int]:
    """The numbers of the texts of which at least 80 % are in one earlier text, with the number of that one.

    Args:
        texts: The texts.
        related: Whether two of them, by their numbers, share text by design.
    """
    words: dict[str, int] = {}
    earlier: dict[int, list[int]] = {}
    found: dict[int, int] = {}
    for index, text in enumerate(texts):
        shingles = _shingles(text, words)
        sample = [shingle for shingle in shingles if shingle % _ONE_IN == 0]
        if len(shingles) >= _FEWEST:
            holders = [earlier.get(shingle, ()) for shingle in sample]
            shared = Counter(other for texts_with_it in holders for other in texts_with_it)
            telling = sum(len(texts_with_it) < _MOST_TEXTS for texts_with_it in holders)
            likely = [
                (-count, other)
                for other, count in shared.items()
                if count >= _SAMPLED_SHARE * telling and not related(index, other)
            ]
            for _, other in sorted(likely)[:_MOST_COMPARED]:
                if len(shingles & _shingles(texts[other], words)) >= _SHARE * len(shingles):
                    found[index] = other
                    break
        for shingle in sample:
            there = earlier.setdefault(shingle, [])
            if len(there) < _MOST_TEXTS:
                there.append(index)
    return found


def _shingles(text: str, numbers: dict[str, int]) -> set[int]:
    """The runs of five words as numbers, the same in every text and process."""
    words: list[int] = []
    for word in _WORDS.findall(text.lower()):
        number = numbers.get(word)
        if number is None:
            number = numbers[word] = crc32(word.encode("utf-8", "surrogatepass"))
        words.append(number)
    # Of whole numbers a tuple's hash does not change from process to process.
    return set(map(hash, zip(*(words[start:] for start in range(_SHINGLE)), strict=False)))
