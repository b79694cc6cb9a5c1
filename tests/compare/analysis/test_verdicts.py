"""Verdicts say what is shown and nothing else, in words."""

from dataclasses import replace
from typing import Any

import numpy as np

from oprag.compare.analysis.verdicts import ORDER, Verdict, length_curves
from oprag.compare.results import Results
from tests.compare.analysis.matrices import frame, made, results_of

COUNT = 24
LENGTH = "How much context is worth its tokens?"


def results(*cells, **options):
    return frame(*cells, resamples=1_000, **options)


def scores(mean, spread=0.0, seed=0):
    """The score of each question: a mean with a spread, or the same for all but for a hair."""
    drawn = np.random.default_rng(seed).normal(0, spread or 0.001, COUNT)
    return {f"q{number}": float(mean + one) for number, one in enumerate(drawn)}


def said(found, question, metric=None) -> Verdict:
    told: Verdict
    (told,) = [one for one in found.verdicts(metric) if one.question == question]
    return told


def of_orders(metric="token_f1", **orders):
    cells = [made(one, order=order) for order, one in orders.items()]
    return said(Results(results_of(*cells, metric=metric, resamples=1_000), "none.db"), ORDER, metric)


def test_a_length_that_was_not_varied_has_no_curve():
    found = results(*(made(scores(0.5), k=k, order=order) for k, order in ((4, "source"), (8, "source"), (4, "rank"))))
    assert [len(one.points) for one in length_curves(found.matrix, "token_f1")] == [2]
    told = said(results(made(scores(0.5), k=8), made(scores(0.5), k=16, order="rank")), LENGTH)
    assert (told.answer, told.text) == (
        *("Not tested", "No two settings with scores for token_f1 differ only in context length."),
    )


def test_source_order_that_is_shown_to_be_better_than_every_other_helps():
    told = of_orders(source=scores(0.6), rank=scores(0.5, seed=1), random=scores(0.4, seed=2))
    assert told.answer == "Yes"
    assert told.text.startswith("Compared with source: rank -0.100 [")
    assert "] * and random -0.200 [" in told.text
    assert told.text.endswith("] * (* significant).")


def test_better_than_some_is_in_part():
    told = of_orders(source=scores(0.6, 0.1), rank=scores(0.3, seed=1), random=scores(0.6, 0.1, seed=2))
    assert told.answer == "Partly"
    assert "rank -0.288 [-0.319, -0.254] * and random +0.0" in told.text
    assert told.text.endswith("] (* significant).")


def test_worse_than_some_hurts():
    told = of_orders(source=scores(0.4), rank=scores(0.5, seed=1), random=scores(0.3, seed=2))
    assert told.answer == "It hurts"
    assert told.text.startswith("Compared with source: rank +0.100 [")


def test_no_difference_is_not_shown_with_its_interval():
    told = of_orders(source=scores(0.5, 0.1), rank=scores(0.5, 0.1, seed=1))
    assert told.answer == "No significant difference"
    assert told.text.startswith("Compared with source: rank ")
    assert "*" not in told.text
    assert told.describe() == f"No significant difference. {told.text}"


def test_what_no_order_can_change_was_not_asked():
    same = scores(0.5)
    told = of_orders("evidence_coverage", source=same, rank=same)
    assert told.answer == "Not tested"
    assert told.text == "Order cannot change evidence_coverage. A model's answers can still differ."
    told = of_orders(source=same, rank=same, random=same)
    assert (told.answer, told.text) == ("No", "For each question, token_f1 is the same in every order.")
    assert of_orders(rank=same).answer == "Not tested"


def test_pairs_without_a_common_question_tell_nothing():
    first, second = ({f"q{number}": 0.5 for number in range(start, start + 20)} for start in (0, 20))
    for axis, asked in (("order", ORDER), ("model", "Does model matter?")):
        values: list[dict[str, Any]] = [{axis: "source"}, {axis: "rank"}]
        cells = [made(one, k=k, **value) for k, one in ((4, first), (8, second)) for value in values]
        told = said(results(*cells), asked, "token_f1")
        text = "No question has a score in all of the settings that would be compared."
        assert (told.answer, told.text) == ("Cannot tell", text)


def test_few_questions_are_told():
    few = {name: 0.5 + number / 10 for number, name in enumerate("abc")}
    told = of_orders(source=few, rank={"a": 0.4, "b": 0.7, "c": 0.6})
    assert "With only 3 units to resample, intervals are too narrow." in told.text


def of_lengths(means, spread=0.0):
    return said(results(*(made(scores(mean, spread, seed=k), k=k) for k, mean in means.items())), LENGTH)


def test_a_length_that_every_other_one_is_worse_than_is_named():
    told = of_lengths({8: 0.4, 16: 0.6, 32: 0.5})
    assert told.answer == "k=16"
    assert told.text.startswith("Sweet spot: k=16 has the highest token_f1, 0.600 [")
    assert of_lengths({8: 0.4, 16: 0.5, 32: 0.6}).answer == "k=32, the largest value that was tried"


