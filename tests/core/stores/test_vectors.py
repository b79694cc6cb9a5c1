import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, ContextOptions, VectorCache
from oprag._internal.sync_async import Steps, run_async, run_sync
from oprag.context import ContextInputs
from oprag.errors import EmbeddingError
from oprag.stores import StoreAdapter, StoredVector
from oprag.stores.vectors import (
    VectorSources,
    chunks_with_vectors,
    embedded_together,
    given_with_vectors,
    question_vector,
)
from tests.helpers import WordEmbedder, hit

Run = Callable[[Steps[Any]], Any]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_sync if request.param == "sync" else lambda steps: asyncio.run(run_async(steps))


class Shelf:
    """Keeps vectors, and remembers what it was asked for."""

    def __init__(self, records: Mapping[str, StoredVector]) -> None:
        self.records = records
        self.asked: list[list[str]] = []


class ShelfAdapter(StoreAdapter):
    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        self.store.asked.append(list(keys))
        return {key: self.store.records[key] for key in keys if key in self.store.records}


def chunk(rank: int, **fields: Any) -> Chunk:
    return Chunk(**{**vars(hit(f"text {rank}", rank, chunk_index=rank)), "id": f"id {rank}", **fields})


def test_the_first_source_that_has_a_vector_is_taken(run):
    embedder, cache = WordEmbedder(dimension=2, name="words"), VectorCache()
    store = Shelf({f"id {rank}": StoredVector([2.0, 2.0]) for rank in range(2)})
    cache.put(embedder, [f"text {rank}" for rank in range(3)], [[3, 3]] * 3)
    given = [chunk(0, vector=np.array([1, 1], dtype=np.float32)), chunk(1), chunk(2), chunk(3)]
    found = run(chunks_with_vectors(given, VectorSources(embedder, cache, ShelfAdapter(store))))
    assert [one.vector.tolist() for one in found[:3]] == [[1, 1], [2, 2], [3, 3]]
    assert store.asked == [["id 1", "id 2", "id 3"]]
    assert embedder.embedded == ["text 3"]
    (kept,) = cache.get(embedder, ["text 3"])
    assert kept is not None
    assert kept.tolist() == found[3].vector.tolist()
    assert found == given


def test_equal_texts_and_equal_keys_are_asked_for_once(run):
    embedder, store = WordEmbedder(), Shelf({})
    given = [chunk(0), chunk(1, text="text 0", id="id 0"), chunk(2, text="text 0")]
    found = run(chunks_with_vectors(given, VectorSources(embedder, None, ShelfAdapter(store))))
    assert store.asked == [["id 0", "id 2"]]
    assert embedder.embedded == ["text 0"]
    assert all(np.array_equal(one.vector, found[0].vector) for one in found)


def test_a_store_that_fails_is_named_and_its_message_kept_short(run):
    class Failing(StoreAdapter):
        def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
            raise ConnectionError(f"no answer for {', '.join(keys)} of {'a very long address ' * 100}")

    embedder = WordEmbedder()
    sources = VectorSources(embedder, VectorCache(), Failing(Shelf({})))
    with pytest.raises(EmbeddingError) as caught:
        run(chunks_with_vectors([chunk(0), chunk(1)], sources))
    message = str(caught.value)
    assert message.startswith("the store Shelf failed to return the vectors of 2 chunks (the first: rank 0")
    assert "ConnectionError: no answer for id 0, id 1 of a very long address" in message
    assert len(message) < 500
    assert isinstance(caught.value.__cause__, ConnectionError)
    # Nothing is embedded in place of what was not read.
    assert embedder.embedded == []


def test_a_store_is_not_asked_for_chunks_without_a_key(run):
    store = Shelf({})
    run(chunks_with_vectors([chunk(0, id=None)], VectorSources(WordEmbedder(), None, ShelfAdapter(store))))
    assert store.asked == []


def test_what_is_embedded_may_be_more_than_the_text(run):
    embedder = WordEmbedder()
    sources = VectorSources(embedder, VectorCache(), text_of=lambda one: f"title: {one.text}")
    run(chunks_with_vectors([chunk(0)], sources))
    assert embedder.embedded == ["title: text 0"]


def test_without_an_embedder_the_chunk_and_the_store_are_named(run):
    with pytest.raises(EmbeddingError, match=r"2 of the retrieved chunks have no vector in the store Shelf .the first"):
        run(chunks_with_vectors([chunk(0), chunk(1)], VectorSources(store=ShelfAdapter(Shelf({})))))
    with pytest.raises(EmbeddingError, match="requires the vector of the question; pass embeddings="):
        run(question_vector("What?", VectorSources()))


def test_a_question_is_kept_apart_from_a_document_of_the_same_words(run):
    embedder, cache = WordEmbedder(), VectorCache()
    sources = VectorSources(embedder, cache)
    vector = run(question_vector("text 0", sources))
    assert len(cache) == 1
    run(chunks_with_vectors([chunk(0)], sources))
    assert embedder.embedded == ["text 0"]
    assert np.array_equal(run(question_vector("text 0", sources)), vector)


def test_vectors_of_different_dimensions_name_where_they_come_from(run):
    store = Shelf({"id 0": StoredVector([1.0, 2.0])})
    with pytest.raises(EmbeddingError, match=r"embedder words has dimension 32, that of .* from the store"):
        run(chunks_with_vectors([chunk(0), chunk(1)], VectorSources(WordEmbedder(), None, ShelfAdapter(store))))


