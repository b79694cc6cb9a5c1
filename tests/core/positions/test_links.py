from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Span
from oprag.chunk import changed
from oprag.positions.source_order import Listing, order_of


def keys_of(chunks: list[Chunk]) -> list[Any]:
    return [*order_of(Listing(chunks)).keys]


def linked(rank: int, name: str, before: str | None = None, after: str | None = None, text: str | None = None) -> Chunk:
    return Chunk(text or f"text of {name}", rank, id=name, previous_id=before, next_id=after)


def test_links_give_the_order_of_the_source():
    chunks = [linked(0, "c", "b"), linked(1, "a", None, "b"), linked(2, "b", "a", "c")]
    assert keys_of(chunks) == [(0, 2), (0, 0), (0, 1)]


def test_one_direction_is_enough():
    assert keys_of([linked(0, "b", "a"), linked(1, "a")]) == [(0, 1), (0, 0)]
    assert keys_of([linked(0, "b"), linked(1, "a", None, "b")]) == [(0, 1), (0, 0)]


def test_a_chunk_that_was_not_retrieved_connects_its_neighbours():
    first, second = keys_of([linked(0, "c", "b"), linked(1, "a", None, "b")])
    assert first == (0, 2)
    assert second == (0, 0)


def test_runs_are_numbered_by_their_best_chunk():
    chunks = [linked(0, "z", "y"), linked(1, "a", None, "b"), linked(2, "b", "a"), linked(3, "y", None, "z")]
    assert keys_of(chunks) == [(0, 1), (1, 0), (1, 1), (0, 0)]


def test_a_run_of_one_retrieved_chunk_places_nothing():
    chunks = [linked(0, "b", "a", "c"), linked(1, "y", "x", "z"), linked(2, "alone")]
    assert keys_of(chunks) == [None, None, None]


def test_a_chunk_that_was_retrieved_twice_shares_its_place_and_is_no_run_alone():
    twins = [linked(0, "b", "a"), linked(1, "b", "a")]
    assert keys_of(twins) == [None, None]
    assert keys_of([*twins, linked(2, "a")]) == [(0, 1), (0, 1), (0, 0)]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([linked(0, "a", None, "b"), linked(1, "b", "a", "a")], id="circle of two"),
        pytest.param([linked(0, "a", "a", "a"), linked(1, "a", "a", "a")], id="circle of one"),
        pytest.param([linked(0, "a", None, "b"), linked(1, "b", "c"), linked(2, "c")], id="contradiction"),
        pytest.param([linked(0, "a", None, "c"), linked(1, "b", None, "c"), linked(2, "c")], id="two before one"),
        pytest.param([linked(0, "a"), linked(1, "b", "a"), linked(2, "c", "a")], id="two behind one"),
        pytest.param(
            [linked(0, "a", None, "b", text="one"), linked(1, "a", None, "b", text="other"), linked(2, "b", "a")],
            id="one id for two texts",
        ),
    ],
)
def test_links_that_contradict_each_other_place_nothing(chunks):
    assert keys_of(chunks) == [None] * len(chunks)


def test_a_broken_run_leaves_the_others_alone():
    broken = [linked(0, "a", "b", "b"), linked(1, "b", "a", "a")]
    keys = keys_of([*broken, linked(2, "z", "y"), linked(3, "y")])
    assert keys[:2] == [None, None]
    assert keys[2] is not None
    assert keys[3] is not None
    assert keys[3] < keys[2]


def test_chunks_without_an_id_are_not_connected():
    chunks = [Chunk("text", 0, previous_id="a", next_id="b"), linked(1, "a", None, "b"), linked(2, "b")]
    assert keys_of(chunks) == [None, (0, 0), (0, 1)]


@pytest.mark.parametrize(("field", "certainty"), [("page", "known"), ("page_label", "assumed")])
@pytest.mark.parametrize("offsets", [False, True])
def test_pages_that_are_linked_apart_are_in_the_order_of_their_numbers(field: str, certainty: str, offsets: bool):
    chunks: list[Chunk] = []
    for page in (3, 1, 4, 2):
        for part in range(3):
            about = linked(0, f"{page}-{part}", (part and f"{page}-{part - 1}") or None, f"{page}-{part + 1}")
            # Of a second splitter, which counts from each piece of the first one.
            span = Span(0, len(about.text)) if offsets else None
            place = {field: str(page)}
            chunks.append(changed(about, rank=len(chunks), metadata=place, span=span, document_id=f"page {page}"))
    order = order_of(Listing(chunks, in_sequence=True, complete=True, store="Store"))
    in_order = sorted(range(12), key=lambda index: order.keys[index] or ())
    assert [chunks[index].id for index in in_order] == [f"{page}-{part}" for page in (1, 2, 3, 4) for part in range(3)]
    assert order.certainty == certainty


@given(st.permutations(range(9)), st.integers(0, 9))
def test_any_part_of_a_line_is_ordered_inside_its_runs(order, count):
    numbers = order[:count]
    chunks = [linked(rank, str(n), str(n - 1), str(n + 1)) for rank, n in enumerate(numbers)]
    keys = keys_of(chunks)
    runs: dict[int, list[tuple[int, int]]] = {}
    for number, key in zip(numbers, keys, strict=True):
        # At most one chunk is missing between two that are connected.
        near = any(number + step in numbers for step in (-2, -1, 1, 2))
        assert (key is not None) == near
        if key is not None:
            runs.setdefault(key[0], []).append((key[1], number))
    for run in runs.values():
        places = sorted(run)
        assert [number - places[0][1] for _, number in places] == [place - places[0][0] for place, _ in places]
