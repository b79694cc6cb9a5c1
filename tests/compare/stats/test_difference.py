import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag.compare.stats import Difference, paired_difference, summarise
from tests.compare.stats.oracles import as_pair


def against_nothing(values: Any, *clusters: Any, **options: Any) -> Difference:
    return paired_difference(np.array(values), np.zeros(len(values)), *clusters, **options)


def test_it_is_the_interval_of_the_differences():
    generator = np.random.default_rng(0)
    first, second = generator.random(50), generator.random(50)
    difference = paired_difference(first, second)
    summary = summarise(first - second)
    assert (difference.mean, difference.low, difference.high) == (summary.mean, summary.low, summary.high)
    assert difference.n == difference.units == 50


def test_turned_round_it_is_the_negative():
    generator = np.random.default_rng(3)
    first, second = generator.random(200), generator.random(200)
    there, back = paired_difference(first, second), paired_difference(second, first)
    # To the last digit: a pair has one interval and one p-value, whichever side is named first.
    assert (back.mean, back.low, back.high) == (-(there.mean or 0), -(there.high or 0), -(there.low or 0))
    assert back.excludes_zero == there.excludes_zero
    assert back.p_value == there.p_value


def test_only_questions_that_both_have_are_compared():
    first, second = {"a": 1.0, "b": 0.5, "c": 0.0}, {"b": 0.25, "a": 0.5, "d": 9.0, "e": 9.0}
    difference = paired_difference(*as_pair(first, second))
    assert (difference.n, difference.unpaired, difference.mean) == (2, 3, 0.375)
    assert paired_difference(*as_pair({"a": 1.0}, {"b": 1.0})).unpaired == 2


def test_clusters_of_questions_that_both_have_alone_are_drawn():
    first, second = np.array([1.0, 0.0, np.nan]), np.zeros(3)
    assert paired_difference(first, second, np.array([1, 2, 3])).units == 2


@given(st.lists(st.floats(-1, 1).map(lambda value: round(value, 2)), min_size=1, max_size=9))
@settings(max_examples=100)
def test_the_p_value_of_few_questions_is_that_of_all_signs(values):
    observed = abs(math.fsum(values))
    sums = [
        abs(math.fsum(a * b for a, b in zip(signs, values, strict=True)))
        for signs in product([1, -1], repeat=len(values))
    ]
    expected = sum(value >= observed - 1e-9 for value in sums) / len(sums)
    assert against_nothing(values, resamples=1000).p_value == pytest.approx(expected)


def test_the_p_value_is_that_of_scipys_test():
    stats: Any = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(6).normal(0.3, 1, size=12)
    reference = stats.permutation_test(
        (values, np.zeros(12)), lambda x, y: np.mean(x) - np.mean(y), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert against_nothing(values).p_value == pytest.approx(reference)


def test_sums_that_cancel_out_are_zero(monkeypatch):
    # 0.1 + 0.2 - 0.3 leaves 5.6e-17.
    monkeypatch.setattr("oprag.compare.stats.ALPHA", 0.99)
    difference = against_nothing([0.1, 0.2, -0.3])
    assert (difference.low, difference.high, difference.excludes_zero) == (0, 0, False)


def test_without_enough_questions_there_is_no_interval():
    nothing = paired_difference(*as_pair({}, {"a": 1.0}))
    assert (nothing.n, nothing.mean, nothing.low, nothing.p_value, nothing.unpaired) == (0, None, None, None, 1)
    one = against_nothing([0.5])
    assert (one.n, one.mean, one.low, one.high, one.excludes_zero) == (1, 0.5, None, None, False)
    of_one_document = against_nothing([0.5, 0.7], np.array([0, 0]))
    assert (of_one_document.n, of_one_document.units, of_one_document.low) == (2, 1, None)
    assert not of_one_document.excludes_zero
