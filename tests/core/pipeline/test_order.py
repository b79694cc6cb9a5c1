import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, arrange
from oprag.errors import ChunkError, MissingPositionError, OptionError
from tests.helpers import hit, ranks, texts


def line(positions: Iterable[int], **metadata: Any) -> list[Chunk]:
    """Chunks of one source at these positions, ranked in the given sequence."""
    return [hit(f"at {position}", rank, chunk_index=position, **metadata) for rank, position in enumerate(positions)]


SIX = line([30, 10, 50, 0, 20, 40])


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("source", [3, 1, 4, 0, 5, 2]),
        ("rank", [0, 1, 2, 3, 4, 5]),
        ("reverse_rank", [5, 4, 3, 2, 1, 0]),
        ("edges", [0, 2, 4, 5, 3, 1]),
    ],
)
def test_each_order(order, expected):
    assert ranks(arrange(SIX, order=order)) == expected


def test_random_is_a_seeded_permutation():
    many = line(range(50))
    first = ranks(arrange(many, order="random"))
    assert sorted(first) == list(range(50))
    assert first != list(range(50))
    assert first == ranks(arrange(many, order="random", seed=0))
    assert first != ranks(arrange(many, order="random", seed=1))


# --- sources ---


def three_sources() -> list[Chunk]:
    """Best-ranked first: doc10; largest sum of scores and of 1 / (1 + rank): doc2 and doc10."""
    places = [("doc10", 5), ("doc2", 9), ("doc2", 1), ("doc9", 3), ("doc2", 4), ("doc9", 1)]
    return [
        hit(f"{source}.{index}", rank, source=source, chunk_index=index) for rank, (source, index) in enumerate(places)
    ]


DOC2, DOC9, DOC10 = ["doc2.1", "doc2.4", "doc2.9"], ["doc9.1", "doc9.3"], ["doc10.5"]


@pytest.mark.parametrize(
    ("source_ranking", "expected"),
    [
        ("best_first", [*DOC10, *DOC2, *DOC9]),
        ("best_last", [*DOC9, *DOC2, *DOC10]),
        # 1/2 + 1/3 + 1/5 for doc2, 1 for doc10, 1/4 + 1/6 for doc9.
        ("score_sum", [*DOC2, *DOC10, *DOC9]),
        ("name", [*DOC2, *DOC9, *DOC10]),
        (lambda chunks: -len(chunks), [*DOC2, *DOC9, *DOC10]),
        (lambda chunks: chunks[0].text, [*DOC10, *DOC2, *DOC9]),
    ],
)
def test_each_source_order(source_ranking, expected):
    assert texts(arrange(three_sources(), source_ranking=source_ranking)) == expected


@pytest.mark.parametrize("key", ["text", np.zeros(2)], ids=["types", "arrays"])
def test_keys_that_cannot_be_compared_are_refused(key: Any):
    def mixed(chunks):
        return key if len(chunks) > 1 else 1

    with pytest.raises(OptionError, match="source_ranking returned keys that cannot be compared") as caught:
        arrange(three_sources(), source_ranking=mixed)
    assert caught.value.value is mixed


def scored(*scores: float | None) -> list[Chunk]:
    """Two sources in turn, with these scores by rank."""
    return [
        Chunk(f"text {rank}", rank, score=score, metadata={"source": "ab"[rank % 2], "chunk_index": rank})
        for rank, score in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("scores", "first"),
    [
        pytest.param([0.9, 0.8, 0.1, 0.1], "a", id="summed scores"),
        pytest.param([0.9, 0.9, 0.5, 0.5, 0.0, 0.0, -3.0], "b", id="negative scores count"),
        pytest.param([0.9, 0.9, None, 0.8], "a", id="a missing score: 1 / (1 + rank)"),
        pytest.param([0.9, 0.9, math.nan, 0.8], "a", id="not finite: 1 / (1 + rank)"),
        pytest.param([0.1, 0.8, 0.2, 0.9], "a", id="distances: 1 / (1 + rank)"),
        pytest.param([0.5] * 4, "a", id="equal: the best source"),
    ],
)
def test_the_total_of_a_source(scores, first):
    assert arrange(scored(*scores), source_ranking="score_sum")[0].source == first


@pytest.mark.filterwarnings("ignore::oprag.errors.SourceWarning")
@pytest.mark.parametrize(("source_ranking", "expected"), [("name", [1, 2, 0]), ("best_first", [0, 1, 2])])
def test_chunks_without_a_source_stand_behind_named_ones_in_natural_sort(source_ranking, expected):
    chunks = [Chunk("nowhere", 0), hit("ten", 1, source="10"), hit("twelve", 2, source="12")]
    assert ranks(arrange(chunks, source_ranking=source_ranking)) == expected


# --- missing positions ---


HOLES = [hit("lost", 0), *[hit(f"at {9 - rank}", rank, chunk_index=9 - rank) for rank in (1, 2)], hit("gone", 3)]


@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("last", ["at 7", "at 8", "lost", "gone"]),
        ("first", ["lost", "gone", "at 7", "at 8"]),
        ("drop", ["at 7", "at 8"]),
    ],
)
def test_each_policy_for_missing_positions(policy, expected):
    assert texts(arrange(HOLES, on_missing_position=policy)) == expected


def test_a_missing_position_can_be_an_error():
    with pytest.raises(MissingPositionError, match=r"2 of 4 chunks have no position.*rank 0, source 'book'") as caught:
        arrange(HOLES, on_missing_position="error")
    assert caught.value.value.text == "lost"
    assert ranks(arrange(SIX, on_missing_position="error")) == [3, 1, 4, 0, 5, 2]


# --- input ---


def test_a_rank_that_is_used_twice_is_refused():
    twin = hit("b", 3, chunk_index=1)
    with pytest.raises(ChunkError, match="two chunks have rank 3") as caught:
        arrange([hit("a", 3, chunk_index=0), twin])
    assert caught.value.value == twin
