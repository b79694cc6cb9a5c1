from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, DocumentIndex, DualEncoder
from oprag.errors import ChunkError, EmbeddingError, MissingSourceError, OptionError, QueryError, TokenizerError
from tests.helpers import WordEmbedder, prose, texts, word_offsets

BOOK = prose(400, seed=3)


def book_index(**options: Any) -> DocumentIndex:
    given: dict[str, Any] = {"embedder": WordEmbedder(), "chunk_size": 10, **options}
    return DocumentIndex.from_texts({"book": BOOK}, tokenizer=word_offsets, **given)


def index_of(vectors: Any, questions: Any, name: str = "given") -> DocumentIndex:
    """An index over given vectors; the question "n" has the vector n."""
    embedder = DualEncoder(name, question=lambda asked: [questions[int(number)] for number in asked])
    count = len(vectors)
    return DocumentIndex(
        [f"text {n}" for n in range(count)],
        [{"source": "s", "chunk_index": n} for n in range(count)],
        vectors,
        embedder,
    )


def test_a_repr_is_one_line():
    assert repr(book_index()) == f"DocumentIndex({len(book_index())} chunks, vectors of dimension 32 of 'words')"
    assert repr(book_index(embedder=None)) == f"DocumentIndex({len(book_index())} chunks, no vectors)"


def numbers(hits: Iterable[Chunk]) -> list[int]:
    return [hit.metadata["chunk_index"] for hit in hits]


def scores(hits: Iterable[Chunk]) -> list[float]:
    return [hit.score for hit in hits if hit.score is not None]


# --- making one ---


def test_texts_are_split_stamped_and_embedded():
    embedder = WordEmbedder()
    index = DocumentIndex.from_texts({"a": "one two three", "b": "", "c": "four"}, embedder, word_offsets, chunk_size=2)
    assert [(chunk.text, dict(chunk.metadata)) for chunk in index.chunks] == [
        ("one two ", {"source": "a", "chunk_index": 0, "start_index": 0, "end_index": 8}),
        ("three", {"source": "a", "chunk_index": 1, "start_index": 8, "end_index": 13}),
        ("four", {"source": "c", "chunk_index": 0, "start_index": 0, "end_index": 4}),
    ]
    assert embedder.embedded == texts(index.chunks)
    assert len(index) == 3


def test_long_documents_are_embedded_in_batches_with_progress():
    embedder = WordEmbedder(dimension=4)
    seen = []
    index = DocumentIndex.from_texts(
        {"book": prose(1200)},
        embedder,
        word_offsets,
        chunk_size=2,
        on_progress=lambda done, total: seen.append((done, total)),
    )
    assert len(index) == 600
    assert seen == [(256, 600), (512, 600), (600, 600)]


@pytest.mark.parametrize("sources", [{}, {"a": ""}])
def test_an_index_of_nothing_finds_nothing(sources):
    index = DocumentIndex.from_texts(sources, WordEmbedder(), word_offsets)
    assert len(index) == 0
    assert index.search("anything", k=3) == []


@pytest.mark.parametrize("name", ["", " ", None, float("nan"), ("a",)])
def test_a_source_needs_a_name(name):
    with pytest.raises(MissingSourceError, match="a source must be named") as caught:
        DocumentIndex.from_texts({name: "text"}, WordEmbedder(), word_offsets)
    assert caught.value.value is name


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"sources": ["text"]}, ChunkError),
        ({"sources": "text"}, ChunkError),
        ({"sources": {"a": 5}}, ChunkError),
        ({"sources": {"a": b"bytes"}}, ChunkError),
        ({"tokenizer": "words"}, TokenizerError),
        ({"chunk_size": 0}, OptionError),
        ({"chunk_overlap": 128}, OptionError),
        ({"splitter": "sentences"}, OptionError),
        ({"splitter": "recursive", "chunk_size": 0}, OptionError),
        ({"splitter": "recursive", "chunk_size": "5"}, OptionError),
        ({"embedder": DualEncoder("short", lambda texts: [[1.0]] * (len(texts) - 1))}, EmbeddingError),
        ({"embedder": DualEncoder("nan", lambda texts: [[float("nan")]] * len(texts))}, EmbeddingError),
    ],
)
def test_what_cannot_be_indexed_is_refused(change, error):
    given = {"sources": {"a": "text"}, "embedder": WordEmbedder(), "tokenizer": word_offsets, **change}
    with pytest.raises(error):
        DocumentIndex.from_texts(**given)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ((["a"], [], [[1.0]]), ChunkError),
        ((["a"], [{}, {}], [[1.0]]), ChunkError),
        (([5], [{}], [[1.0]]), ChunkError),
        ((["a"], ["meta"], [[1.0]]), ChunkError),
        ((["a"], [{}], [[1.0], [2.0]]), EmbeddingError),
        ((["a"], [{}], [[float("inf")]]), EmbeddingError),
    ],
)
def test_chunks_metadata_and_vectors_must_fit(args, error):
    given_texts, metadata, vectors = args
    with pytest.raises(error):
        DocumentIndex(given_texts, metadata, vectors, WordEmbedder())


def test_a_changing_dimension_is_refused():
    dimensions = iter([3, 3, 4])
    embedder = DualEncoder("growing", lambda texts: np.ones((len(texts), next(dimensions))))
    with pytest.raises(EmbeddingError, match="expected vectors of dimension 3, got 4"):
        DocumentIndex.from_texts({"book": prose(1500)}, embedder, word_offsets, chunk_size=2)


# --- searching ---


@pytest.mark.parametrize("dimension", [3, 7, 16, 64, 100, 256, 385])
@pytest.mark.parametrize("count", [5, 17, 100, 333])
def test_equal_vectors_are_ties_wherever_they_stand_in_the_matrix(count, dimension):
    # A matrix product may add up a row in another sequence at the edge of a block, and then differ in the last bit.
    generator = np.random.default_rng(count * dimension)
    distinct = generator.standard_normal((max(2, count // 4), dimension)).astype(np.float32)
    chosen = generator.integers(0, len(distinct), count)
    questions = generator.standard_normal((4, dimension)).astype(np.float32)
    index = index_of(distinct[chosen], questions)
    for number in range(4):
        hits = index.search(str(number), k=count)
        found = numbers(hits)
        for vector in range(len(distinct)):
            twins = [number for number in found if chosen[number] == vector]
            assert twins == sorted(twins)
        assert scores(hits) == sorted(scores(hits), reverse=True)


def test_the_vectors_of_an_index_cannot_be_written_to():
    index = book_index()
    np.testing.assert_allclose(np.linalg.norm(index.vectors, axis=1), 1, rtol=1e-5)
    assert not index.vectors.flags.writeable
    (hit,) = index.search("ocean5", k=1)
    assert hit.vector is not None
    assert not hit.vector.flags.writeable


@pytest.mark.parametrize("question", ["", "  ", None, 5, ["what"]])
def test_a_question_must_be_a_text(question):
    with pytest.raises(QueryError):
        book_index().search(question, k=3)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, None, "3"])
def test_k_must_be_a_number_from_one(k):
    with pytest.raises(OptionError, match="k must be an integer >= 1") as caught:
        book_index().search("ocean5", k=k)
    assert caught.value.value is k


def test_a_question_of_another_dimension_is_refused():
    index = index_of([[1.0, 0.0]], [[1.0, 0.0, 0.0]])
    with pytest.raises(EmbeddingError, match="use the embedder that the index was built with"):
        index.search("0", k=1)
