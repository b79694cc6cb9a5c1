import numpy as np
import pytest

from oprag import EmbeddingError
from oprag.embedding.cosine import cosine


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
def test_cosines(first, second, expected):
    assert cosine(first, second) == pytest.approx(expected)
    assert cosine(np.array(first, dtype=np.float64), tuple(second)) == pytest.approx(expected)


def test_it_never_leaves_the_scale():
    generator = np.random.default_rng(0)
    for _ in range(200):
        vector = generator.standard_normal(7).astype(np.float32)
        assert cosine(vector, vector) <= 1
        assert cosine(vector, -vector) >= -1


@pytest.mark.parametrize(
    ("first", "second"),
    [([1], [1, 2]), ([], []), ([float("nan")], [1.0]), ([float("inf")], [1.0]), (["a"], [1.0]), ([None], [1.0])],
)
def test_what_is_no_vector_is_refused(first, second):
    with pytest.raises(EmbeddingError):
        cosine(first, second)
    with pytest.raises(EmbeddingError):
        cosine(second, first)