def test_only_candidates_get_vectors(run):
    embedder = WordEmbedder()
    given = ContextInputs([chunk(0), chunk(1), chunk(2)])
    context_options = ContextOptions(max_candidates=2, redundancy_threshold=0.9)
    found = run(given_with_vectors(given, "What?", context_options, VectorSources(embedder)))
    assert [one.vector is None for one in found.chunks] == [False, False, True]
    assert found.question_vector is None
    assert embedder.embedded == ["text 0", "text 1"]


def test_no_chunks_need_nothing(run):
    given = run(
        given_with_vectors(ContextInputs([]), "What?", ContextOptions(similarity_threshold=0.5), VectorSources())
    )
    assert given.chunks == []
    assert given.question_vector is None


GOOD = StoredVector([1.0, 0.5])


class Given(StoreAdapter):
    """Answers with whatever it was given."""

    def vectors(self, keys: Sequence[str]) -> Any:
        return self.store


@pytest.mark.parametrize(
    ("records", "message"),
    [
        pytest.param({"id 0": GOOD, "z": GOOD}, "returned a vector for 'z', which is not among", id="ids"),
        pytest.param({"id 0": GOOD, "id 1": StoredVector([0.0, 0.0])}, "rank 1, .*is all zeros, so", id="zeros"),
        pytest.param({"id 1": StoredVector([1.0, float("nan")])}, "rank 1, .*values that are not finite", id="nan"),
        pytest.param({"id 0": StoredVector(["x", "y"]), "id 1": GOOD}, "rank 0, .* matrix of numbers", id="words"),
        pytest.param({"id 0": StoredVector([[1.0, 2.0]])}, "got an array of shape", id="matrix"),
        pytest.param({"id 0": [1.0, 0.5]}, "the adapter of the store dict must return a mapping", id="records"),
        pytest.param([GOOD], "the adapter of the store list must return a mapping", id="list"),
    ],
)
def test_what_a_store_returns_is_checked_and_the_store_is_named(run, records, message):
    with pytest.raises(EmbeddingError, match=message) as caught:
        run(chunks_with_vectors([chunk(0), chunk(1)], VectorSources(None, None, Given(records))))
    assert f"the store {type(records).__name__}" in str(caught.value)


def test_a_stored_vector_of_another_text_is_not_used(run):
    stored = {"id 0": StoredVector([1.0, 0.5], "text 0"), "id 1": StoredVector([1.0, 0.5], "the text before")}
    embedder = WordEmbedder(dimension=2)
    run(chunks_with_vectors([chunk(0), chunk(1)], VectorSources(embedder, None, Given(stored))))
    assert embedder.embedded == ["text 1"]


class Spoiled(WordEmbedder):
    """Embeds texts as it should, then changes what it returns."""

    spoil: Callable[[list[Any]], Any] | None = None

    def embed_documents(self, texts: Sequence[str]) -> Any:
        vectors = list(super().embed_documents(texts))
        return vectors if self.spoil is None else self.spoil(vectors)


def _fails(vectors: list[Any]) -> Any:
    raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(lambda vectors: vectors[:-1], "expected 2 vectors from the embedder words", id="fewer"),
        pytest.param(lambda vectors: [*vectors, vectors[0]], "expected 2 vectors", id="more"),
        pytest.param(lambda vectors: [vectors[0], vectors[1][:2]], "not a matrix of numbers", id="mixed"),
        pytest.param(lambda vectors: [vectors[0], vectors[1] * 0], r"chunk \(rank 1, .* is all zeros", id="zeros"),
        pytest.param(lambda vectors: [vectors[0], vectors[1] / 0], r"chunk \(rank 1, .* not finite", id="infinite"),
        pytest.param(lambda vectors: None, "not a matrix|got an array of shape", id="none"),
        pytest.param(
            _fails, r"words failed on 2 texts \(the first: a chunk .rank 0.*: RuntimeError: out of", id="error"
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide by zero|invalid value)")
def test_what_an_embedder_returns_is_checked_and_nothing_else_is_cached(run, spoil, message):
    embedder, cache = Spoiled(name="words"), VectorCache()
    sources = VectorSources(embedder, cache)
    embedder.spoil = spoil
    with pytest.raises(EmbeddingError, match=message):
        run(chunks_with_vectors([chunk(0), chunk(1)], sources))
    assert len(cache) == 0
    embedder.spoil = None
    assert all(one.vector is not None for one in run(chunks_with_vectors([chunk(0), chunk(1)], sources)))


def test_a_question_that_was_searched_with_is_not_embedded_again(run):
    class Asked(WordEmbedder):
        def embed_questions(self, texts: Sequence[str]) -> Any:
            self.embedded += texts
            return super().embed_questions(texts)

    embedder, cache = Asked(), VectorCache()
    run(question_vector("a?", VectorSources(embedder, cache)))
    questions, texts = run(embedded_together(embedder, cache, ["a?", "b?", "b?"], ["c", "c", "d"]))
    assert (len(questions), len(texts), embedder.embedded) == (3, 3, ["a?", "b?", "c", "d"])


def test_the_vector_of_the_question_is_computed_once(run):
    embedder = WordEmbedder()
    given, options = ContextInputs([chunk(0)]), ContextOptions(similarity_threshold=0.1)
    found = run(given_with_vectors(given, "What?", options, VectorSources(embedder)))
    assert found.question_vector.tolist() == embedder.embed_questions(["What?"])[0].tolist()
    again = run(given_with_vectors(found, "Why?", options, VectorSources(embedder)))
    assert again.question_vector is found.question_vector
