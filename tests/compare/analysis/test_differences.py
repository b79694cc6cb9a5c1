"""Differences that are judged together, and which of several samples is the highest."""

from functools import reduce
from itertools import permutations
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.analysis.differences import ComparisonFamily, highest
from oprag.compare.stats.difference import paired_difference
from oprag.compare.stats.permutation import max_t_p_values

NONE = np.nan


def scored(*values):
    return np.array(values, dtype=np.float64)


def questions(count):
    return np.arange(count)


def test_of_equal_ones_it_is_the_first_however_their_questions_are_sorted():
    # Added one after the other in another sequence, these floats have another sum.
    samples = [scored(*values) for values in permutations((0.1, 0.2, 0.3))]
    assert len({reduce(add, one.tolist()) for one in samples}) > 1
    assert highest(samples) == 0
    assert highest(samples[::-1]) == 0
    # Of which one lacks a question: the others have the same sum.
    assert highest([scored(0.1, 0.2, 0.3, NONE), scored(0.3, 0.2, 0.1, 0.0)]) == 0


def test_it_has_the_highest_mean():
    assert highest([scored(0.1, 0.2, 0.3), scored(0.2, 0.2, 0.3), scored(0.0, 0.2, 0.3)]) == 1


def test_where_questions_lack_it_is_ahead_in_those_that_both_have():
    # The mean of the second is higher since it has no score of the hard question.
    assert highest([scored(0.9, 0.1), scored(0.8, NONE)]) == 0


def test_p_values_are_corrected_for_all_comparisons_together():
    draw = np.random.default_rng(1)
    base, *others = draw.normal([0, 0.4, 0.8, 0.1], 1, size=(12, 4)).T
    family = ComparisonFamily([(base, other) for other in others], questions(12))
    wanted = max_t_p_values(np.column_stack([base - other for other in others]))
    found = [family.compare(other, base) for other in others]
    assert [one.adjusted_p for one in found] == pytest.approx(wanted)
    assert [one.difference for one in found] == [paired_difference(other, base, questions(12)) for other in others]
    assert family.comparisons == 3


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, NONE]), min_size=8, max_size=8), min_size=2, max_size=5))
def test_a_pair_counts_once_in_either_direction_and_never_without_a_difference(samples):
    rows = [scored(*one) for one in samples]
    pairs = [(one, other) for number, one in enumerate(rows) for other in rows[:number]]
    once = ComparisonFamily(pairs, questions(8), resamples=500)
    again = ComparisonFamily(
        [*pairs, *((np.where(other == 0, -0.0, other), one) for one, other in pairs)], questions(8), resamples=500
    )
    assert again.comparisons == once.comparisons <= len(pairs)
    for one, other in pairs:
        first, second, turned = once.compare(one, other), again.compare(one, other), again.compare(other, one)
        assert first == second
        assert turned.adjusted_p == first.adjusted_p
        assert (first.adjusted_p is None) == (not first.difference.differing)
        assert first.tied == (first.difference.n > 0 and first.adjusted_p is None)


def test_units_are_clusters():
    base, other = np.zeros(8), np.tile([1.0, -1.0], 4)
    apart = ComparisonFamily([(base, other)], questions(8))
    assert apart.comparisons == 1
    # In each document they cancel, so that nothing can be told apart.
    together = ComparisonFamily([(base, other)], questions(8) // 2)
    assert together.comparisons == 0
    assert together.compare(base, other).adjusted_p is None


def test_shown_needs_an_interval_above_zero_and_a_small_p_value():
    base, better = np.zeros(12), np.full(12, 0.5)
    family = ComparisonFamily([(base, better)], questions(12))
    assert family.compare(better, base).shown
    assert not family.compare(base, better).shown
    few = ComparisonFamily([(base[:5], better[:5])], questions(5))
    judged = few.compare(better[:5], base[:5])
    assert judged.difference.excludes_zero
    assert not judged.shown
    assert judged.describe().endswith("; p = 0.062")
    assert few.compare(base[:5], base[:5]).describe() == "the same score in every question"
