"""Which of several samples is the highest."""

from functools import reduce
from itertools import permutations
from operator import add

from oprag.compare.highest import highest

QUESTIONS = ("a", "b", "c")


def sample(*scores, questions=QUESTIONS):
    return dict(zip(questions, scores, strict=False))


def test_of_equal_ones_it_is_the_first_however_their_questions_are_sorted():
    # Added one after the other in another sequence, these floats have another sum.
    samples = [dict(zip(QUESTIONS, values, strict=True)) for values in permutations((0.1, 0.2, 0.3))]
    assert len({reduce(add, one.values()) for one in samples}) > 1
    assert highest(samples) == 0
    assert highest(samples[::-1]) == 0
    # Of which one lacks a question: 0.1 + 0.2 is 0.3 in the questions that both have.
    first, second = {"a": 0.1, "b": 0.2, "c": 0.3}, {"c": 0.3, "b": 0.2, "a": 0.1, "d": 0.0}
    assert highest([first, second]) == 0


def test_it_has_the_highest_mean():
    assert highest([sample(0.1, 0.2, 0.3), sample(0.2, 0.2, 0.3), sample(0.0, 0.2, 0.3)]) == 1
