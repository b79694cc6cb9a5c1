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


TWINS = [linked(0, "b", "a"), linked(1, "b", "a")]
CASES: dict[str, tuple[list[Chunk], list[Any]]] = {
    "both directions": (
        [linked(0, "c", "b"), linked(1, "a", None, "b"), linked(2, "b", "a", "c")],
        [(0, 2), (0, 0), (0, 1)],
    ),
    "to the one before": ([linked(0, "b", "a"), linked(1, "a")], [(0, 1), (0, 0)]),
    "to the one after": ([linked(0, "b"), linked(1, "a", None, "b")], [(0, 1), (0, 0)]),
    "through one that was not retrieved": ([linked(0, "c", "b"), linked(1, "a", None, "b")], [(0, 2), (0, 0)]),
    "runs, by their best chunk": (
        [linked(0, "z", "y"), linked(1, "a", None, "b"), linked(2, "b", "a"), linked(3, "y", None, "z")],
        [(0, 1), (1, 0), (1, 1), (0, 0)],
    ),
    "runs of one retrieved chunk": (
        [linked(0, "b", "a", "c"), linked(1, "y", "x", "z"), linked(2, "alone")],
        [None] * 3,
    ),
    "one chunk twice": (TWINS, [None] * 2),
    "one chunk twice, and another": ([*TWINS, linked(2, "a")], [(0, 1), (0, 1), (0, 0)]),
    "a chunk without an id": (
        [Chunk("text", 0, previous_id="a", next_id="b"), linked(1, "a", None, "b"), linked(2, "b")],
        [None, (0, 0), (0, 1)],
    ),
    # Links that contradict each other.
    "circle of two": ([linked(0, "a", None, "b"), linked(1, "b", "a", "a")], [None] * 2),
    "circle of one": ([linked(0, "a", "a", "a"), linked(1, "a", "a", "a")], [None] * 2),
    "contradiction": ([linked(0, "a", None, "b"), linked(1, "b", "c"), linked(2, "c")], [None] * 3),
    "two before one": ([linked(0, "a", None, "c"), linked(1, "b", None, "c"), linked(2, "c")], [None] * 3),
    "two after one": ([linked(0, "a"), linked(1, "b", "a"), linked(2, "c", "a")], [None] * 3),
    "one id for two texts": (
        [linked(0, "a", None, "b", text="one"), linked(1, "a", None, "b", text="other"), linked(2, "b", "a")],
        [None] * 3,
    ),
    "a circle beside a run": (
        [linked(0, "a", "b", "b"), linked(1, "b", "a", "a"), linked(2, "z", "y"), linked(3, "y")],
        [None, None, (0, 1), (0, 0)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_keys_that_links_give(name: str):
    chunks, keys = CASES[name]
    assert keys_of(chunks) == keys


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
