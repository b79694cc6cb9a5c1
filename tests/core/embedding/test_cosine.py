import numpy as np
import pytest

from oprag.embedding.cosine import as_vectors, cosine, usable_rows
from oprag.errors import EmbeddingError


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 0], [1, 0], 1),
        ([1, 0], [0, 1], 0),
        ([1, 0], [-2, 0], -1),
        ([1, 1], [1, 0], 0.70710678),
        ([0, 0], [1, 0], 0),
    ],
)
def test_cosines_of_pairs(first, second, expected):
    assert cosine(first, second) == pytest.approx(expected)
    assert cosine(np.array(first, dtype=np.float64), tuple(second)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "second"),
    [([1], [1, 2]), ([], []), ([float("nan")], [1.0]), ([float("inf")], [1.0]), (["a"], [1.0]), ([None], [1.0])],
)
def test_a_pair_of_other_vectors_is_refused(first, second):
    with pytest.raises(EmbeddingError):
        cosine(first, second)
    with pytest.raises(EmbeddingError):
        cosine(second, first)


@pytest.mark.parametrize("scale", [1e-45, 1e-30, 1e30, 3e38])
def test_very_small_and_very_large_rows_keep_their_direction(scale):
    vectors = np.array([[scale, scale]], dtype=np.float32)
    np.testing.assert_allclose(as_vectors(vectors, 1), [[0.5**0.5, 0.5**0.5]], rtol=1e-6)


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
        ([[1.0], [2.0, 3.0]], "expected 2 vectors from the embedder, got something that is not a matrix of numbers"),
        ([["a"], ["b"]], "expected 2 vectors from the embedder, got something that is not a matrix of numbers"),
        ([{}, {}], "expected 2 vectors from the embedder, got something that is not a matrix of numbers"),
        (None, "vectors"),
        ([[1.0, 2.0], [float("nan"), 0.0]], "vector . of 2 has values that are not finite"),
        ([[1.0, 2.0], [float("inf"), 0.0]], "vector . of 2 has values that are not finite"),
        (np.array([[1e300, 0.0], [1.0, 1.0]]), "vector . of 2 has values that are not finite"),
        (
            np.array([[1j, 0.0], [1.0, 1.0]]),
            "expected 2 vectors from the embedder, got something that is not a matrix of numbers",
        ),
    ],
)
def test_vectors_that_cannot_be_used_are_refused(vectors, message):
    with pytest.raises(EmbeddingError, match=message) as caught:
        as_vectors(vectors, 2)
    assert caught.value.value is vectors
    assert isinstance(caught.value, ValueError)


def test_a_vector_among_others_that_cannot_be_used_is_named():
    def name_of(owner: int) -> str:
        return f"chunk {owner}"

    np.testing.assert_array_equal(usable_rows([[1, 2], np.array([3.0, 4.0])], [7, 8], name_of), [[1, 2], [3, 4]])
    for vector, message in [
        ([0, 0], "the vector of chunk 8 is all zeros"),
        ([1, float("nan")], "the vector of chunk 8 has values that are not finite"),
        ([1, 2, 3], "the vector of chunk 8 has dimension 3, that of chunk 7 has 2"),
        (["1", "2"], "expected 1 vector from chunk 8, got something that is not a matrix of numbers"),
        ([], "expected 1 vector from chunk 8, got an array of shape"),
        (None, "expected 1 vector from chunk 8, got an array of shape"),
    ]:
        with pytest.raises(EmbeddingError, match=message) as caught:
            usable_rows([[1, 2], vector], [7, 8], name_of)
        assert caught.value.value == 8
