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


def made(**given: Any) -> Difference:
    """A difference with some of its fields."""
    fields = {"n": 120, "mean": 0.042, "low": 0.011, "high": 0.073, "unpaired": 0}
    return Difference(**{**fields, "p_value": 0.01, "units": given.get("n", 120), "differing": 9, **given})


def test_it_is_the_interval_of_the_differences():
    generator = np.random.default_rng(0)
    first, second = generator.random(50), generator.random(50)
    difference = paired_difference(first, second)
    summary = summarise(first - second)
    assert (difference.mean, difference.low, difference.high) == (summary.mean, summary.low, summary.high)
    assert difference.n == difference.units == 50


def test_the_interval_is_scipys():
    stats: Any = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(1)
    first, second = generator.random(40), generator.random(40) ** 2
    reference = stats.bootstrap(
        (first, second),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        paired=True,
        n_resamples=100_000,
        method="percentile",
        random_state=2,
    ).confidence_interval
    ours = paired_difference(first, second, resamples=100_000)
    assert (ours.low, ours.high) == pytest.approx((reference.low, reference.high), abs=0.002)


def test_pairs_see_what_two_samples_do_not():
    generator = np.random.default_rng(2)
    difficulty = generator.random(100)
    first, second = difficulty + 0.03 + 0.05 * generator.normal(size=100), difficulty
    paired = paired_difference(first, second)
    assert paired.excludes_zero
    assert paired.low is not None
    assert paired.low > 0
    apart = [summarise(values) for values in (first, second)]
    assert (apart[0].low or 0) < (apart[1].high or 0)


def test_turned_round_it_is_the_negative():
    generator = np.random.default_rng(3)
    first, second = generator.random(200), generator.random(200)
    there, back = paired_difference(first, second), paired_difference(second, first)
    # To the last digit: a pair has one interval and one p-value, whichever side is named first.
    assert (back.mean, back.low, back.high) == (-(there.mean or 0), -(there.high or 0), -(there.low or 0))
    assert back.excludes_zero == there.excludes_zero
    assert back.p_value == there.p_value


def test_documents_are_drawn_whole():
    generator = np.random.default_rng(4)
    values = np.repeat(generator.normal(0.3, 1, size=12), 20) + 0.2 * generator.normal(size=240)
    documents = np.arange(240) // 20
    apart, together = against_nothing(values), against_nothing(values, documents)
    assert (apart.n, apart.units, together.n, together.units) == (240, 240, 240, 12)
    assert apart.mean == pytest.approx(together.mean)
    assert (together.high or 0) - (together.low or 0) > 2 * ((apart.high or 0) - (apart.low or 0))
    assert (together.p_value or 0) > 10 * (apart.p_value or 0)


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


def test_the_p_value_of_many_questions_is_near_that_of_all_signs():
    values = np.random.default_rng(5).normal(0.35, 1, size=16)
    exact = against_nothing(values, resamples=2**16).p_value
    drawn = against_nothing(values, resamples=2**15).p_value
    assert exact is not None
    assert 0.01 < exact < 0.9
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact / 2**15))


