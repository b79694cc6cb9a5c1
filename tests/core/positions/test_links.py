import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, PositionKind, PositionWarning, arrange, build_context
from oprag.positions.links import chain_keys
from tests.helpers import texts


def linked(rank: int, name: str, before: str | None = None, after: str | None = None, text: str | None = None) -> Chunk:
    return Chunk(text or f"text of {name}", rank, id=name, previous_id=before, next_id=after)


def test_links_give_the_order_of_the_source():
    chunks = [linked(0, "c", "b"), linked(1, "a", None, "b"), linked(2, "b", "a", "c")]
    assert chain_keys(chunks) == [(0, 2), (0, 0), (0, 1)]


def test_one_direction_is_enough():
    assert chain_keys([linked(0, "b", "a"), linked(1, "a")]) == [(0, 1), (0, 0)]
    assert chain_keys([linked(0, "b"), linked(1, "a", None, "b")]) == [(0, 1), (0, 0)]


def test_a_chunk_that_was_not_retrieved_connects_its_neighbours():
    first, second = chain_keys([linked(0, "c", "b"), linked(1, "a", None, "b")])
    assert first == (0, 2)
    assert second == (0, 0)


def test_runs_are_numbered_by_their_best_chunk():
    chunks = [linked(0, "z", "y"), linked(1, "a", None, "b"), linked(2, "b", "a"), linked(3, "y", None, "z")]
    assert chain_keys(chunks) == [(0, 1), (1, 0), (1, 1), (0, 0)]


def test_a_run_of_one_retrieved_chunk_places_nothing():
    chunks = [linked(0, "b", "a", "c"), linked(1, "y", "x", "z"), linked(2, "alone")]
    assert chain_keys(chunks) == [None, None, None]


def test_a_chunk_that_was_retrieved_twice_shares_its_place_and_is_no_run_alone():
    twins = [linked(0, "b", "a"), linked(1, "b", "a")]
    assert chain_keys(twins) == [None, None]
    assert chain_keys([*twins, linked(2, "a")]) == [(0, 1), (0, 1), (0, 0)]


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
    assert chain_keys(chunks) == [None] * len(chunks)


def test_a_broken_run_leaves_the_others_alone():
    broken = [linked(0, "a", "b", "b"), linked(1, "b", "a", "a")]
    keys = chain_keys([*broken, linked(2, "z", "y"), linked(3, "y")])
    assert keys[:2] == [None, None]
    assert keys[2] is not None
    assert keys[3] is not None
    assert keys[3] < keys[2]


def test_chunks_without_an_id_are_not_connected():
    chunks = [Chunk("text", 0, previous_id="a", next_id="b"), linked(1, "a", None, "b"), linked(2, "b")]
    assert chain_keys(chunks) == [None, (0, 0), (0, 1)]


@given(st.permutations(range(9)), st.integers(0, 9))
def test_any_part_of_a_line_is_ordered_inside_its_runs(order, count):
    numbers = order[:count]
    chunks = [linked(rank, str(n), str(n - 1), str(n + 1)) for rank, n in enumerate(numbers)]
    keys = chain_keys(chunks)
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


# --- places beside chunks on a better kind ---


def node(name: str, number: int | None = None, **links: Any) -> Chunk:
    """A chunk with an id, and a stamp if it has a number; its rank is set by `shuffles`."""
    metadata = {} if number is None else {"chunk_index": number}
    return Chunk(name, 0, source="book", id=name, metadata=metadata, **links)


def shuffles(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """The chunks under many rankings."""
    for seed in range(20):
        ranks = random.Random(seed).sample(range(len(chunks)), len(chunks))
        yield [replace(chunk, rank=rank) for chunk, rank in zip(chunks, ranks, strict=True)]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([node("P", child_ids=("a", "b")), node("b", 4), node("c", 6)], id="before its child"),
        pytest.param([node("a", 0), node("P", child_ids=("b",)), node("b", 4, parent_id="P")], id="either link does"),
        pytest.param(
            [node("G", child_ids=("P",)), node("P", child_ids=("b",)), node("b", 4, parent_id="P"), node("c", 6)],
            id="before a child's child",
        ),
        pytest.param(
            [node("a", 3, parent_id="O"), node("b", 5, parent_id="O"), node("P", previous_id="O"), node("z", 9)],
            id="after the children of the previous parent",
        ),
        pytest.param(
            [node("a", 3), node("P", next_id="Q"), node("b", 5, parent_id="Q"), node("c", 6, parent_id="Q")],
            id="before the children of the next parent",
        ),
        pytest.param([node("P", next_id="Q"), node("b", 0, parent_id="Q"), node("c", 1)], id="first of all"),
        pytest.param(
            [
                node("a", 3, parent_id="O"),
                node("P", previous_id="O", next_id="Q"),
                node("Q", previous_id="P"),
                node("z", 9),
            ],
            id="one merged parent after the other",
        ),
        pytest.param(
            [node("P", next_id="Q"), node("Q", next_id="R"), node("b", 5, parent_id="R")],
            id="one merged parent before the other",
        ),
        pytest.param(
            [node("a", 3, parent_id="O", next_id="x"), node("b", previous_id="x"), node("z", 9)],
            id="through a chunk that was not retrieved",
        ),
        pytest.param(
            [
                *(node("a", 3, parent_id="o"), node("o2", previous_id="o", parent_id="O", next_id="o3")),
                *(node("O2", previous_id="O", child_ids=("p", "q")), node("p2", 8, parent_id="p"), node("z", 9)),
            ],
            id="on two levels",
        ),
        pytest.param(
            [
                *(node("O", child_ids=("o",)), node("a", 3, parent_id="o")),
                *(node("O2", previous_id="O", child_ids=("p",)), node("p", previous_id="o", parent_id="O2")),
            ],
            id="a parent and its first child",
        ),
    ],
)
def test_a_chunk_without_a_stamp_is_placed_by_its_links(chunks):
    for shuffled in shuffles(chunks):
        context = build_context(shuffled, stitch=False)
        assert texts(context.kept) == texts(chunks)
        assert [(report.kind, report.missing) for report in context.sources] == [(PositionKind.STAMPED, 0)]
        assert texts(build_context(context.kept, stitch=False).kept) == texts(chunks)


