"""The family of comparisons: one p-value for a pair wherever it is shown, and nothing counted that cannot differ."""

from typing import Any

import numpy as np

from tests.compare.analysis.matrices import frame, made

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
