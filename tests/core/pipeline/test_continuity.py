"""Continuity: what is kept, as an independent computation of the formula tells it, and what lends to what."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, ContextOptions, Position, PositionKind, build_context
from oprag.errors import OptionError, RetrievalWarning
from oprag.positions.source_order import Listing, order_of
from tests.helpers import ranks

STAMPED = {"chunk_numbering": "n0123456789ab"}


def text(source: str, number: int) -> str:
    return f"This is the text of chunk {number} of {source}."


def stamped(source: str, number: int, rank: int, **options: Any) -> Chunk:
    return Chunk(text(source, number), rank, source, {"chunk_index": number, **STAMPED}, **options)


def best(places: Sequence[tuple[str, int] | None], continuity: float, k: int) -> list[int]:
    """The ranks of the k candidates of highest value; a candidate without a place is None."""
    count = len(places)
    own = [math.log((count + 1) / (rank + 1)) for rank in range(count)]
    at = {place: own[rank] for rank, place in enumerate(places) if place is not None}
    values: list[float] = []
    for rank, place in enumerate(places):
        value = own[rank]
        if place is not None:
            source, number = place
            for distance, weight in ((1, continuity), (2, continuity**2)):
                value += weight * (at.get((source, number - distance), 0) + at.get((source, number + distance), 0))
        values.append(round(value, 9))
    return sorted(sorted(range(count), key=lambda rank: (-values[rank], rank))[:k])


def random_case(seed: int) -> tuple[list[int], list[int]]:
    """The ranks that are kept of random candidates, and those that should be."""
    chance = random.Random(seed)
    continuity, k = chance.choice([0.1, 0.3, 0.5, 0.7, 1.0]), chance.randint(1, 20)
    sources = ["a", "b", "c"][: chance.randint(1, 3)]
    found = chance.sample([(source, number) for source in sources for number in range(40)], chance.randint(1, 40))
    places: list[tuple[str, int] | None] = []
    chunks: list[Chunk] = []
    for rank, (source, number) in enumerate(found):
        if chance.random() < 0.1:
            # Its place is unknown. A source of its own keeps the numbers of the others certain.
            places.append(None)
            chunks.append(Chunk(text(source, number), rank, f"unknown {rank}"))
        else:
            places.append((source, number))
            chunks.append(stamped(source, number, rank))
    known = [chunk for chunk in chunks if places[chunk.rank] is not None]
    copies = [replace(chunk, rank=len(chunks) + n) for n, chunk in enumerate(chance.sample(known, len(known) // 5))]
    given = [chunk for chunk in chunks if chunk.rank < 4 * k] + (copies if len(chunks) + len(copies) <= 4 * k else [])
    context = build_context(
        chance.sample(given, len(given)),
        k=k,
        continuity=continuity,
        max_candidates=max(k, 4 * k),
        on_uncertain="ignore",
    )
    return sorted(ranks(context.kept)), best(places[: 4 * k], continuity, k)


@pytest.mark.filterwarnings("ignore:continuity has no effect")
@pytest.mark.parametrize("first", range(0, 1_000, 100))
def test_the_kept_chunks_are_those_of_highest_value(first: int):
    for seed in range(first, first + 100):
        found, expected = random_case(seed)
        assert found == expected, f"seed {seed}"


def kept(places: Sequence[int], k: int, continuity: float, **options: Any) -> list[int]:
    """The places of the kept chunks of a source, given those of the candidates, best first."""
    chunks = [stamped("book", place, rank) for rank, place in enumerate(places)]
    context = build_context(chunks, k=k, continuity=continuity, **options)
    return [chunk.metadata["chunk_index"] for chunk in context.kept]


# --- what is next to what ---


def lends(*chunks: Chunk) -> bool:
    """Whether the last chunk is kept before the one before it, thanks to the first one."""
    first, *_, last = chunks
    context = build_context(
        chunks, k=len(chunks) - 1, continuity=1.0, on_uncertain="ignore", max_candidates=len(chunks)
    )
    return {first.rank, last.rank} <= set(ranks(context.kept))


def at(start: int, rank: int, source: str = "book", **metadata: Any) -> Chunk:
    return Chunk(
        f"{start:06} and fifty characters of a text, as in any books", rank, source, {"start_index": start, **metadata}
    )


@pytest.mark.parametrize(
    ("start", "next_to"),
    [
        pytest.param(54, True, id="touching"),
        pytest.param(40, True, id="overlapping"),
        pytest.param(57, True, id="after white space that the splitter stripped"),
        pytest.param(70, False, id="apart"),
    ],
)
def test_offsets_that_touch_or_overlap(start, next_to):
    assert len(at(0, 0).text) == 54
    overlapped = (
        Chunk(at(0, 0).text[start:] + "." * 40, 2, "book", {"start_index": start}) if start < 54 else at(start, 2)
    )
    assert lends(at(0, 0), at(900, 1), overlapped) == next_to


def test_the_nearest_of_several_that_overlap_is_next():
    whole = "".join(f"{number:05} " for number in range(100))
    starts = [0, 400, 50, 85]
    chunks = [
        Chunk(whole[start : start + 90], rank, "book", {"start_index": start}) for rank, start in enumerate(starts)
    ]
    context = build_context(chunks, k=2, continuity=0.5, max_candidates=4)
    # The one at 85 overlaps that at 0, too, but is two places from it.
    assert context.lifted == {2: (0, 3)}
    assert build_context(chunks, k=3, continuity=0.6, max_candidates=4).lifted == {3: (2, 0)}


def test_pages_connect_only_where_all_chunks_are_listed():
    chunks = [Chunk(text("book", page), rank, "book", {"page": page}) for rank, page in enumerate([1, 5, 2])]
    assert not lends(*chunks)
    every = [Chunk(text("book", page), page, "book", {"page": page}) for page in range(9)]
    places = order_of(Listing(every, in_sequence=True, complete=True, store="Store")).places
    placed = [replace(chunk, place=places[chunk.metadata["page"]]) for chunk in chunks]
    assert lends(*placed)


def test_offsets_in_unknown_sources_do_not_touch():
    assert not lends(*(replace(at(start, rank), source=None) for rank, start in enumerate([0, 900, 54])))


def test_offsets_on_different_pages_do_not_touch():
    assert not lends(at(0, 0, page=1), at(900, 1, page=1), at(54, 2, page=2))


def test_numbers_of_the_users_own_connect():
    chunks = [Chunk(text("book", verse), rank, "book", {"verse": verse}) for rank, verse in enumerate([3, 9, 4])]
    context = build_context(chunks, k=2, continuity=1.0, max_candidates=3, position_key="verse")
    assert ranks(context.kept) == [0, 2]


@pytest.mark.parametrize("keys", [("one", "three", "two"), (2.5, 9.5, 3.5)])
def test_positions_that_are_no_whole_numbers_connect_nothing(keys: tuple[Any, ...]):
    places = [Position((key,), PositionKind.STAMPED) for key in keys]
    chunks = [Chunk(f"Text {rank}.", rank, "book", position=place) for rank, place in enumerate(places)]
    assert not lends(*chunks)


def test_chunks_at_one_place_neither_lend_nor_borrow():
    chunks = [at(0, 0), Chunk("Another text that claims this place.", 1, "book", {"start_index": 0}), at(54, 2)]
    assert build_context(chunks, k=2, continuity=1.0, on_uncertain="ignore", max_candidates=3).lifted == {}


# --- with the other options ---


@pytest.mark.parametrize(("order", "expected"), [("rank", [0, 1, 2]), ("edges", [0, 2, 1])])
def test_orders_go_by_rank(order, expected):
    chunks = [stamped("book", place, rank) for rank, place in enumerate([10, 50, 11, 90])]
    context = build_context(chunks, k=3, continuity=1.0, max_candidates=4, order=order)
    assert ranks(context.kept) == expected


QUESTION = np.array([1, 0], np.float32)


def vectors(*angles: float) -> list[tuple[float, float]]:
    return [(math.cos(angle), math.sin(angle)) for angle in angles]


def test_a_redundant_chunk_gives_way_to_the_one_of_higher_value():
    places, angles = [10, 50, 51, 52, 90], [0.0, 0.5, 1.0, 0.51, 1.5]
    chunks = [
        stamped("book", place, rank, vector=vector)
        for rank, (place, vector) in enumerate(zip(places, vectors(*angles), strict=True))
    ]
    by_rank = build_context(chunks, k=3, redundancy_threshold=0.999)
    assert [drop.chunk.rank for drop in by_rank.dropped if drop.reason == "redundancy_threshold"] == [3]
    # Between two candidates, the one at 51 is first; of the two that are alike, the better rank has the higher value.
    by_value = build_context(chunks, k=2, redundancy_threshold=0.999, continuity=1.0, max_candidates=5)
    assert ranks(by_value.kept) == [1, 2]


def test_values_count_the_candidates_that_pass_the_similarity_threshold():
    places, angles = [10, 50, 51, 11], [0.0, 0.1, 1.5, 0.2]
    chunks = [
        stamped("book", place, rank, vector=vector)
        for rank, (place, vector) in enumerate(zip(places, vectors(*angles), strict=True))
    ]
    options = ContextOptions(k=2, continuity=1.0, similarity_threshold=0.5, max_candidates=4)
    context = build_context(chunks, options, question_vector=QUESTION)
    assert ranks(context.kept) == [0, 3]
    # The one that was rejected comes back last, although its neighbor is kept.
    back = build_context(chunks, replace(options, k=None, token_budget=999, min_chunks=4), question_vector=QUESTION)
    assert sorted(ranks(back.kept)) == [0, 1, 2, 3]


def test_a_report_names_what_lifted_and_what_displaced():
    chunks = [stamped("book", place, rank) for rank, place in enumerate([10, 50, 90, 11])]
    context = build_context(chunks, k=3, continuity=0.3, max_candidates=4)
    assert context.lifted == {3: (0,)}
    report = context.explain()
    assert "lifted by" in report
    assert "not among the first 3 by value; displaced by rank 3" in report
    told = context.to_dict()
    assert told["lifted"] == {3: [0]}
    assert [(drop["rank"], drop["displaced_by"]) for drop in told["dropped"]] == [(2, [3])]
    plain = build_context(chunks, k=3)
    assert (plain.lifted, plain.values, "lifted by" in plain.explain()) == ({}, None, False)


# --- input ---


@pytest.mark.parametrize("options", [{}, {"max_candidates": 5}])
def test_without_a_limit_there_is_nothing_to_choose(options):
    with pytest.raises(OptionError, match=r"continuity chooses among more candidates.*requires k or token_budget"):
        ContextOptions(continuity=0.3, **options)


@pytest.mark.parametrize(("given", "options"), [(3, {}), (9, {"max_candidates": 3})])
def test_a_list_that_was_cut_to_k_is_told(given, options):
    chunks = [stamped("book", 10 * rank, rank) for rank in range(given)]
    with pytest.warns(RetrievalWarning, match=r"only k=3 candidates.*retrieve 12: raise max_candidates"):
        build_context(chunks, k=3, continuity=0.3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_context(chunks, k=2, continuity=0.3)
