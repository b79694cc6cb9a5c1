"""Intervals and p-values, against references and by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Mapping
from itertools import product
from statistics import mean, median, stdev
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag.compare.stats import Difference, FloatArray, Summary, max_t_p_values, paired_difference, summarise

Key = TypeVar("Key", bound=Hashable)


def as_pair(first: Mapping[Key, float], second: Mapping[Key, float]) -> tuple[FloatArray, FloatArray]:
    """Two samples by the keys of their questions as arrays, NaN where one has none."""
    keys = dict.fromkeys([*first, *second])
    one, other = (np.array([sample.get(key, np.nan) for key in keys], dtype=np.float64) for sample in (first, second))
    return one, other


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """The p-values of a family of tests as Holm (1979) adjusts them."""
    adjusted: dict[Key, float] = dict.fromkeys(p_values, 1.0)
    so_far = 0.0
    for place, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        so_far = max(so_far, min(1.0, (len(p_values) - place) * float(p_values[key])))
        adjusted[key] = so_far
    return adjusted


scores = st.lists(st.floats(-10, 10).map(lambda value: round(value, 3)), min_size=2, max_size=25)
NOTHING: dict[str, Any] = {"low": None, "high": None, "standard_deviation": None}


def skewed(generator: Any, count: int) -> FloatArray:
    """Scores as F1 often gives them: half of them 0. Their true mean is 0.25."""
    return np.where(generator.random(count) < 0.5, 0, generator.beta(0.6, 0.6, count))


@given(scores)
@settings(max_examples=100)
def test_the_numbers_of_the_sample(values):
    summary = summarise(np.array(values), resamples=200)
    assert summary.n == summary.units == len(values)
    assert summary.mean == pytest.approx(mean(values), abs=1e-12)
    assert summary.median == pytest.approx(median(values))
    assert summary.standard_deviation == pytest.approx(stdev(values), abs=1e-9)
    assert summary.low is not None
    assert summary.high is not None
    assert min(values) - 1e-9 <= summary.low <= summary.high <= max(values) + 1e-9


def test_the_interval_is_scipys():
    stats: Any = pytest.importorskip("scipy.stats")
    values = skewed(np.random.default_rng(1), 60)
    reference = stats.bootstrap(
        (values,), np.mean, n_resamples=100_000, method="percentile", random_state=2
    ).confidence_interval
    ours = summarise(values, resamples=100_000)
    assert (ours.low, ours.high) == pytest.approx((reference.low, reference.high), abs=0.001)
    assert reference.high - reference.low > 0.1


def test_clusters_of_any_size_are_drawn_whole():
    values = np.array([0.0, 1.0, 1.0, 0.5, 0.25, 0.75, 0.0])
    documents = np.array([0, 1, 1, 2, 2, 2, 3])
    members = [values[documents == number].tolist() for number in range(4)]
    means = sorted(mean([value for name in drawn for value in members[name]]) for drawn in product(range(4), repeat=4))
    expected = means[round(0.025 * len(means))], means[round(0.975 * len(means))]
    ours = summarise(values, documents, resamples=100_000)
    assert (ours.low, ours.high) == pytest.approx(expected, abs=0.02)


@given(scores, st.integers(0, 3))
@settings(max_examples=50)
def test_the_sequence_of_the_questions_does_not_matter(values, seed):
    shuffled = random.Random(seed).sample(range(len(values)), len(values))
    values, documents = np.array(values), np.arange(len(values)) % 4
    for clusters, others in [(None, None), (documents, documents[shuffled])]:
        first = summarise(values, clusters, resamples=200)
        second = summarise(values[shuffled], others, resamples=200)
        assert (first.mean, first.low, first.high) == (second.mean, second.low, second.high)


def test_with_one_score_or_none_there_is_no_interval():
    assert summarise(np.array([])) == Summary(n=0, mean=None, median=None, units=0, **NOTHING)
    assert summarise(np.array([0.5])) == Summary(n=1, mean=0.5, median=0.5, units=1, **NOTHING)
    of_one = summarise(np.array([0.5, 1.0]), np.array([7, 7]))
    assert (of_one.n, of_one.units, of_one.low, of_one.high) == (2, 1, None, None)
    assert of_one.standard_deviation == pytest.approx(math.sqrt(0.125))


def test_questions_without_a_score_are_left_out():
    values, documents = np.array([0.5, np.nan, 1.0, np.nan]), np.array([0, 0, 1, 2])
    assert summarise(values) == summarise(np.array([0.5, 1.0]))
    assert summarise(values, documents) == summarise(np.array([0.5, 1.0]), np.array([0, 1]))
    assert summarise(np.full(3, np.nan)).n == 0


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


def by_hand(sums):
    """Step-down maxT of all sign patterns, one after another."""
    scale = [math.sqrt(math.fsum(value**2 for value in column)) for column in sums.T]
    observed = [abs(math.fsum(column)) / size for column, size in zip(sums.T, scale, strict=True)]
    order = sorted(range(len(observed)), key=lambda number: -observed[number])
    found, so_far = dict.fromkeys(order, 1.0), 0.0
    for place, number in enumerate(order):
        as_far = 0
        for signs in product([1, -1], repeat=len(sums)):
            rest = order[place:]
            drawn = [abs(math.fsum(np.array(signs) * sums[:, other])) / scale[other] for other in rest]
            as_far += max(drawn) >= observed[number] - 1e-9
        so_far = max(so_far, as_far / 2 ** len(sums))
        found[number] = so_far
    return [found[number] for number in range(len(observed))]


@pytest.mark.parametrize("seed", range(5))
def test_comparisons_are_corrected_together_as_by_hand(seed):
    sums = np.random.default_rng(seed).normal([0.0, 0.5, 1.0, 0.2], 1, size=(7, 4))
    assert max_t_p_values(sums, 1_000).tolist() == pytest.approx(by_hand(sums))


def test_the_correction_is_no_harder_than_holms():
    sums = np.random.default_rng(3).normal(0.5, 1, size=(12, 6))
    alone = {number: float(max_t_p_values(sums[:, [number]], 10_000)[0]) for number in range(6)}
    together = max_t_p_values(sums, 10_000)
    assert all(alone[number] <= together[number] <= holm(alone)[number] + 0.01 for number in range(6))


def test_one_wrong_claim_in_twenty_families_that_have_nothing_to_claim():
    draw = np.random.default_rng(4)
    wrong = sum(bool((max_t_p_values(draw.normal(size=(25, 8)), 400) < 0.05).any()) for _ in range(400))
    # 20 of them, give or take twice their standard error.
    assert 10 <= wrong <= 30
