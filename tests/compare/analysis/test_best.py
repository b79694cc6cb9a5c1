"""The best setting, the one to deploy, and sweet spots of curves."""

from typing import Any

import numpy as np
import pytest

from oprag.compare.analysis.best import Best, Curve, best_of, choose_economical
from oprag.errors import OptionError
from tests.compare.analysis.matrices import frame, made


def best(*cells, metric="token_f1") -> Best:
    return best_of(frame(*cells).settings, metric)


def scores(mean, *, seed=0, questions=40) -> Any:
    draw = np.random.default_rng(seed)
    return {str(n): mean + n / 100 + float(draw.normal(0, 0.05)) for n in range(questions)}


def test_the_highest_is_shown_where_every_other_is_far_behind():
    found = best(made(scores(0.2), k=4), made(scores(0.5, seed=1), k=8), made(scores(0.4, seed=2), k=8, order="rank"))
    assert found.significant
    assert (found.setting.values["k"], found.setting.values["order"]) == (8, "source")
    assert found.rivals == ()
    assert [other.baseline.values["k"] for other in found.others] == [8, 4]
    text = found.describe()
    assert text.startswith("k=8, source has the highest token_f1, 0.")
    assert (
        "significantly better than 2 of 2 others (p corrected for 2 comparisons); the closest is k=8, rank (+0." in text
    )


def test_the_highest_is_not_shown_where_another_is_near():
    found = best(*(made(scores(0.5, seed=seed), k=seed + 1) for seed in range(6)), made(scores(0.1), k=9))
    assert not found.significant
    assert len(found.rivals) == 5
    assert found.others[-1].difference.significantly_higher
    assert "significantly better than 1 of 6 others (p corrected for " in found.describe()


def test_one_setting_has_nothing_beside_it():
    found = best(made(scores(0.5), k=8))
    assert not found.significant
    assert found.describe().endswith("n = 40; there is nothing to compare it with")
    with pytest.raises(OptionError, match="no setting has scores for 'rouge_l'"):
        best(made(scores(0.5), k=8), metric="rouge_l")


def scored(scores, order, budget, tokens):
    by_question = {str(number): score for number, score in enumerate(scores)}
    return made(by_question, asked=len(scores), tokens=tokens, order=order, token_budget=budget)


def chosen_of(*cells, clusters=None):
    results = frame(*cells, clusters=clusters)
    setting, why = choose_economical(results.settings, "token_f1")
    return (setting.values["order"], setting.values["token_budget"]), why


NOISE = [0.01 * (number % 5) for number in range(30)]
HIGH = [0.6 + noise for noise in NOISE]


def test_the_fewest_tokens_within_one_standard_error_are_taken():
    # Behind by 0.004, with a standard error of 0.018 over the questions.
    close = [score - 0.004 + 0.1 * (-1) ** number for number, score in enumerate(HIGH)]
    choice, why = chosen_of(scored(HIGH, "source", 900, 900), scored(close, "source", 300, 300))
    assert choice == ("source", 300)
    assert why == (
        "the fewest tokens of the 2 settings within one standard error (of the paired difference) of the highest "
        "token_f1 (0.620 [0.615, 0.625] at token_budget=900)"
    )
    far = [score - 0.03 + 0.1 * (-1) ** number for number, score in enumerate(HIGH)]
    choice, why = chosen_of(scored(HIGH, "source", 900, 900), scored(far, "source", 300, 300))
    assert choice == ("source", 900)
    assert why == "the highest token_f1"


def test_questions_of_one_document_make_a_larger_error():
    # Behind by 0.03 in three documents that differ much, and in each of them by the same in every question.
    close = [score - 0.03 + 0.1 * (number // 10 - 1) for number, score in enumerate(HIGH)]
    cells = scored(HIGH, "source", 900, 900), scored(close, "source", 300, 300)
    assert chosen_of(*cells)[0] == ("source", 900)
    assert chosen_of(*cells, clusters={str(number): number // 10 for number in range(30)})[0] == ("source", 300)


@pytest.mark.parametrize(("tokens", "order"), [(303, "source"), (304, "rank")])
def test_settings_with_as_many_tokens_to_one_part_in_a_hundred_are_alike(tokens, order):
    # A model writes three tokens more.
    choice, why = chosen_of(scored(HIGH, "rank", 300, 300 - 3), scored(HIGH, "source", 300, tokens - 3))
    assert choice == (order, 300)
    assert ("among those within 1 %" in why) is (order == "source")


def test_a_tie_of_one_question_goes_to_source():
    choice, why = chosen_of(scored([1.0], "rank", 200, 190), scored([1.0], "source", 200, 190))
    assert choice == ("source", 200)
    choice, why = chosen_of(scored([1.0], "rank", 200, 190), scored([0.5], "source", 200, 190))
    assert choice == ("rank", 200)
    assert why == "the highest token_f1"


def test_the_highest_is_chosen_if_no_tokens_are_known():
    close = [score - 0.004 + 0.1 * (-1) ** number for number, score in enumerate(HIGH)]
    cells = [
        made(dict(zip(map(str, range(30)), scores, strict=True)), tokens=0, written=0, method=name, model=None)
        for name, scores in (("pipeline:a", close), ("pipeline:b", HIGH))
    ]
    setting, why = choose_economical(frame(*cells).settings, "token_f1")
    assert setting.values["method"] == "pipeline:b"
    assert why == "the highest token_f1; its tokens are unknown"


def test_a_control_is_not_chosen():
    low = [score - 0.3 for score in HIGH]
    assert chosen_of(scored(low, "source", 300, 300), scored(HIGH, "random", 300, 300))[0] == ("source", 300)
    assert chosen_of(scored(HIGH, "random", 300, 300))[0] == ("random", 300)


@pytest.mark.parametrize(("answered", "budget"), [(26, 900), (27, 300)])
def test_a_setting_that_mostly_failed_is_not_chosen(answered, budget):
    cells = scored([1.0] * 30, "source", 900, 900), scored([1.0] * answered, "source", 300, 300)
    choice, why = chosen_of(*cells)
    assert choice == ("source", budget)
    assert ("; 1 setting with scores for too few questions left out" in why) is (budget == 900)


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


def test_one_point_is_no_sweet_spot_and_points_without_scores_play_no_part():
    (spot,) = spots(made({"a": 0.5, "b": 0.7}, k=8), made({"a": None, "b": None}, k=16), made({}, k=32))
    assert spot.sweet_spot is None
    assert [point.values["k"] for point in spot.contenders] == [8]
    expected = "k=8 has the highest token_f1, 0.600 [0.500, 0.700], n = 2; there is nothing to compare it with"
    assert spot.describe() == expected


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


def test_a_setting_whose_questions_each_failed_under_a_seed_is_neither_best_nor_deployed():
    half = [made({"a": 0.5, "b": None}, order="random", seed=1), made({"a": None, "b": 0.5}, order="random", seed=2)]
    results = frame(*half)
    for ask in (results.best, results.deployed):
        with pytest.raises(OptionError, match="no setting has scores for 'token_f1' in all of its runs"):
            ask()
    assert (results.verdicts(), results.curves()) == ([], [])


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
