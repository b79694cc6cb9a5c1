import dataclasses
import pickle
from collections import OrderedDict
from types import MappingProxyType

import numpy as np
import pytest

from oprag import Chunk, Position, PositionKind, Span
from oprag.chunk import UNKNOWN_POSITION, sorted_by_rank
from oprag.errors import ChunkError
from tests.helpers import ranks


def test_text_and_rank_are_enough():
    chunk = Chunk("text", 0)
    assert (chunk.text, chunk.rank, dict(chunk.metadata), chunk.score) == ("text", 0, {}, None)


@pytest.mark.parametrize("text", [None, 5, b"text", ["text"]])
def test_the_text_must_be_a_string(text):
    with pytest.raises(ChunkError, match=f"must be a string, got {type(text).__name__}") as caught:
        Chunk(text, 0)
    assert caught.value.value is text
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("rank", [-1, 1.0, True, None, "1", np.float32(1)])
def test_the_rank_must_be_a_whole_number(rank):
    with pytest.raises(ChunkError, match="the rank of a chunk must be an integer >= 0") as caught:
        Chunk("text", rank)
    assert caught.value.value is rank


@pytest.mark.parametrize("score", ["0.5", True, [0.5], 1j])
def test_the_score_must_be_a_number(score):
    with pytest.raises(ChunkError, match="the score of a chunk must be a number or None") as caught:
        Chunk("text", 0, score=score)
    assert caught.value.value is score


@pytest.mark.parametrize("score", [None, 1, -0.5, float("nan"), float("inf"), np.float32(0.5)])
def test_any_number_is_a_score(score):
    assert Chunk("text", 0, score=score).score is score


@pytest.mark.parametrize("metadata", [None, [], "source", [("source", "a")], 5])
def test_the_metadata_must_be_a_mapping(metadata):
    with pytest.raises(ChunkError, match=f"must be a mapping, got {type(metadata).__name__}") as caught:
        Chunk("text", 0, metadata=metadata)
    assert caught.value.value is metadata


@pytest.mark.parametrize("metadata", [{"a": 1}, OrderedDict(a=1), MappingProxyType({"a": 1})])
def test_any_mapping_is_metadata_and_is_kept_as_it_is(metadata):
    assert Chunk("text", 0, metadata=metadata).metadata is metadata


def test_a_chunk_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Chunk("text", 0).text = "other"  # type: ignore[misc]


def test_chunks_compare_without_vector_and_origin():
    one = Chunk("text", 0, metadata={"a": 1}, vector=np.ones(3, dtype=np.float32), origin=object())
    other = Chunk("text", 0, metadata={"a": 1}, vector=np.zeros(3, dtype=np.float32))
    assert one == other
    assert len({one, other}) == 1
    assert one != Chunk("text", 0, metadata={"a": 2})
    assert "vector" not in repr(one)


def test_a_chunk_can_be_pickled():
    chunk = Chunk("text", 0, "book", {"a": 1}, span=Span(0, 4, 2), position=Position((1,), PositionKind.STAMPED))
    assert pickle.loads(pickle.dumps(chunk)) == chunk


def test_chunks_are_sorted_by_rank():
    assert ranks(sorted_by_rank(Chunk("text", rank) for rank in (5, 0, 3))) == [0, 3, 5]


@pytest.mark.parametrize("span", [3, (1,), "ab", (0, 4, 1, 2), (0, 4), (0, 4, 2), [0, 4]])
def test_a_span_must_be_one(span):
    with pytest.raises(ChunkError, match=r"must be an oprag\.Span or None, got") as caught:
        Chunk("text", 0, span=span)
    assert caught.value.value is span


@pytest.mark.parametrize("position", [3, "1", (1,)])
def test_a_position_must_be_one(position):
    with pytest.raises(ChunkError):
        Chunk("text", 0, position=position)


def test_the_kinds_stand_best_first():
    assert [kind.name for kind in sorted(PositionKind)] == [
        "KEY",
        "STAMPED",
        "PAGE_OFFSET",
        "OFFSET",
        "LINKS",
        "PAGE",
        "STORE",
        "NONE",
    ]
    assert [kind.value for kind in sorted(PositionKind)] == list(range(8))


@pytest.mark.parametrize("kind", PositionKind)
def test_a_position_is_known_on_every_kind_but_the_last(kind):
    assert Position((1,), kind).known == (kind is not PositionKind.NONE)
    assert not UNKNOWN_POSITION.known
