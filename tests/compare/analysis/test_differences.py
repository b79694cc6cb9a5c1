"""Differences: which settings are a pair, what the order does, slices, earlier results, and one p-value for a pair."""

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

from oprag.compare.analysis.differences import ComparisonFamily, changes_since, effects_of, highest, slices_of
from oprag.compare.results import Results
from oprag.compare.stats import max_t_p_values, paired_difference
from oprag.errors import ExperimentError, OptionError
from tests.compare.analysis.matrices import frame, made, results_of
from tests.compare.analysis.test_verdicts import scores
from tests.compare.test_stats import as_pair

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
    results = results_of(made(LOW, order="source"), made(HIGH, order="rank"))
    (pair,) = found(results)
    assert bare(pair.difference) == paired_difference(*as_pair(HIGH, LOW))
    assert pair.difference.mean > 0.25
    assert (pair.metric, pair.axis) == ("token_f1", "order")
    assert (found(results, metrics=["rouge_l"]), found(results, metrics=["token_f1"])) == ([], [pair])
    with pytest.raises(OptionError, match=r"unknown metric 'token_f'; did you mean 'token_f1'\?"):
        found(results, metrics=["token_f"])


def test_a_control_without_a_context_is_held_against_every_context():
    cells = [made(LOW, k=k, method="stuff") for k in (4, 8)] + [made(HIGH, method="closed_book")]
    pairs = found(results_of(*cells), axis="method")
    assert [(pair.baseline.values[pair.axis], pair.setting.values[pair.axis]) for pair in pairs] == [
        ("stuff", "closed_book")
    ] * 2
    assert all("k" not in pair.setting.values for pair in pairs)
    assert [pair.baseline.values["k"] for pair in pairs] == [4, 8]


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


QUESTIONS = [f"q{number}" for number in range(12)]


def scored(*values):
    return dict(zip(QUESTIONS, values, strict=False))


def even(value):
    """The score of each of the twelve questions, a little apart from each other."""
    return scored(*(value + number / 100 for number in range(12)))


def means(matrix, *arguments, **options):
    """The value of each effect with its mean difference and number of questions."""
    found = effects_of(matrix, "token_f1", *arguments, **options)
    return [(one.value, pytest.approx(one.difference.mean), one.difference.n) for one in found]


def test_pooled_differences_are_means_over_settings_for_each_question():
    matrix = results_of(
        made(scored(0.5, 0.9), order="source", k=1),
        made(scored(0.1, 0.8), order="rank", k=1),
        made(scored(0.6, 0.2), order="source", k=2),
        made(scored(0.4, 0.6), order="rank", k=2),
    )
    (effect,) = effects_of(matrix, "token_f1")
    assert (effect.value, effect.baseline, effect.pairs) == ("rank", "source", [(0, 1), (2, 3)])
    apart = np.array([-(0.4 + 0.2) / 2, -(0.1 - 0.4) / 2])
    wanted = paired_difference(apart, np.zeros(2))
    assert (effect.difference.mean, effect.difference.low) == pytest.approx((wanted.mean, wanted.low))


def test_it_is_the_other_minus_source_whatever_comes_first_in_the_grid():
    matrix = results_of(
        made(scored(0.1), order="rank"),
        made(scored(0.5), order="random"),
        made(scored(0.4), order="source"),
        described={"grid": [{"order": ["rank", "random", "source"]}]},
    )
    assert means(matrix) == [("rank", -0.3, 1), ("random", 0.1, 1)]


def test_a_question_that_a_pair_lacks_is_left_out_and_a_pair_without_questions_too():
    matrix = results_of(
        made(scored(0.5, 0.9), order="source", k=1),
        made(scored(0.1, None), order="rank", k=1),
        made(scored(0.5, 0.9), order="source", k=2),
        made(scored(0.2, 0.1), order="rank", k=2),
        made(scored(None, 0.9), order="source", k=3),
        made(scored(0.2, None), order="rank", k=3),
    )
    (effect,) = effects_of(matrix, "token_f1")
    assert effect.pairs == [(0, 1), (2, 3)]
    assert effect.difference.n == 1
    assert effect.difference.mean == pytest.approx(-0.35)


