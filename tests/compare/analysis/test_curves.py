"""Sweet spots: named where a peak is, and not where there is noise alone; what a curve is, and what is said of it."""

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
    ] == [(1, [None, 0.5, 0.6]), (2, [None, 0.5, 0.6])]


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
