"""A list of documents or nodes in another order than by rank, with their ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, TypeVar

from oprag.chunk import Chunk, changed, sorted_by_rank

__all__ = ["RankedList", "by_rank"]

T = TypeVar("T")


class RankedList(list[T]):
    """A list that knows the ranks of its items, so that a second step of oprag does not use their index as the rank.

    Slices, sums, copies and pickles are plain lists.

    Args:
        items: The items, in order.
        ranks: Their ranks.
    """

    def __init__(self, items: Iterable[T], ranks: Sequence[int]) -> None:
        super().__init__(items)
        self._items = tuple(self)
        self._ranks = ranks

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    @property
    def ranks(self) -> Sequence[int] | None:
        """The ranks of the items; None if the list was changed."""
        same = len(self) == len(self._items) and all(map(is_, self, self._items))
        return self._ranks if same else None


def by_rank(chunks: list[Chunk], items: Any) -> list[Chunk]:
    """Sort the chunks of these items by rank, which is their index unless the items are an unchanged `RankedList`."""
    ranks = items.ranks if isinstance(items, RankedList) else None
    if ranks is None:
        return chunks
    return sorted_by_rank(changed(chunk, rank=rank) for chunk, rank in zip(chunks, ranks, strict=True))
