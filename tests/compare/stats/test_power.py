import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.stats.difference import paired_difference
from oprag.compare.stats.power import detectable_difference


def drawn(generator, documents, of_each, shift=0.0):
    """Differences of questions about documents of different sizes, which differ among documents too."""
    clusters = np.repeat(np.arange(documents), generator.integers(1, 2 * of_each, documents))
    apart = shift + generator.normal(0, 0.1, documents)[clusters] + generator.normal(0, 0.2, len(clusters))
    return apart, clusters


@pytest.mark.parametrize("documents", [20, 60])
def test_such_a_difference_is_shown_four_times_in_five(documents):
    generator = np.random.default_rng(documents)
    known, of_known = drawn(generator, 2_000, 3)
    shown = 0
    for _ in range(400):
        apart, clusters = drawn(generator, documents, 3)
        smallest = detectable_difference(known, of_known, questions=len(apart))
        assert smallest is not None
        difference = paired_difference(apart + smallest, np.zeros(len(apart)), clusters, resamples=999)
        shown += difference.excludes_zero and (difference.p_value or 0) < 0.05
    # With 20 units the percentile interval is a little narrow, so that a little more is shown.
    assert shown / 400 == pytest.approx(0.8, abs=0.06)


def test_it_is_the_textbooks_figure_where_each_question_stands_for_itself():
    apart = np.random.default_rng(0).normal(0, 0.3, 50)
    deviation = np.std(apart, ddof=1)
    found = detectable_difference(apart, questions=200)
    assert found == pytest.approx((1.959964 + 0.841621) * deviation / np.sqrt(200), rel=1e-6)


def test_a_pilot_says_what_the_whole_set_can_show():
    generator = np.random.default_rng(1)
    whole = [detectable_difference(generator.normal(0, 1, 400), questions=400) for _ in range(50)]
    pilots = [detectable_difference(generator.normal(0, 1, 30), questions=400) for _ in range(50)]
    assert np.mean([one or 0 for one in pilots]) == pytest.approx(np.mean([one or 0 for one in whole]), rel=0.05)


@given(st.integers(10, 1_000), st.integers(2, 60))
def test_more_questions_show_less_and_more_comparisons_need_more(questions, comparisons):
    apart = np.random.default_rng(2).normal(0, 1, 40)
    one = detectable_difference(apart, questions=questions) or 0
    assert (detectable_difference(apart, questions=4 * questions) or 0) == pytest.approx(one / 2)
    assert (detectable_difference(apart, questions=questions, comparisons=comparisons) or 0) > one


def test_questions_without_a_difference_play_no_part():
    apart = np.array([0.1, np.nan, -0.2, 0.3, 0.0, 0.1, -0.1, np.nan, 0.2])
    clusters = np.arange(len(apart))
    there = ~np.isnan(apart)
    assert detectable_difference(apart, clusters, questions=20) == detectable_difference(apart[there], questions=20)


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
    of_each = None if clusters is None else np.array(clusters)
    assert detectable_difference(np.array(apart, dtype=float), of_each, questions=questions) is None
