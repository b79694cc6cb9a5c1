"""Finding quoted passages in documents, white space aside."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate

from oprag.compare.data.data_set import Evidence

__all__ = ["Passages"]

_WORD = re.compile(r"\S+")


class Passages:
    """Finds passages in texts.

    Readers of PDF files differ in where they put white space, so a passage that was read by another one, or another
    version of the same, is seldom there to the letter.

    Args:
        texts: The whole text of each document by its name.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._without_space: dict[str, _WithoutSpace] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the documents."""
        return tuple(self._texts)

    def find(self, passage: str) -> Evidence | None:
        """The first place of a passage in the first document that has it, to the letter or else without white space.

        Args:
            passage: A text with something in it.
        """
        for name, text in self._texts.items():
            start = text.find(passage)
            if start >= 0:
                return Evidence(name, start, start + len(passage))
        letters = "".join(passage.split())
        for name, text in self._texts.items():
            if name not in self._without_space:
                self._without_space[name] = _WithoutSpace(text)
            span = self._without_space[name].find(letters)
            if span is not None:
                return Evidence(name, *span)
        return None


class _WithoutSpace:
    """A text without its white space, and where each of its characters was."""

    def __init__(self, text: str) -> None:
        words = [(match.start(), match.group()) for match in _WORD.finditer(text)]
        self._letters = "".join(word for _, word in words)
        self._starts = [start for start, _ in words]
        self._before = [0, *accumulate(len(word) for _, word in words)]

    def find(self, letters: str) -> tuple[int, int] | None:
        place = self._letters.find(letters)
        if place < 0:
            return None
        return self._origin(place), self._origin(place + len(letters) - 1) + 1

    def _origin(self, place: int) -> int:
        word = bisect_right(self._before, place) - 1
        return self._starts[word] + place - self._before[word]
