import math
import random
from itertools import product
from statistics import mean, median, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag.compare.stats import FloatArray, Summary, summarise

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