@pytest.mark.filterwarnings("ignore:page labels alone tell the order")
@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ([{"start_index": 0}, {"start_index": -1}, {"start_index": 50}], PositionKind.OFFSET),
        ([{"page": 1, "start_index": 9}, {"page": 1}, {"page": 2, "start_index": 0}], PositionKind.PAGE_OFFSET),
        ([{"page_label": "iv", "start_index": 9}, {}, {"page_label": "1", "start_index": 0}], PositionKind.PAGE_OFFSET),
    ],
)
@pytest.mark.parametrize("link", [{"previous_id": "0"}, {"next_id": "2"}])
def test_links_add_to_offsets_too(metadata, kind, link):
    chunks = [
        Chunk(str(number), 0, source="book", id=str(number), metadata=each, **(link if number == 1 else {}))
        for number, each in enumerate(metadata)
    ]
    for shuffled in shuffles(chunks):
        context = build_context(shuffled)
        assert texts(context.kept) == ["0", "1", "2"]
        assert [(report.kind, report.missing) for report in context.sources] == [(kind, 0)]


@pytest.mark.filterwarnings("ignore:page labels alone tell the order")
def test_a_first_page_can_have_chunks_before_it():
    chunks = [
        Chunk("a", 1, source="book", id="a", next_id="b"),
        Chunk("b", 0, source="book", id="b", metadata={"page_label": "i", "start_index": 0}),
    ]
    assert texts(arrange(chunks)) == ["a", "b"]


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(node("P", child_ids=("x", "y"), previous_id="O"), id="nothing near it is placed"),
        pytest.param(node("P"), id="no links"),
        pytest.param(node("a", previous_id="b"), id="one id for two texts"),
        pytest.param(node("P", previous_id="P"), id="circle of one"),
    ],
)
def test_a_chunk_whose_links_do_not_tell_stays_without_a_position(lost):
    with pytest.warns(PositionWarning, match="have no position"):
        context = build_context(
            [replace(lost, text="lost"), replace(node("a", 3), rank=1), replace(node("b", 5), rank=2)]
        )
    assert texts(context.kept) == ["a", "b", "lost"]


def test_a_chunk_that_was_retrieved_twice_has_one_place():
    twins = [replace(node("P", previous_id="a"), rank=rank) for rank in (0, 2)]
    context = build_context([*twins, replace(node("a", 0), rank=1), replace(node("z", 9), rank=3)])
    assert texts(context.kept) == ["a", "P", "z"]
    assert [drop.reason for drop in context.dropped] == ["duplicate"]


def test_chunks_that_are_placed_by_links_are_not_joined_with_what_is_near():
    # Nothing tells whether all that is between them was retrieved.
    chunks = [node("a", 0, parent_id="O"), node("P", previous_id="O"), node("Q", previous_id="P"), node("b", 1)]
    context = build_context([replace(chunk, rank=rank) for rank, chunk in enumerate(chunks)], gap="...")
    assert context.text == "a\n\n...\n\nP\n\n...\n\nQ\n\n...\n\nb"


def test_parents_in_a_circle_are_no_error():
    chunks = [node("P", parent_id="Q", child_ids=("Q",)), node("Q", parent_id="P", child_ids=("P",)), node("a", 1)]
    with pytest.warns(PositionWarning, match="have no position"):
        arrange([replace(chunk, rank=rank) for rank, chunk in enumerate(chunks)])


def test_a_position_key_is_not_added_to():
    chunks = [node("a", 0), node("b", previous_id="a"), node("c", 2)]
    with pytest.warns(PositionWarning, match="have no position"):
        ordered = arrange([replace(chunk, rank=rank) for rank, chunk in enumerate(chunks)], position_key="chunk_index")
    assert texts(ordered) == ["a", "c", "b"]
