import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import EmbeddingError, OptionError
from oprag.compare.metrics import answer_cosine

numbers = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))
vectors = st.lists(numbers, min_size=3, max_size=3)


@given(vectors, st.lists(vectors, min_size=1, max_size=4))
def test_it_is_the_best_cosine(prediction, answers):
    expected = []
    for answer in answers:
        lengths = np.linalg.norm(prediction) * np.linalg.norm(answer)
        expected.append(float(np.dot(prediction, answer) / lengths) if lengths else 0.0)
    score = answer_cosine(prediction, answers)
    assert -1 <= score <= 1
    assert score == pytest.approx(max(expected), abs=1e-9)
    assert score == answer_cosine(prediction, answers[::-1])
    assert score == answer_cosine(np.array(prediction), np.array(answers))


@given(vectors.filter(any), st.floats(0.01, 100))
def test_length_does_not_matter(vector, factor):
    assert answer_cosine(vector, [[factor * value for value in vector]]) == pytest.approx(1)
    assert answer_cosine(vector, [[-factor * value for value in vector]]) == pytest.approx(-1)


def test_a_vector_without_length_is_like_nothing():
    assert answer_cosine([0, 0], [[1, 0]]) == 0
    assert answer_cosine([1, 0], [[0, 0], [-1, 0]]) == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_not_finite_is_refused(bad, turned):
    first, second = ([1, 0], [bad, 1]) if turned else ([bad, 1], [1, 0])
    with pytest.raises(EmbeddingError, match="values that are not finite"):
        answer_cosine(first, [second])


def test_vectors_of_other_dimensions_are_refused():
    with pytest.raises(EmbeddingError, match="expected two vectors of one dimension, got 2 and 3"):
        answer_cosine([1, 0], [[1, 0, 0]])
    with pytest.raises(EmbeddingError, match="one dimension, got 0 and 0"):
        answer_cosine([], [[]])


def test_one_answer_is_a_list_of_one_vector():
    with pytest.raises(EmbeddingError, match="vectors must be numbers"):
        answer_cosine([1, 0], [1, 0])  # type: ignore[list-item]


def test_a_question_without_answers_has_no_score():
    with pytest.raises(OptionError, match="at least one vector, got none"):
        answer_cosine([1, 0], [])
