"""What the order does: pooled over settings, question by question, against cases computed by hand."""

import numpy as np
import pytest

from oprag.compare.analysis.differences import effects_of
from oprag.compare.stats import paired_difference
from tests.compare.analysis.matrices import made, results_of

QUESTIONS = [f"q{number}" for number in range(12)]


def scores(*values):
    return dict(zip(QUESTIONS, values, strict=False))


def even(value):
    """The score of each of the twelve questions, a little apart from each other."""
    return scores(*(value + number / 100 for number in range(12)))


def means(matrix, *arguments, **options):
    """The value of each effect with its mean difference and number of questions."""
    found = effects_of(matrix, "token_f1", *arguments, **options)
    return [(one.value, pytest.approx(one.difference.mean), one.difference.n) for one in found]


def test_pooled_differences_are_means_over_settings_for_each_question():
    matrix = results_of(
        made(scores(0.5, 0.9), order="source", k=1),
        made(scores(0.1, 0.8), order="rank", k=1),
        made(scores(0.6, 0.2), order="source", k=2),
        made(scores(0.4, 0.6), order="rank", k=2),
    )
    (effect,) = effects_of(matrix, "token_f1")
    assert (effect.value, effect.baseline, effect.pairs) == ("rank", "source", [(0, 1), (2, 3)])
    apart = np.array([-(0.4 + 0.2) / 2, -(0.1 - 0.4) / 2])
    wanted = paired_difference(apart, np.zeros(2))
    assert (effect.difference.mean, effect.difference.low) == pytest.approx((wanted.mean, wanted.low))


def test_it_is_the_other_minus_source_whatever_comes_first_in_the_grid():
    matrix = results_of(
        made(scores(0.1), order="rank"),
        made(scores(0.5), order="random"),
        made(scores(0.4), order="source"),
        described={"grid": [{"order": ["rank", "random", "source"]}]},
    )
    assert means(matrix) == [("rank", -0.3, 1), ("random", 0.1, 1)]


def test_a_question_that_a_pair_lacks_is_left_out_and_a_pair_without_questions_too():
    matrix = results_of(
        made(scores(0.5, 0.9), order="source", k=1),
        made(scores(0.1, None), order="rank", k=1),
        made(scores(0.5, 0.9), order="source", k=2),
        made(scores(0.2, 0.1), order="rank", k=2),
        made(scores(None, 0.9), order="source", k=3),
        made(scores(0.2, None), order="rank", k=3),
    )
    (effect,) = effects_of(matrix, "token_f1")
    assert effect.pairs == [(0, 1), (2, 3)]
    assert effect.difference.n == 1
    assert effect.difference.mean == pytest.approx(-0.35)


def test_other_axes_are_compared_with_their_first_value():
    matrix = results_of(
        made(scores(0.5), k=8), made(scores(0.9), k=2), described={"grid": [{"k": [2, 8], "order": ["source"]}]}
    )
    assert means(matrix, "k") == [(8, -0.4, 1)]


def test_effects_are_corrected_for_one_another():
    draw = np.random.default_rng(3)
    cells = [
        made(scores(*draw.normal(0.5, 0.1, 12).tolist()), order=order, k=k)
        for k in (1, 2)
        for order in ("source", "rank", "random")
    ]
    matrix = results_of(*cells)
    effects = effects_of(matrix, "token_f1")
    assert [(one.value, len(one.pairs)) for one in effects] == [("rank", 2), ("random", 2)]
    values = matrix.setting_values("token_f1")
    pooled = ((values[1] - values[0]) + (values[4] - values[3])) / 2
    wanted = paired_difference(pooled, np.zeros(12), matrix.clusters)
    found = effects[0].difference
    assert (found.mean, found.low, found.high) == pytest.approx((wanted.mean, wanted.low, wanted.high))
    assert found.comparisons == 2
    assert found.adjusted_p is not None
    assert wanted.p_value is not None
    assert found.adjusted_p >= wanted.p_value


def test_a_difference_that_is_the_same_in_every_question_is_tied_or_shown():
    tied = results_of(made(even(0.5), order="source"), made(even(0.5), order="rank"))
    (effect,) = effects_of(tied, "token_f1")
    assert effect.difference.tied
    better = results_of(made(even(0.6), order="source"), made(even(0.5), order="rank"))
    (effect,) = effects_of(better, "token_f1")
    assert effect.difference.significantly_lower
    assert effect.difference.mean == pytest.approx(-0.1)