def test_other_axes_are_compared_with_their_first_value():
    matrix = results_of(
        made(scored(0.5), k=8), made(scored(0.9), k=2), described={"grid": [{"k": [2, 8], "order": ["source"]}]}
    )
    assert means(matrix, "k") == [(8, -0.4, 1)]


def test_a_difference_that_is_the_same_in_every_question_is_tied_or_shown():
    tied = results_of(made(even(0.5), order="source"), made(even(0.5), order="rank"))
    (effect,) = effects_of(tied, "token_f1")
    assert effect.difference.tied
    better = results_of(made(even(0.6), order="source"), made(even(0.5), order="rank"))
    (effect,) = effects_of(better, "token_f1")
    assert effect.difference.significantly_lower
    assert effect.difference.mean == pytest.approx(-0.1)


def matrix_of(apart, about, *, documents=None):
    """Two orders, of which rank is ahead by so much in each question."""
    questions = [f"q{number}" for number in range(len(apart))]
    return results_of(
        made(dict.fromkeys(questions, 0.5), order="source"),
        made(dict(zip(questions, (0.5 + one for one in apart), strict=True)), order="rank"),
        about=dict(zip(questions, about, strict=True)),
        documents=documents,
    )


def test_each_slice_has_the_difference_of_its_questions():
    about = [{"spread": n > 1, "year": (30, 4, 500, 4)[n], "kind": "bbaa"[n]} for n in range(4)]
    matrix = matrix_of([0.0, -0.1, 0.3, 0.1], about)
    found = slices_of(matrix, "spread", "token_f1")
    (spread,), (close,) = found.values()
    assert [*found] == [True, False]
    assert [*slices_of(matrix, "year", "token_f1")] == [4, 30, 500]
    assert [*slices_of(matrix, "kind", "token_f1")] == ["b", "a"]
    assert {(one.value, one.baseline) for one in (spread, close)} == {("rank", "source")}
    assert [one.difference.n for one in (spread, close)] == [2, 2]
    assert [one.difference.mean for one in (spread, close)] == pytest.approx([0.2, -0.05])
    assert spread.difference.comparisons == 2


def test_what_cannot_be_sliced_gives_nothing():
    many = matrix_of([0.1] * 9, [{"type": f"kind {number}", "always": True} for number in range(9)])
    assert slices_of(many, "type", "token_f1") == slices_of(many, "always", "token_f1") == {}
    with pytest.raises(OptionError, match="did you mean 'type'"):
        slices_of(many, "tpye", "token_f1")


def test_results_slice_one_data_set():
    about = {"q0": {"type": "a"}, "q1": {"type": "b"}}
    cells = [made({"q0": 0.5, "q1": 0.4}, order=order) for order in ("source", "rank")]
    results = Results(results_of(*cells, about=about), "results.db")
    assert [*results.slices("type")] == ["a", "b"]
    assert results.slices("type", axis="k") == {"a": [], "b": []}
    other = made({"q2": 0.5}, data="other")
    with pytest.raises(OptionError, match=r"several data sets .*slices\(\)"):
        Results(results_of(*cells, other, about=about), "results.db").slices("type")


def changes(new, old, metric="token_f1"):
    return changes_since(results_of(*new, resamples=1_000), results_of(*old, resamples=1_000), metric)


def test_a_setting_that_became_worse_is_told_and_others_are_not():
    old = [made(scores(0.6, seed=1), order="source"), made(scores(0.5, seed=2), order="rank")]
    new = [made(scores(0.5, 0.2, seed=3), order="rank"), made(scores(0.4, seed=4), order="source")]
    rank, source = changes(new, old)
    assert rank.setting.values["order"] == "rank"
    assert not rank.difference.significantly_lower
    assert source.difference.significantly_lower
    assert source.difference.mean == pytest.approx(-0.2, abs=0.01)
    assert source.difference.comparisons == 2
    # Better is not worse.
    assert not any(one.difference.significantly_lower for one in changes(old, new))


def test_only_questions_of_both_count_whatever_their_order():
    some = scores(0.5)
    names = list(some)
    old = {name: some[name] + 0.1 for name in reversed(names[4:])}
    (told,) = changes([made(some)], [made({**old, "gone": 9.0})])
    assert told.difference.n == len(names) - 4
    assert told.difference.mean == pytest.approx(-0.1)


