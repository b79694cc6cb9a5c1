import numpy as np
import pytest

from oprag import DualEncoder, Embedder, EmbeddingError, LocalEmbedder
from oprag.embedding.cosine import as_vectors
from tests.helpers import WordEmbedder


def test_rows_are_scaled_to_length_one():
    matrix = as_vectors([[3.0, 4.0], [0.0, -2.0]], 2)
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, [[0.6, 0.8], [0.0, -1.0]], rtol=1e-6)


def test_a_row_of_zeros_stays():
    np.testing.assert_array_equal(as_vectors([[0.0, 0.0], [2.0, 0.0]], 2), [[0.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1e30, 3e38])
def test_very_small_and_very_large_rows_keep_their_direction(scale):
    vectors = np.array([[scale, scale]], dtype=np.float32)
    np.testing.assert_allclose(as_vectors(vectors, 1), [[0.5**0.5, 0.5**0.5]], rtol=1e-6)


def test_what_was_given_is_not_changed():
    vectors = np.array([[3.0, 4.0]], dtype=np.float32)
    assert not np.shares_memory(as_vectors(vectors, 1), vectors)
    np.testing.assert_array_equal(vectors, [[3.0, 4.0]])


@pytest.mark.parametrize("vectors", [[], np.zeros((0, 3)), np.zeros((0,))])
def test_no_vectors_are_an_empty_matrix(vectors):
    assert as_vectors(vectors, 0).shape[0] == 0
    assert as_vectors([], 0, 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 2.0]], "expected 2 vectors"),
        ([1.0, 2.0], "expected 2 vectors"),
        (np.zeros((2, 2, 2)), "expected 2 vectors"),
        ([[1.0], [2.0, 3.0]], "expected 2 vectors from the embedder, got what is not a matrix of numbers"),
        ([["a"], ["b"]], "expected 2 vectors from the embedder, got what is not a matrix of numbers"),
        ([{}, {}], "expected 2 vectors from the embedder, got what is not a matrix of numbers"),
        (None, "vectors"),
        ([[1.0, 2.0], [float("nan"), 0.0]], "vector . of 2 has values that are not finite"),
        ([[1.0, 2.0], [float("inf"), 0.0]], "vector . of 2 has values that are not finite"),
        (np.array([[1e300, 0.0], [1.0, 1.0]]), "vector . of 2 has values that are not finite"),
        (
            np.array([[1j, 0.0], [1.0, 1.0]]),
            "expected 2 vectors from the embedder, got what is not a matrix of numbers",
        ),
    ],
)
def test_vectors_that_cannot_be_used_are_refused(vectors, message):
    with pytest.raises(EmbeddingError, match=message) as caught:
        as_vectors(vectors, 2)
    assert caught.value.value is vectors
    assert isinstance(caught.value, ValueError)


def test_another_dimension_is_refused():
    with pytest.raises(EmbeddingError, match="expected vectors of dimension 3, got 2"):
        as_vectors([[1.0, 2.0]], 1, 3)


def test_a_dual_encoder_has_an_encoder_for_each_kind():
    embedder = DualEncoder("pair", question=lambda texts: [[1, 0]] * len(texts), document=lambda texts: [[0, 1]])
    np.testing.assert_array_equal(embedder.embed_questions(["a", "b"]), [[1, 0], [1, 0]])
    np.testing.assert_array_equal(embedder.embed_documents(["a"]), [[0, 1]])
    assert embedder.embed_documents(["a"]).dtype == np.float32


def test_one_encoder_may_do_for_both():
    embedder = DualEncoder("one", lambda texts: [[len(text)] for text in texts])
    np.testing.assert_array_equal(embedder.embed_documents(["abc"]), embedder.embed_questions(["xyz"]))


def test_embedders_are_told_by_their_methods():
    assert isinstance(DualEncoder("x", list), Embedder)
    assert isinstance(WordEmbedder(), Embedder)
    assert isinstance(LocalEmbedder(), Embedder)
    assert not isinstance(object(), Embedder)