def test_the_p_value_is_that_of_scipys_test():
    stats: Any = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(6).normal(0.3, 1, size=12)
    reference = stats.permutation_test(
        (values, np.zeros(12)), lambda x, y: np.mean(x) - np.mean(y), permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert against_nothing(values).p_value == pytest.approx(reference)


def test_without_a_difference_one_in_twenty_is_below_a_twentieth():
    generator = np.random.default_rng(7)
    p_values = [against_nothing(generator.normal(size=25), resamples=400).p_value or 0 for _ in range(600)]
    assert 0.025 < np.mean(np.array(p_values) <= 0.05) < 0.08


def test_six_questions_are_the_fewest_that_reach_a_twentieth():
    assert [against_nothing([0.1] * count).p_value for count in (1, 3, 5, 6)] == [1, 0.25, 0.0625, 0.03125]


def test_an_end_at_zero_does_not_exclude_it():
    difference = against_nothing([0.5, 0.0])
    assert difference.low == 0
    assert not difference.excludes_zero


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


@given(st.permutations(range(8)))
@settings(max_examples=30)
def test_the_sequence_of_the_questions_does_not_matter(order):
    values = np.array([0.3, 0.1, -0.2, 0.5, 0.0, 0.7, -0.1, 0.2])
    assert against_nothing(values[list(order)], resamples=500) == against_nothing(values, resamples=500)


@pytest.mark.parametrize(
    ("difference", "line"),
    [
        (made(), "+0.042 [+0.011, +0.073], n = 120"),
        (
            made(mean=0.012, low=-0.011, high=0.035),
            "+0.012 [-0.011, +0.035], n = 120",
        ),
        (made(n=7062), "+0.042 [+0.011, +0.073], n = 7,062"),
        (made(mean=-0.0001, low=-0.0004, high=0.0), "+0.000 [+0.000, +0.000], n = 120"),
        (made(units=35), "+0.042 [+0.011, +0.073], n = 120 in 35 clusters"),
        (
            made(units=5),
            "+0.042 [+0.011, +0.073], n = 120 in 5 clusters; the interval is too narrow, since there are so few",
        ),
        (made(n=9), "+0.042 [+0.011, +0.073], n = 9; the interval is too narrow, since there are so few"),
        (made(unpaired=3), "+0.042 [+0.011, +0.073], n = 120; 3 unpaired"),
        (made(n=1, low=None, high=None), "+0.042, n = 1; too few questions for an interval"),
        (made(n=0, mean=None, unpaired=4), "no question with scores in both; 4 unpaired"),
    ],
)
def test_it_describes_itself_in_a_line(difference, line):
    assert difference.describe() == line


def detectable(values, *clusters, questions, comparisons=1):
    """The smallest difference that questions like these can show."""
    return against_nothing(values, *clusters).detectable(questions, comparisons)


def drawn(generator, documents, of_each, shift=0.0):
    """Differences of questions about documents of different sizes, which differ among documents too."""
    clusters = np.repeat(np.arange(documents), generator.integers(1, 2 * of_each, documents))
    apart = shift + generator.normal(0, 0.1, documents)[clusters] + generator.normal(0, 0.2, len(clusters))
    return apart, clusters


@pytest.mark.parametrize("documents", [20, 60])
def test_such_a_difference_is_shown_four_times_in_five(documents):
    generator = np.random.default_rng(documents)
    known, of_known = drawn(generator, 2_000, 3)
    pilot = against_nothing(known, of_known)
    shown = 0
    for _ in range(400):
        apart, clusters = drawn(generator, documents, 3)
        smallest = pilot.detectable(len(apart))
        assert smallest is not None
        difference = paired_difference(apart + smallest, np.zeros(len(apart)), clusters, resamples=999)
        shown += difference.excludes_zero and (difference.p_value or 0) < 0.05
    # With 20 units the percentile interval is a little narrow, so that a little more is shown.
    assert shown / 400 == pytest.approx(0.8, abs=0.08)


def test_it_is_the_textbooks_figure_where_each_question_stands_for_itself():
    apart = np.random.default_rng(0).normal(0, 0.3, 200)
    deviation = np.std(apart, ddof=1)
    assert detectable(apart, questions=800) == pytest.approx((1.96 + 0.84) * deviation / np.sqrt(800), rel=0.03)


@given(st.integers(10, 1_000), st.integers(2, 60))
def test_more_questions_show_less_and_more_comparisons_need_more(questions, comparisons):
    pilot = against_nothing(np.random.default_rng(2).normal(0, 1, 40), resamples=1_000)
    one = pilot.detectable(questions) or 0
    assert (pilot.detectable(4 * questions) or 0) == pytest.approx(one / 2)
    assert (pilot.detectable(questions, comparisons) or 0) > one


@pytest.mark.parametrize(
    ("apart", "clusters", "questions"),
    [
        ([], None, 30),
        ([0.1, 0.2, -0.1, 0.3, 0.1], None, 30),
        ([0.0] * 40, None, 30),
        ([0.1, -0.2] * 20, None, 5),
        ([0.1, -0.2] * 20, [0, 1, 2, 3] * 10, 40),
    ],
    ids=["nothing known", "five known", "all alike", "five asked", "four documents"],
)
def test_nothing_is_said_where_nothing_is_known(apart, clusters, questions):
    of_each = () if clusters is None else (np.array(clusters),)
    assert detectable(apart, *of_each, questions=questions) is None
