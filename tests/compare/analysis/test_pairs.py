"""Differences: which settings are a pair, and what is said about it."""

from dataclasses import replace
from typing import Any

import pytest

from oprag.compare.results import Results
from oprag.compare.stats import paired_difference
from oprag.errors import OptionError
from tests.compare.analysis.matrices import made, results_of
from tests.compare.stats.oracles import as_pair, holm

LOW = {str(number): number / 40 for number in range(20)}
HIGH = {key: value + 0.25 + 0.01 * (int(key) % 3) for key, value in LOW.items()}


def found(matrix, **options) -> Any:
    return Results(matrix, "none.db").differences(**options)


def bare(difference):
    """A difference as it is by itself."""
    return replace(difference, adjusted_p=None, comparisons=1)


def shown(pairs):
    return [
        (pair.baseline.values[pair.axis], pair.setting.values[pair.axis], pair.setting.values["k"]) for pair in pairs
    ]


def test_each_order_is_held_against_the_first_with_all_else_equal():
    cells = [made(LOW, k=k, order=order) for k in (4, 8) for order in ("source", "rank", "reverse_rank")]
    pairs = found(results_of(*cells))
    assert shown(pairs) == [
        ("source", "rank", 4),
        ("source", "reverse_rank", 4),
        ("source", "rank", 8),
        ("source", "reverse_rank", 8),
    ]


def test_the_difference_is_that_of_the_setting_minus_the_first():
    (pair,) = found(results_of(made(LOW, order="source"), made(HIGH, order="rank")))
    assert bare(pair.difference) == paired_difference(*as_pair(HIGH, LOW))
    assert pair.difference.mean > 0.25
    assert (pair.metric, pair.axis) == ("token_f1", "order")


def test_p_values_are_adjusted_for_the_family():
    slightly = {key: value + (0.01 if int(key) % 3 else -0.01) for key, value in LOW.items()}
    results = results_of(made(LOW), made(HIGH, order="rank"), made(slightly, order="reverse_rank"))
    pairs = found(results)
    # The highest is held against both others, so that one comparison more belongs to the family.
    assert {pair.difference.comparisons for pair in pairs} == {3}
    p_values = {pair.setting.values["order"]: pair.difference.p_value for pair in pairs}
    p_values["highest"] = paired_difference(*as_pair(HIGH, slightly)).p_value
    # As strict as Holm's correction at most, but for the draws.
    assert all(
        p_values[order] <= pair.difference.adjusted_p <= holm(p_values)[order] + 0.02
        for pair in pairs
        for order in [pair.setting.values["order"]]
    )


def test_another_axis():
    cells = [made(LOW, k=k, order=order) for k in (4, 8, 16) for order in ("source", "rank")]
    assert shown(found(results_of(*cells), axis="k"))[:2] == [(4, 8, 8), (4, 8, 8)]


def test_a_control_without_a_context_is_held_against_every_context():
    cells = [made(LOW, k=k, method="stuff") for k in (4, 8)] + [made(HIGH, method="closed_book")]
    pairs = found(results_of(*cells), axis="method")
    assert [(pair.baseline.values[pair.axis], pair.setting.values[pair.axis]) for pair in pairs] == [
        ("stuff", "closed_book")
    ] * 2
    assert all("k" not in pair.setting.values for pair in pairs)
    assert [pair.baseline.values["k"] for pair in pairs] == [4, 8]


def test_a_context_that_is_held_against_a_control_says_which_it_is():
    cells = [made(HIGH, method="closed_book"), *(made(LOW, k=k, method="stuff") for k in (4, 8))]
    pairs = found(results_of(*cells), axis="method")
    assert [
        (pair.baseline.values[pair.axis], pair.setting.values[pair.axis], pair.setting.values["k"]) for pair in pairs
    ] == [
        ("closed_book", "stuff", 4),
        ("closed_book", "stuff", 8),
    ]


def test_settings_that_differ_in_more_are_no_pair():
    cells = [made(LOW, k=4, order="source"), made(LOW, k=8, order="rank"), made(LOW, k=4, order="rank", data="other")]
    assert found(results_of(*cells)) == []


def test_data_sets_are_apart():
    cells = [made(LOW, data=data, order=order) for data in ("a", "b") for order in ("source", "rank")]
    assert [pair.setting.values["data"] for pair in found(results_of(*cells))] == ["a", "b"]


def test_seeds_are_one_side_of_a_pair():
    cells = [made(LOW), *(made(HIGH, order="random", seed=seed) for seed in (1, 2, 3))]
    (pair,) = found(results_of(*cells))
    assert pair.difference.n == 20
    assert pair.difference.mean == pytest.approx(paired_difference(*as_pair(HIGH, LOW)).mean)


def test_failures_leave_questions_without_a_counterpart():
    (pair,) = found(results_of(made(LOW), made({**HIGH, "3": None}, order="rank")))
    assert (pair.difference.n, pair.difference.unpaired) == (19, 1)


def test_without_any_score_on_one_side_there_is_no_mean_and_no_p():
    failed = dict.fromkeys(LOW)
    (pair,) = found(results_of(made(LOW), made(failed, order="rank")))
    assert (pair.difference.mean, pair.difference.adjusted_p) == (None, None)


def test_some_metrics_alone():
    results = results_of(made(LOW), made(HIGH, order="rank"))
    assert found(results, metrics=["rouge_l"]) == []
    assert len(found(results, metrics=["token_f1"])) == 1
    with pytest.raises(OptionError, match=r"unknown metric 'token_f'; did you mean 'token_f1'\?"):
        found(results, metrics=["token_f"])


def test_the_first_value_is_the_first_of_the_grid():
    cells = [made(LOW, order="source", source_ranking="score_sum"), made(HIGH, order="rank")]
    described = {"grid": [{"source_ranking": ["score_sum"], "order": ["rank", "source"]}]}
    (pair,) = found(results_of(*cells, described=described))
    assert (pair.baseline.values[pair.axis], pair.setting.values[pair.axis]) == ("rank", "source")


def test_many_differences_can_be_told_from_chance():
    # Behind Holm's correction no p-value of 10,000 samples would be below 0.06 here.
    cells = [made(scores, k=k, order=order) for k in range(600) for scores, order in ((LOW, "source"), (HIGH, "rank"))]
    pairs = found(results_of(*cells))
    assert len(pairs) == 600
    assert max(pair.difference.adjusted_p for pair in pairs) < 0.05
