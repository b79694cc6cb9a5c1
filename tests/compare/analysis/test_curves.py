"""Sweet spots: named where a peak is, and not where there is noise alone; what a curve is, and what is said of it."""

from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from oprag.compare.analysis.best import Curve
from oprag.errors import OptionError
from tests.compare.analysis.matrices import frame, made

KS = (4, 8, 16, 32, 64)
PEAK = {4: 0.3, 8: 0.4, 16: 0.6, 32: 0.45, 64: 0.35}


def spots(*cells, axis="k", metric="token_f1", clusters=None, **options) -> list[Curve]:
    return frame(*cells, clusters=clusters, **options).curves(axis, metric)


def curve(means, *, seed=0, questions=60, noise=0.1, **values) -> list[Any]:
    """Questions that differ in difficulty far more than the values of k do."""
    draw = np.random.default_rng(seed)
    hard = draw.normal(0, 0.3, questions)
    return [
        made(
            {str(n): float(mean + hard[n] + draw.normal(0, noise)) for n in range(questions)},
            asked=questions,
            k=k,
            **values,
        )
        for k, mean in means.items()
    ]


def scores_of(cell):
    return {question: score for question, score in cell.scores.items() if score is not None}


def test_a_clear_peak_is_named():
    (spot,) = spots(*curve(PEAK))
    assert spot.sweet_spot is not None
    assert spot.sweet_spot.values["k"] == 16
    assert spot.contenders == (spot.sweet_spot,)
    assert [point.values["k"] for point in spot.points] == list(KS)
    assert sorted(one.baseline.values["k"] for one in spot.others if one.difference.significantly_higher) == [
        4,
        8,
        32,
        64,
    ]
    assert (spot.axis, spot.metric) == ("k", "token_f1")
    assert "k" not in spot.values
    assert spot.values["order"] == "source"


def test_a_plateau_has_its_contenders_and_no_best():
    (spot,) = spots(*curve({4: 0.1, 8: 0.5, 16: 0.51, 32: 0.5, 64: 0.1}))
    assert spot.sweet_spot is None
    assert [point.values["k"] for point in spot.contenders] == [8, 16, 32]
    assert spot.describe().startswith("flat at k=8, k=16, k=32: k=8 has the highest token_f1, 0.")
    assert "significantly better than 2 of 4 others (p corrected for " in spot.describe()


def test_every_other_point_must_be_shown_to_be_worse():
    # Two equal points far above the rest: one of them is the highest.
    (spot,) = spots(*curve({4: 0.1, 8: 0.1, 16: 0.8, 32: 0.8}))
    assert spot.sweet_spot is None
    assert {point.values["k"] for point in spot.contenders} == {16, 32}