def test_lengths_that_are_shown_to_be_worse_are_named():
    told = of_lengths({8: 0.1, 16: 0.5, 32: 0.5}, 0.1)
    assert told.answer == "Partly"
    assert told.text.startswith("Flat at k=16, k=32: k=")


def test_several_curves_are_counted_and_the_longest_is_told():
    def of(**peaks):
        cells = [
            made(scores(0.5 + 0.1 * (k == peak), seed=k), k=k, order=order)
            for order, peak in peaks.items()
            for k in (8, 16, 32)
        ]
        return said(results(*cells), LENGTH)

    same = of(rank=16, source=16)
    assert same.answer == "k=16"
    assert same.text.startswith("2 of 2 curves have a sweet spot. source: sweet spot: k=16 has ")
    assert of(rank=8, source=16).answer == "It depends"


def test_the_setting_to_deploy_comes_first_with_its_tokens_and_interval():
    cells = [made(scores(mean, 0.1, seed=k), k=k, tokens=100 * k) for k, mean in ((8, 0.2), (16, 0.6), (32, 0.61))]
    told = results(*cells).verdicts()[0]
    assert (told.question, told.answer) == ("Which setting to deploy?", "k=16")
    assert told.text.startswith("token_f1 0.6")
    assert "], 1,603 tokens: the fewest tokens of the 2 settings within one standard error" in told.text
    only = results(made(scores(0.5), k=4)).verdicts()[0]
    assert only.answer == "The only setting"
    assert only.text.endswith("13 tokens.")


def test_scores_that_are_all_0_or_all_1_tell_nothing():
    for value in (0.0, 1.0):
        same = dict.fromkeys("abcdefgh", value)
        found = results(*(made(same, order=order, k=k) for order in ("source", "rank") for k in (2, 4)))
        told = [one for one in found.verdicts() if one.answer == "Cannot tell"]
        assert [one.question.split()[0] for one in told] == ["Does", "How"]
        assert told[0].text == f"Every token_f1 is {value:g}, in every setting."
    # Equal scores that are not at an end are told as before.
    half = dict.fromkeys("abcdefgh", 0.5)
    assert said(results(made(half), made(half, order="rank")), "Does source order help here?").answer == "No"


def test_each_other_axis_that_was_varied_has_a_verdict():
    def of(axis, **means):
        cells = [
            made(scores(mean, seed=number), **dict[str, Any]({axis: value}))
            for number, (value, mean) in enumerate(means.items())
        ]
        return said(results(*cells), f"Does {axis} matter?")

    told = of("method", stuff=0.4, refine=0.6, map_reduce=0.5)
    assert told.answer == "refine is better than stuff"
    assert told.text.startswith("Compared with stuff: refine +0.2")
    assert told.text.endswith("] * (* significant).")
    assert of("splitter", tokens=0.5, words=0.4).answer == "tokens is better"
    assert of("splitter", tokens=0.5, words=0.4, recursive=0.5).answer == "Partly"
    cells = [made(scores(0.5, 0.2, seed), continuity=value) for seed, value in enumerate((0.0, 0.3))]
    told = said(results(*cells), "Does continuity matter?")
    assert told.answer == "No significant difference"
    assert told.text.startswith("Compared with 0.0: 0.3 ")
    same = scores(0.5)
    assert said(results(made(same), made(same, embedder="mine")), "Does embedder matter?").answer == "No"


def test_another_metric_that_disagrees_is_named():
    def both(*cells):
        read = frame(*cells, metric="choice_accuracy", resamples=1_000)
        other = frame(*cells, resamples=1_000)
        values = {**read.matrix.values, "token_f1": np.zeros_like(other.matrix.values["token_f1"])}
        return replace(read.matrix, values=values, described={"metrics": ["choice_accuracy", "token_f1"]})

    matrix = both(made(scores(1.0)), made(scores(0.1, seed=1), order="rank"))
    told = said(Results(matrix, "none.db"), "Does source order help here?")
    assert told.answer == "Yes"
    assert told.text.endswith("Other metrics disagree: by token_f1, rank +0.000 [+0.000, +0.000].")


def test_own_pipelines_are_compared_with_the_best_other_setting():
    cells = [
        made(scores(0.5, seed=1), order="source"),
        made(scores(0.4, seed=2), order="rank"),
        made(scores(0.7, seed=3), method="pipeline:mine", model=None, tokens=0, written=0),
    ]
    found = results(*cells)
    told = said(found, "How does mine compare?")
    assert told.answer == "Better"
    assert told.text.startswith("token_f1 +0.2")
    assert told.text.endswith("relative to stuff, source.")
    assert found.settings[2].cost("tokens") is None
    assert "its tokens are unknown" in found.verdicts()[0].text
    alone = results(
        *(made(scores(mean, seed=2), method=f"pipeline:{name}", model=None) for name, mean in (("a", 0.4), ("b", 0.2)))
    )
    assert [one.question for one in alone.verdicts()] == ["Which setting to deploy?", "How does b compare?"]
    assert alone.verdicts()[1].answer == "Worse"
    assert alone.verdicts()[1].text.startswith("token_f1 -0.2")
