import pickle
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, ContextOptions, build_context
from oprag.context import ContextInputs, assemble
from oprag.errors import EmbeddingError, OptionError
from oprag.options import as_context_options
from oprag.pipeline.thresholds import apply_thresholds
from tests.helpers import hit, ranks

QUESTION = np.array([1.0, 0.0], dtype=np.float32)


def at(degrees: float, rank: int, length: float = 1.0, **metadata: Any) -> Chunk:
    """A chunk whose vector stands at this angle to the question."""
    angle = np.deg2rad(degrees)
    chunk = hit(f"text {rank}", rank, chunk_index=rank, **metadata)
    return Chunk(**{**vars(chunk), "vector": length * np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)})


def cosine(degrees: float) -> float:
    return float(np.cos(np.deg2rad(degrees)))


def chosen(chunks: list[Chunk], **options: Any) -> tuple[list[int], dict[int, str]]:
    context = build_context(chunks, question_vector=QUESTION, order="rank", **options)
    return ranks(context.kept), {drop.chunk.rank: drop.reason for drop in context.dropped}


def test_chunks_unlike_the_question_go_with_the_reason_and_the_value():
    context = build_context([at(10, 0), at(70, 1), at(40, 2)], question_vector=QUESTION, similarity_threshold=0.5)
    assert ranks(context.kept) == [0, 2]
    (drop,) = context.dropped
    assert drop.reason == "similarity_threshold"
    assert drop.value == pytest.approx(cosine(70), abs=1e-6)
    assert drop.detail == "similarity to the question 0.342, minimum 0.5"
    assert [chunk.similarity for chunk in context.kept] == pytest.approx([cosine(10), cosine(40)], abs=1e-6)
    assert drop.chunk.similarity == drop.value


def test_a_threshold_of_one_keeps_what_equals_the_question():
    # LangChain's EmbeddingsFilter compares with ">", and drops an identical vector.
    generator = np.random.default_rng(0)
    for _ in range(50):
        vector = generator.standard_normal(384).astype(np.float32)
        chunk = Chunk("text", 0, source="book", vector=vector)
        context = build_context([chunk], question_vector=vector, similarity_threshold=1)
        assert ranks(context.kept) == [0]
        assert (context.kept[0].similarity or 0) <= 1


def test_the_better_ranked_of_two_redundant_chunks_stays():
    # F1: LangChain's EmbeddingsRedundantFilter keeps rank 2 of a duplicate at ranks 0 and 2.
    context = build_context([at(10, 0), at(80, 1), at(10, 2)], redundancy_threshold=0.95)
    assert ranks(context.kept) == [0, 1]
    (drop,) = context.dropped
    assert (drop.chunk.rank, drop.reason, drop.twin) == (2, "redundancy_threshold", 0)
    assert drop.value == pytest.approx(1)
    assert drop.detail == "similarity to rank 0 1.000, threshold 0.95"


def test_min_keep_brings_the_best_ranked_back():
    chunks = [at(80, 0), at(70, 1), at(75, 2), at(60.5, 3)]
    assert chosen(chunks, similarity_threshold=0.5, min_chunks=2) == (
        [0, 1],
        {2: "similarity_threshold", 3: "similarity_threshold"},
    )
    # One passes, so one comes back.
    assert chosen([*chunks, at(10, 4)], similarity_threshold=0.5, min_chunks=2)[0] == [0, 4]


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        pytest.param(
            None,
            r"has no vector, which thresholds require; pass Chunk\(vector=...\), or an embedding model to",
            id="none",
        ),
        pytest.param(
            [1.0, 2.0, 3.0],
            "has dimension 3, that of a chunk .* has 2; vectors from different embedders",
            id="another dimension",
        ),
        pytest.param([0.0, 0.0], "is all zeros, so it has no cosine similarity", id="zeros"),
        pytest.param([np.nan, 1.0], "has values that are not finite", id="nan"),
        pytest.param([np.inf, 1.0], "has values that are not finite", id="infinite"),
        pytest.param(
            [[1.0, 2.0]], r"expected 1 vector from a chunk .*, got an array of shape \(1, 1, 2\)", id="matrix"
        ),
        pytest.param([], r"got an array of shape \(1, 0\)", id="empty"),
        pytest.param(["a", "b"], "got something that is not a matrix of numbers", id="words"),
    ],
)
@pytest.mark.parametrize("option", ["similarity_threshold", "redundancy_threshold"])
def test_a_vector_that_cannot_be_used_is_an_error_that_names_the_chunk(vector, message, option):
    odd = Chunk("text", 7, source="book", id="x7", vector=vector)
    with pytest.raises(EmbeddingError, match=message) as caught:
        build_context([at(10, 0), odd], as_context_options(None, {option: 0.5}), question_vector=QUESTION)
    assert "rank 7, source 'book', id 'x7'" in str(caught.value)
    assert caught.value.value.rank == 7


