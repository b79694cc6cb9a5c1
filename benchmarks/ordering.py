"""The interface of a framework for `benchmarks.inversions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from oprag import SourceReport

__all__ = ["AS_SPLIT", "BY_TEXT", "DEFAULT", "LOCATED", "RANK", "STAMPED", "Answer", "Ask", "Framework", "K"]

K = 16

DEFAULT = "default splitter"
RANK, AS_SPLIT, STAMPED, LOCATED = "rank order", "source order as split", "stamped", "located"
BY_TEXT = "with read_source="


class Answer(NamedTuple):
    """The result for one question: true positions of the chunks in the returned order, and how they were placed."""

    ordinals: Sequence[int]
    sources: Sequence[SourceReport] = ()


Ask = Callable[[str], Answer]


class Framework(Protocol):
    """A framework with its splitters and its store."""

    name: str

    @property
    def splitters(self) -> Sequence[str]:
        """The names of the splitters, `DEFAULT` among them."""
        ...

    def index(self, splitter: str, source: str, text: str) -> Mapping[str, Ask]:
        """Split and store a document, and return a search function for each condition."""
        ...
