"""A list in another order than by rank knows its ranks, until it is changed."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from oprag import Chunk
from oprag.chunk import RankedList, by_rank
from tests.helpers import ranks, texts


def ordered() -> RankedList[str]:
    items = ["b", "a", "c"]
    return RankedList(items, [Chunk(text, rank, source="s") for text, rank in zip(items, [7, 0, 3], strict=True)])


def chunks_of(items: Any) -> list[Chunk]:
    return [Chunk(item, index) for index, item in enumerate(items)]


def test_the_chunks_of_such_a_list_are_sorted_by_its_ranks():
    chunks = by_rank(chunks_of(ordered()), ordered())
    assert (texts(chunks), ranks(chunks)) == (["a", "c", "b"], [0, 3, 7])
    assert {chunk.source for chunk in chunks} == {"s"}


def changed(change: Callable[[list[str]], object]) -> list[str]:
    items = ordered()
    change(items)
    return items


@pytest.mark.parametrize(
    "items",
    [
        ["b", "a", "c"],
        ordered()[:2],
        ordered() + ordered(),
        changed(list.sort),
        changed(list.pop),
        changed(lambda items: items.append("d")),
        copy.copy(ordered()),
        copy.deepcopy(ordered()),
        pickle.loads(pickle.dumps(ordered())),
    ],
    ids=str,
)
def test_in_any_other_list_the_index_is_the_rank(items: list[str]):
    chunks = chunks_of(items)
    assert by_rank(chunks, items) is chunks
