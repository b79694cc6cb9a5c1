import dataclasses

import numpy as np
import pytest

from oprag import Chunk, PositionKind
from oprag.errors import ChunkError


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


@pytest.mark.parametrize("metadata", [None, [], "source", [("source", "a")], 5])
def test_the_metadata_must_be_a_mapping(metadata):
    with pytest.raises(ChunkError, match=f"must be a mapping, got {type(metadata).__name__}") as caught:
        Chunk("text", 0, metadata=metadata)
    assert caught.value.value is metadata


def test_a_chunk_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Chunk("text", 0).text = "other"  # type: ignore[misc]


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
