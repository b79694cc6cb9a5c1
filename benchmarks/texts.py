"""Generated texts, the same on every machine; the repository contains no third-party texts."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from itertools import accumulate
from pydoc_data.topics import topics

__all__ = ["document", "sentences"]


def document(words: int, seed: int = 0) -> str:
    """Return a document with about this number of words, as frequent as in the language reference."""
    paragraphs: list[str] = []
    chance = random.Random(seed)
    written = 0
    while written < words:
        paragraph = sentences(min(chance.randint(40, 160), words - written), chance)
        written += len(paragraph.split())
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def sentences(words: int, chance: random.Random) -> str:
    """Return sentences with this number of words in total."""
    vocabulary, weights = _vocabulary()
    drawn = chance.choices(vocabulary, cum_weights=weights, k=words)
    written: list[str] = []
    start = 0
    while start < words:
        end = min(words, start + chance.randint(6, 22))
        written.append(" ".join(drawn[start:end]).capitalize() + ".")
        start = end
    return " ".join(written)


@cache
def _vocabulary() -> tuple[list[str], list[int]]:
    counts = Counter(re.findall(r"[a-z]+", " ".join(topics.values()).lower()))
    # Equally frequent words are in alphabetical order, independent of the order of the topics.
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return ordered, list(accumulate(counts[word] for word in ordered))