@pytest.mark.parametrize(
    ("question", "message"),
    [
        pytest.param(None, "similarity_threshold requires the vector of the question", id="none"),
        pytest.param([1.0, 0.0, 0.0], "has dimension 3, those of the chunks have 2", id="another dimension"),
        pytest.param([0.0, 0.0], "is all zeros, so it has no cosine similarity", id="zeros"),
        pytest.param([np.nan, 0.0], "not finite", id="nan"),
        pytest.param(["a", "b"], "got something that is not a matrix of numbers", id="words"),
    ],
)
def test_a_question_without_a_usable_vector_is_an_error(question, message):
    with pytest.raises(EmbeddingError, match=message):
        build_context([at(10, 0)], question_vector=question, similarity_threshold=0.5)


def test_no_chunks_are_no_error():
    assert apply_thresholds([], ContextOptions(similarity_threshold=0.5), None) == ([], [], None)


def test_a_context_decides_again():
    chunks = [at(10, 0), at(11, 1), at(70, 2), at(-50, 3)]
    context = build_context(chunks, question_vector=QUESTION, similarity_threshold=-1, token_budget=1_000)
    assert len(context.kept) == 4
    strict = context.with_thresholds(similarity_threshold=0.5, redundancy_threshold=0.99)
    assert ranks(strict.kept) == [0, 3]
    assert strict.options.token_budget == 1_000
    assert strict == build_context(
        chunks,
        question_vector=QUESTION,
        similarity_threshold=0.5,
        redundancy_threshold=0.99,
        token_budget=1_000,
    )
    # What is not named stays as it was; None switches a threshold off.
    assert ranks(strict.with_thresholds(similarity_threshold=None).kept) == [0, 2, 3]
    assert ranks(strict.with_thresholds(redundancy_threshold=None).kept) == [0, 1, 3]
    assert ranks(strict.with_thresholds(similarity_threshold=1, min_chunks=1).kept) == [0]
    assert strict.with_thresholds(similarity_threshold=-1, redundancy_threshold=None) == context


def test_a_context_without_thresholds_decides_again_where_it_has_vectors():
    context = build_context([at(10, 0), at(70, 1)], question_vector=QUESTION)
    assert ranks(context.with_thresholds(similarity_threshold=0.5).kept) == [0]
    bare = build_context([hit("text", 0)])
    with pytest.raises(EmbeddingError, match="retrieve with similarity_threshold=-1"):
        bare.with_thresholds(redundancy_threshold=0.5)
    assert bare.with_thresholds(similarity_threshold=None) == bare


def test_a_threshold_that_cannot_be_is_refused_again():
    context = build_context([at(10, 0)], question_vector=QUESTION, similarity_threshold=0.1)
    with pytest.raises(OptionError, match="similarity_threshold must be a number between -1 and 1"):
        context.with_thresholds(similarity_threshold=2)


def test_a_context_can_be_sent_to_another_process():
    def read(chunk: Chunk, number: int) -> list[Chunk]:
        return []

    context = build_context(
        [at(10, 0), at(70, 1)],
        question_vector=QUESTION,
        similarity_threshold=-1,
        neighbors=1,
        read_neighbors=read,
    )
    again = pickle.loads(pickle.dumps(context))
    assert again == context
    # What read the neighbours stays where it is, and what was read goes along.
    assert ranks(again.with_thresholds(similarity_threshold=0.5).kept) == [0]
    bare = build_context([at(10, 0)], question_vector=QUESTION)
    with pytest.raises(OptionError, match="requires read_neighbors; pass read_neighbors="):
        assemble(ContextInputs([at(10, 0)]), ContextOptions(neighbors=1))
    assert bare.kept