def test_settings_of_one_alone_are_left_out_and_nothing_in_common_is_refused():
    old = [made(scores(0.5), k=4), made(scores(0.5), k=8)]
    assert [one.setting.values["k"] for one in changes([made(scores(0.4), k=8), made(scores(0.4), k=9)], old)] == [8]
    with pytest.raises(ExperimentError, match="no setting of 'x'"):
        changes([made(scores(0.5), k=16)], old)
    with pytest.raises(ExperimentError, match="no question has scores for token_f1 in both"):
        changes([made({"other": 0.5}, k=4)], old)
    with pytest.raises(ExperimentError, match="no question has scores for rouge_l in both"):
        changes_since(results_of(*old, metric="rouge_l"), results_of(*old), "rouge_l")


KS = (4, 16, 64)
ORDERS = ("source", "rank", "reverse_rank")


def graded(*, noise: float, questions: int = 24) -> Any:
    """Longer contexts score higher, and orders differ by chance alone."""
    draw = np.random.default_rng(5)
    hard = draw.normal(0, 0.3, questions)
    return [
        made(
            {str(n): float(hard[n] + number / 8 + draw.normal(0, noise)) for n in range(questions)},
            asked=questions,
            k=k,
            order=order,
        )
        for order in ORDERS
        for number, k in enumerate(KS)
    ]


def place(values: Any) -> tuple[Any, Any]:
    return values["order"], values["k"]


def shown_p_values(results: Any) -> dict[frozenset[tuple[Any, Any]], set[float | None]]:
    """The corrected p-value of each pair of settings, in everything that shows one."""
    found: dict[frozenset[tuple[Any, Any]], set[float | None]] = {}
    best = results.best()
    shown = [*best.others, *(one for curve in results.curves("k") for one in curve.others)]
    shown += [one for axis in ("order", "k") for one in results.differences(axis, ["token_f1"])]
    for one in shown:
        both = frozenset({place(one.setting.values), place(one.baseline.values)})
        found.setdefault(both, set()).add(one.difference.adjusted_p)
    return found


def test_a_pair_has_one_p_value_wherever_it_is_shown():
    found = shown_p_values(frame(*graded(noise=0.2)))
    assert len(found) > 15
    assert all(len(values) == 1 for values in found.values()), found


def test_the_best_setting_is_not_doubted_where_its_curve_has_a_sweet_spot():
    # Coverage: the same chunks in three orders, so that their scores are equal by construction.
    cells = [
        made({str(n): n / 20 + gain for n in range(7)}, k=k, order=order)
        for order in ORDERS
        for k, gain in ((4, 0.0), (16, 0.2), (64, 0.5))
    ]
    results = frame(*cells)
    best = results.best()
    spots = results.curves("k")
    # Seven questions that are all better in all three pairs of contexts that differ at all: p = 2 / 2^7.
    assert best.comparisons == 3
    assert best.significant
    assert [one.values["order"] for one in best.tied] == ["rank", "reverse_rank"]
    assert {one.difference.adjusted_p for one in best.others} == {2 / 2**7}
    assert [spot.sweet_spot is not None and spot.sweet_spot.values["k"] for spot in spots] == [64] * 3
    assert {one.difference.adjusted_p for spot in spots for one in spot.others} == {2 / 2**7}
    assert "tied on every question with k=64, rank and k=64, reverse_rank" in best.describe()
    assert all("(p corrected for 3 comparisons)" in one.describe() for one in (best, *spots))
    # Nothing is said of the pairs that cannot differ, and they are in no family.
    assert {pair.difference.adjusted_p for pair in results.differences("order")} == {None}


def test_settings_that_are_all_the_same_leave_nothing_to_compare():
    results = frame(*(made({"a": 0.1, "b": 0.5}, k=1, order=order) for order in ORDERS))
    best = results.best()
    assert not best.significant
    assert (best.others, best.rivals, best.comparisons) == ((), (), 0)
    assert best.describe() == (
        "source has the highest token_f1, 0.300 [0.100, 0.500], tied on every question with rank and reverse_rank"
    )