def test_questions_of_one_document_are_one():
    cells = curve(PEAK, questions=40)
    alone = spots(*cells)[0]
    together = spots(*cells, clusters={str(number): number // 8 for number in range(40)})[0]
    assert alone.sweet_spot is not None
    # Five documents cannot show anything: 2 / 2^5 is above 0.05.
    assert together.sweet_spot is None
    assert len(together.contenders) == len(KS)


def test_p_values_are_corrected_for_the_points_of_the_curve():
    draw = np.random.default_rng(0)
    better = {str(n): 0.5 + n / 100 for n in range(20)}
    others = {k: {key: value - float(draw.normal(0.12, 0.2)) for key, value in better.items()} for k in KS[1:]}
    two = spots(made(better, k=4), made(others[8], k=8))[0]
    five = spots(made(better, k=4), *(made(scores, k=k) for k, scores in others.items()))[0]
    assert (two.comparisons, five.comparisons) == (1, 4)
    assert two.others[0].difference.adjusted_p == two.others[0].difference.p_value
    apart, same = (replace(one.others[0].difference, adjusted_p=None, comparisons=1) for one in (five, two))
    assert apart == same
    found = [(one.difference.adjusted_p or 0.0, one.difference.p_value or 0.0) for one in five.others]
    assert all(adjusted >= alone for adjusted, alone in found)
    assert sum(adjusted > 1.5 * alone for adjusted, alone in found) >= 2


def test_one_point_is_no_sweet_spot():
    (spot,) = spots(made({"a": 0.5, "b": 0.7}, k=8))
    assert spot.sweet_spot is None
    assert [point.values["k"] for point in spot.contenders] == [8]
    assert spot.describe() == (
        "k=8 has the highest token_f1, 0.600 [0.500, 0.700], n = 2; there is nothing to compare it with"
    )


def test_points_without_scores_play_no_part():
    cells = curve({8: 0.9, 16: 0.3})
    (spot,) = spots(*cells, made(dict.fromkeys(map(str, range(60))), k=128), made({}, k=256))
    assert spot.sweet_spot is not None
    assert spot.sweet_spot.values["k"] == 8
    assert [point.values["k"] for point in spot.points] == [8, 16]


def test_points_are_held_against_each_other_over_the_questions_that_both_have():
    # The hard questions failed at k=4, whose own mean is therefore the highest.
    full = {str(n): (0.9 if n < 20 else 0.1) + n / 1_000 for n in range(40)}
    easy = {question: value - 0.1 if int(question) < 20 else None for question, value in full.items()}
    (spot,) = spots(made(easy, k=4), made(full, k=16))
    four, sixteen = spot.points
    assert four.scores["token_f1"].mean is not None
    assert sixteen.scores["token_f1"].mean is not None
    assert four.scores["token_f1"].mean > sixteen.scores["token_f1"].mean
    assert spot.sweet_spot is sixteen
    (behind,) = spot.others
    assert behind.difference.n == 20
    assert behind.difference.mean == pytest.approx(0.1)


def test_a_point_that_is_better_where_they_meet_is_not_shown_to_be_worse():
    def some(**levels):
        return {f"{part}{n}": level + n / 1_000 for part, level in levels.items() for n in range(20)}

    # The first is above two others, the second above it, over the questions that each two have.
    cells = [some(p=0.2, q=0.8, r=0.8), some(p=0.8, s=0.2), some(q=0.2, s=0.8), some(r=0.2, t=0.5)]
    (spot,) = spots(*(made(scores, k=k) for k, scores in enumerate(cells, 1)))
    assert spot.setting.values["k"] == 1
    assert spot.sweet_spot is None
    assert [point.values["k"] for point in spot.contenders] == [1, 2]


def test_points_without_a_common_question_are_not_told_apart():
    (spot,) = spots(made({str(n): 0.9 for n in range(20)}, k=4), made({f"x{n}": 0.1 for n in range(20)}, k=8))
    assert spot.sweet_spot is None
    assert len(spot.contenders) == 2
    assert spot.describe().endswith("the closest is k=8 (–)")


def test_seeds_are_averaged_to_one_point():
    cells = [cell for seed in (1, 2, 3) for cell in curve(PEAK, seed=seed, order="random")]
    cells = [made(scores_of(cell), k=cell.values["k"], order="random", seed=n // 5) for n, cell in enumerate(cells)]
    (spot,) = spots(*cells)
    assert len(spot.points) == 5
    assert spot.points[0].cells == 3
    of_four = [scores_of(cell) for cell in cells if cell.values["k"] == 4]
    assert spot.points[0].scores["token_f1"].mean == pytest.approx(fmean(fmean(one.values()) for one in of_four))
    assert {one.difference.n for one in spot.others} == {60}


def test_values_stand_from_small_to_large_and_none_where_it_belongs():
    cells = [made({"a": 0.1, "b": 0.2}, k=k) for k in (None, 32, 4)]
    assert [point.values["k"] for point in spots(*cells)[0].points] == [4, 32, None]
    cells = [made({"a": 0.1, "b": 0.2}, redundancy_threshold=t) for t in (None, 0.9, 0.5)]
    assert [point.values["redundancy_threshold"] for point in spots(*cells, axis="redundancy_threshold")[0].points] == [
        0.5,
        0.9,
        None,
    ]
    assert "redundancy_threshold=none" in spots(*cells, axis="redundancy_threshold")[0].describe()


def test_no_threshold_is_on_the_curve_of_each_number_of_chunks_that_are_kept_whatever_it_says():
    cells = [made({"a": 0.1, "b": 0.2}, similarity_threshold=None)]
    cells += [
        made({"a": 0.1, "b": 0.2}, similarity_threshold=threshold, min_chunks=keep)
        for threshold in (0.5, 0.6)
        for keep in (1, 2)
    ]
    found = spots(*cells, axis="similarity_threshold")
    assert [
        (spot.values["min_chunks"], [point.values["similarity_threshold"] for point in spot.points]) for spot in found
    ] == [
        (1, [None, 0.5, 0.6]),
        (2, [None, 0.5, 0.6]),
    ]


def test_settings_in_which_the_axis_has_no_effect_are_on_no_curve():
    (spot,) = spots(*curve(PEAK), made({"0": 1.0}, method="closed_book"))
    assert len(spot.points) == 5
    assert spot.values["method"] == "stuff"


def test_the_sentence_has_the_numbers_of_the_nearest():
    (spot,) = spots(*curve(PEAK))
    nearest = min(spot.others, key=lambda one: one.difference.mean or 0.0)
    text = spot.describe()
    assert text.startswith("sweet spot: k=16 has the highest token_f1, 0.")
    assert text.endswith(f"the closest is k={nearest.baseline.values['k']} ({nearest.difference} *)")


@pytest.mark.parametrize(
    ("axis", "metric", "message"),
    [
        ("order", "token_f1", "are not numbers"),
        ("seed", "token_f1", "averaged"),
        ("ks", "token_f1", "unknown axis"),
        ("k", "inverted_pairs", "how chunks are ordered"),
        ("k", "paper_token_usage", "counts tokens"),
        ("k", "long_context_share", "counts tokens"),
        ("k", "rouge_l", "no scores of 'rouge_l'"),
        ("k", "f1", "unknown metric 'f1'; metrics with scores: token_f1"),
    ],
)
def test_what_has_no_best_is_refused(axis, metric, message):
    with pytest.raises(OptionError, match=message):
        spots(*curve(PEAK), axis=axis, metric=metric)
