import numpy as np
import pytest

from oprag import DualEncoder, EmbeddingError
from oprag.embedding.question_vectors import QuestionVectors


class Counting:
    """An encoder that notes what it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        return [[float(len(text)), 1.0] for text in texts]


@pytest.fixture
def encoder():
    return Counting()


def vectors_of(encoder, dimension=2):
    return QuestionVectors(DualEncoder("counting", encoder), dimension)


def test_a_question_is_embedded_once(encoder):
    vectors = vectors_of(encoder)
    first = vectors.of(["a", "bb"])
    np.testing.assert_array_equal(vectors.of(["bb", "a", "bb"]), first[[1, 0, 1]])
    vectors.of(["ccc", "a"])
    assert encoder.asked == [["a", "bb"], ["ccc"]]
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-6)


def test_the_same_question_twice_in_a_batch_is_embedded_once(encoder):
    assert vectors_of(encoder).of(["a", "bb", "a"]).shape == (3, 2)
    assert encoder.asked == [["a", "bb"]]


def test_only_the_last_ones_are_remembered(encoder):
    vectors = vectors_of(encoder)
    many = ["x" * (n + 1) for n in range(200)]
    assert vectors.of(many).shape == (200, 2)
    vectors.of([many[-1], many[-64]])
    assert len(encoder.asked) == 1
    vectors.of([many[-65]])
    assert encoder.asked[1:] == [[many[-65]]]
    # The one that was asked longest ago has gone for it.
    vectors.of([many[-1], many[-64]])
    assert len(encoder.asked) == 2
    vectors.of([many[-63]])
    assert len(encoder.asked) == 3


def test_what_was_given_out_is_not_what_is_remembered(encoder):
    vectors = vectors_of(encoder)
    vectors.of(["a"])[:] = 0
    assert vectors.of(["a"]).any()


def test_wrong_vectors_are_refused_and_not_remembered(encoder):
    vectors = vectors_of(encoder, dimension=3)
    for _ in range(2):
        with pytest.raises(EmbeddingError, match="expected vectors of dimension 3, got 2"):
            vectors.of(["a"])
    assert len(encoder.asked) == 2
