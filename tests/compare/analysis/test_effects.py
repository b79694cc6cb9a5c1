"""What the order does: pooled over settings, question by question, against cases computed by hand."""

import numpy as np
import pytest

from oprag.compare.analysis.differences import family_of
from oprag.compare.analysis.effects import order_effects, pool_pairs, power_of
from oprag.compare.stats.difference import detectable_difference, paired_difference
from tests.compare.analysis.matrices import made, results_of

QUESTIONS = [f"q{number}" for number in range(12)]


def scores(*values):
    return dict(zip(QUESTIONS, values, strict=False))


def even(value):
    """The score of each of the twelve questions, a little apart from each other."""
    return scores(*(value + number / 100 for number in range(12)))


def test_pooled_differences_are_means_over_settings_for_each_question():
    matrix = results_of(
        made(scores(0.5, 0.9), order="source", k=1),
        made(scores(0.1, 0.7), order="rank", k=1),
        made(scores(0.6, 0.2), order="source", k=2),
        made(scores(0.4, 0.6), order="rank", k=2),
    )
    (pooled,) = pool_pairs(matrix, "token_f1")
    assert (pooled.value, pooled.pairs) == ("rank", [(0, 1), (2, 3)])
    assert pooled.apart == pytest.approx([(0.4 + 0.2) / 2, (0.2 - 0.4) / 2])


def test_it_is_source_minus_the_other_whatever_comes_first_in_the_grid():
    matrix = results_of(
        made(scores(0.1), order="rank"),
        made(scores(0.5), order="random"),
        made(scores(0.4), order="source"),
        described={"grid": [{"order": ["rank", "random", "source"]}]},
    )
    assert [(one.value, one.apart.tolist()) for one in pool_pairs(matrix, "token_f1")] == [
        ("rank", [pytest.approx(0.3)]),
        ("random", [pytest.approx(-0.1)]),
    ]


def test_without_source_order_or_another_there_is_nothing():
    for orders in (["rank", "random"], ["source"]):
        matrix = results_of(*(made(scores(0.1), order=order) for order in orders))
        assert pool_pairs(matrix, "token_f1") == []
        assert order_effects(matrix, "token_f1") == []


def test_a_question_that_a_pair_lacks_is_left_out_and_a_pair_without_questions_too():
    matrix = results_of(
        made(scores(0.5, 0.9), order="source", k=1),
        made(scores(0.1, None), order="rank", k=1),
        made(scores(0.5, 0.9), order="source", k=2),
        made(scores(0.2, 0.1), order="rank", k=2),
        made(scores(None, 0.9), order="source", k=3),
        made(scores(0.2, None), order="rank", k=3),
    )
    (pooled,) = pool_pairs(matrix, "token_f1")
    assert pooled.pairs == [(0, 1), (2, 3)]
    np.testing.assert_allclose(pooled.apart, [0.35, np.nan])


def test_other_axes_are_compared_with_their_first_value():
    matrix = results_of(
        made(scores(0.5), k=8), made(scores(0.9), k=2), described={"grid": [{"k": [2, 8], "order": ["source"]}]}
    )
    assert [(one.value, one.apart.tolist()) for one in pool_pairs(matrix, "token_f1", "k")] == [
        (8, [pytest.approx(0.4)])
    ]


def test_data_sets_are_apart():
    matrix = results_of(
        *(
            made({f"{data} {number}": value for number in range(3)}, order=order, data=data)
            for data, order, value in (
                ("a", "source", 0.4),
                ("a", "rank", 0.3),
                ("b", "source", 0.2),
                ("b", "rank", 0.4),
            )
        )
    )
    for data, wanted in (("a", [0.1] * 3 + [np.nan] * 3), ("b", [np.nan] * 3 + [-0.2] * 3)):
        (pooled,) = pool_pairs(matrix, "token_f1", data=data)
        np.testing.assert_allclose(pooled.apart, wanted)


def test_effects_are_paired_differences_with_what_could_be_seen():
    draw = np.random.default_rng(3)
    cells = [
        made(scores(*draw.normal(0.5, 0.1, 12).tolist()), order=order, k=k)
        for k in (1, 2)
        for order in ("source", "rank", "random")
    ]
    matrix = results_of(*cells)
    family = family_of(matrix, "token_f1")
    effects = order_effects(matrix, "token_f1", family=family)
    assert [(one.order, one.pooled, one.values.get("k"), one.pairs) for one in effects] == [
        ("rank", True, None, 2),
        ("rank", False, 1, 1),
        ("rank", False, 2, 1),
        ("random", True, None, 2),
        ("random", False, 1, 1),
        ("random", False, 2, 1),
    ]
    values = matrix.setting_values("token_f1")
    pooled = ((values[0] - values[1]) + (values[3] - values[4])) / 2
    wanted = paired_difference(pooled, np.zeros(12), matrix.clusters)
    found = effects[0].difference
    assert (found.mean, found.low, found.high) == pytest.approx((wanted.mean, wanted.low, wanted.high))
    assert found.comparisons == 2
    assert found.adjusted_p is not None
    assert wanted.p_value is not None
    assert found.adjusted_p >= wanted.p_value
    assert effects[0].detectable == pytest.approx(
        detectable_difference(pooled, matrix.clusters, questions=12, comparisons=2)
    )
    assert effects[1].difference == family.compare(0, 1)
    assert effects[1].detectable is None
    assert [one for one in order_effects(matrix, "token_f1") if not one.pooled] == []


def test_a_difference_that_is_the_same_in_every_question_is_tied_or_shown():
    tied = results_of(made(even(0.5), order="source"), made(even(0.5), order="rank"))
    (effect,) = order_effects(tied, "token_f1")
    assert effect.difference.tied
    assert effect.detectable is None
    better = results_of(made(even(0.6), order="source"), made(even(0.5), order="rank"))
    (effect,) = order_effects(better, "token_f1")
    assert effect.difference.significantly_higher
    assert effect.difference.mean == pytest.approx(0.1)


def random_scores(data, seed):
    return {f"{data} {number}": float(one) for number, one in enumerate(np.random.default_rng(seed).normal(size=20))}


def test_data_sets_are_no_axis_that_is_compared():
    cells = [made(random_scores(data, k), data=data, k=k) for data in ("a", "b") for k in (4, 8)]
    grid = {"data": ["a", "b"], "k": [4, 8]}
    matrix = results_of(*cells, described={"grid": [grid], "metrics": ["token_f1"]})
    told = [*power_of(matrix, {"a": 100, "b": 100})]
    assert [text.partition(":")[0] for text in told] == ["token_f1 by k of a", "token_f1 by k of b"]
    assert all("with 100 questions, differences of about" in text for text in told)
