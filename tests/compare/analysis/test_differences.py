"""Differences that are judged together, and which of several samples is the highest."""

from dataclasses import replace
from functools import reduce
from itertools import permutations
from operator import add
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.analysis.differences import ComparisonFamily, highest
from oprag.compare.stats import max_t_p_values, paired_difference
from tests.compare.analysis.matrices import frame, made

NONE = np.nan


def place_of_highest(*samples):
    """The index of the highest of samples, which are a score of each question or None."""
    cells = [made({str(n): value for n, value in enumerate(one)}, k=k) for k, one in enumerate(samples, 1)]
    return highest(frame(*cells).settings, "token_f1").number


def questions(count):
    return np.arange(count)


def family_of(rows, clusters, pairs, resamples=10_000):
    matrix: Any = SimpleNamespace(clusters=clusters, resamples=resamples)
    return ComparisonFamily(matrix, rows, pairs)


def test_of_equal_ones_it_is_the_first_however_their_questions_are_sorted():
    # Added one after the other in another sequence, these floats have another sum.
    samples = [*permutations((0.1, 0.2, 0.4))]
    assert len({reduce(add, one) for one in samples}) > 1
    assert {place_of_highest(*pair) for pair in permutations(samples, 2)} == {0}
    # Of which one lacks a question: the others have the same sum.
    assert place_of_highest((0.1, 0.2, 0.3, None), (0.3, 0.2, 0.1, 0.0)) == 0


def test_it_has_the_highest_mean():
    assert place_of_highest((0.1, 0.2, 0.3), (0.2, 0.2, 0.3), (0.0, 0.2, 0.3)) == 1


def test_where_questions_lack_it_is_ahead_in_those_that_both_have():
    # The mean of the second is higher since it has no score of the hard question.
    assert place_of_highest((0.9, 0.1), (0.8, None)) == 0


def test_p_values_are_corrected_for_all_comparisons_together():
    draw = np.random.default_rng(1)
    rows = draw.normal([0, 0.4, 0.8, 0.1], 1, size=(12, 4)).T
    family = family_of(rows, questions(12), [(0, 1), (0, 2), (0, 3)])
    wanted = max_t_p_values(np.column_stack([rows[0] - other for other in rows[1:]]))
    found = [family.compare(other, 0) for other in (1, 2, 3)]
    assert [one.adjusted_p for one in found] == pytest.approx(wanted)
    assert family.comparisons == 3
    alone = [paired_difference(rows[other], rows[0], questions(12)) for other in (1, 2, 3)]
    assert [replace(one, adjusted_p=None, comparisons=1) for one in found] == alone


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, NONE]), min_size=8, max_size=8), min_size=2, max_size=5))
def test_a_pair_counts_once_in_either_direction_and_never_without_a_difference(samples):
    rows = np.array(samples)
    count = len(rows)
    pairs = [(one, other) for one in range(count) for other in range(one)]
    once = family_of(rows, questions(8), pairs, resamples=500)
    # The same scores again, with another zero.
    twice = np.concatenate([rows, np.where(rows == 0, -0.0, rows)])
    turned = [(other + count, one) for one, other in pairs]
    again = family_of(twice, questions(8), [*pairs, *turned], resamples=500)
    assert again.comparisons == once.comparisons <= len(pairs)
    for one, other in pairs:
        first, second, back = once.compare(one, other), again.compare(one, other), again.compare(other, one)
        assert first == second
        assert back.adjusted_p == first.adjusted_p
        assert (first.adjusted_p is None) == (not first.differing)
        assert first.tied == (first.n > 0 and first.adjusted_p is None)


def test_units_are_clusters():
    rows = np.array([np.zeros(8), np.tile([1.0, -1.0], 4)])
    apart = family_of(rows, questions(8), [(0, 1)])
    assert apart.comparisons == 1
    # In each document they cancel, so that nothing can be told apart.
    together = family_of(rows, questions(8) // 2, [(0, 1)])
    assert together.comparisons == 0
    assert together.compare(0, 1).adjusted_p is None


def test_shown_needs_an_interval_on_one_side_of_zero_and_a_small_p_value():
    rows = np.array([np.zeros(12), np.full(12, 0.5)])
    family = family_of(rows, questions(12), [(0, 1)])
    higher, lower = family.compare(1, 0), family.compare(0, 1)
    assert higher.significant
    assert higher.significantly_higher
    assert lower.significant
    assert not lower.significantly_higher
    few = family_of(rows[:, :5], questions(5), [(0, 1)]).compare(1, 0)
    assert few.excludes_zero
    assert (few.adjusted_p, few.significant) == (0.0625, False)
