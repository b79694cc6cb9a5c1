import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.embedding.cosine import CosineSearch, top


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.integers(1, 50))
def test_top_is_a_stable_sort(values, k):
    scores = np.array(values, dtype=np.float32)
    assert top(scores, k).tolist() == np.argsort(-scores, kind="stable")[:k].tolist()


@pytest.mark.parametrize("questions", [1, 2, 5])
def test_scores_are_cosines_of_unit_vectors(questions):
    generator = np.random.default_rng(questions)
    vectors = generator.standard_normal((30, 8)).astype(np.float32)
    asked = generator.standard_normal((questions, 8)).astype(np.float32)
    np.testing.assert_allclose(CosineSearch(vectors).scores(asked), asked @ vectors.T, rtol=1e-4, atol=1e-5)
