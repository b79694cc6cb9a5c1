"""Differences: which settings are a pair, and what is said about it."""

from dataclasses import replace
from typing import Any

from oprag.compare.results import Results
from oprag.compare.stats import paired_difference
from tests.compare.analysis.matrices import made, results_of
from tests.compare.stats.oracles import as_pair

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


def test_a_control_without_a_context_is_held_against_every_context():
    cells = [made(LOW, k=k, method="stuff") for k in (4, 8)] + [made(HIGH, method="closed_book")]
    pairs = found(results_of(*cells), axis="method")
    assert [(pair.baseline.values[pair.axis], pair.setting.values[pair.axis]) for pair in pairs] == [
        ("stuff", "closed_book")
    ] * 2
    assert all("k" not in pair.setting.values for pair in pairs)
    assert [pair.baseline.values["k"] for pair in pairs] == [4, 8]


def test_settings_that_differ_in_more_are_no_pair():
    cells = [made(LOW, k=4, order="source"), made(LOW, k=8, order="rank"), made(LOW, k=4, order="rank", data="other")]
    assert found(results_of(*cells)) == []


def test_failures_leave_questions_without_a_counterpart():
    (pair,) = found(results_of(made(LOW), made({**HIGH, "3": None}, order="rank")))
    assert (pair.difference.n, pair.difference.unpaired) == (19, 1)


def test_without_any_score_on_one_side_there_is_no_mean_and_no_p():
    failed = dict.fromkeys(LOW)
    (pair,) = found(results_of(made(LOW), made(failed, order="rank")))
    assert (pair.difference.mean, pair.difference.adjusted_p) == (None, None)


def test_the_first_value_is_the_first_of_the_grid():
    cells = [made(LOW, order="source", source_ranking="score_sum"), made(HIGH, order="rank")]
    described = {"grid": [{"source_ranking": ["score_sum"], "order": ["rank", "source"]}]}
    (pair,) = found(results_of(*cells, described=described))
    assert (pair.baseline.values[pair.axis], pair.setting.values[pair.axis]) == ("rank", "source")
