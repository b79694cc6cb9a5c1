"""Verdicts: answers of one or two sentences to the main questions of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from oprag.compare.analysis.best import Curve, choose_economical, curves_of
from oprag.compare.analysis.differences import Effect, compared, effects_of, highest
from oprag.compare.analysis.matrix import ResultMatrix
from oprag.compare.analysis.settings import by_data, counted, difference_text, listed, named, value_text, varying_axes
from oprag.compare.analysis.summary import SettingSummary, why_failed
from oprag.compare.experiment_methods import PIPELINE
from oprag.compare.metrics.registry import METRICS
from oprag.compare.stats import FEW_UNITS, Difference

__all__ = ["ORDER", "Verdict", "length_curves", "verdicts"]

ORDER = "Does source order help here?"
_LENGTH = "How much context is worth its tokens?"
_LENGTHS = ("k", "token_budget")
# Axes without a verdict of their own: data sets are not compared, and the others have one already.
_OTHERS = ("data", "order", *_LENGTHS)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Answer to one of the questions of an experiment.

    Attributes:
        question: The question.
        answer: The answer in a few words; on order "Yes", "Partly", "It hurts", "No", "No significant difference",
            "Cannot tell" or "Not tested".
        text: The evidence for it.
        data: The data set, if there are several.
    """

    question: str
    answer: str
    text: str
    data: str = ""

    def describe(self) -> str:
        """The answer and the evidence for it, on one line."""
        return f"{self.data and f'{self.data}: '}{self.answer}. {self.text}".strip()


def verdicts(matrix: ResultMatrix, metric: str) -> list[Verdict]:
    """The setting to deploy, the effect of each axis that was varied, and own pipelines.

    A difference is claimed only if it is significant (`Difference.significant`). Each data set has its own verdicts.
    """
    sets = by_data([one for one in matrix.settings if metric in one.scores])
    found = [
        Verdict(question=question, answer=answer, text=text, data=data if len(sets) > 1 else "")
        for data, scored in sets.items()
        for question, answer, text in _of_data_set(scored, metric)
    ]
    kinds = list(dict.fromkeys(one.question for one in found))
    return sorted(found, key=lambda one: kinds.index(one.question))


def length_curves(matrix: ResultMatrix, metric: str) -> list[Curve]:
    """Curves over context length with at least two points; `long_context` has none, since it reads whole documents."""
    return [
        curve
        for axis in _LENGTHS
        if axis in varying_axes(matrix.settings)
        for curve in curves_of(matrix.settings, axis, metric)
        if len(curve.points) > 1 and curve.values.get("method") != "long_context"
    ]


_Parts = tuple[str, str, str]  # question, answer and text of a verdict
_NOTHING_PAIRED = "Cannot tell", "No question has a score in all of the settings that would be compared."


def _of_data_set(scored: Sequence[SettingSummary], metric: str) -> Iterator[_Parts]:
    """The setting to deploy; if scores can tell anything, order, length, the other axes, and own pipelines."""
    yield _deploy_verdict(scored, metric)
    matrix, data, varied = scored[0].matrix, scored[0].values["data"], varying_axes(scored)
    for one in matrix.settings:
        if one.own and one.values["data"] == data and (why := why_failed([one])) is not None:
            yield _comparison_with(one), "Cannot tell", f"{why[0].upper()}{why[1:]}."
    scores = np.unique(np.concatenate([one.by_question(metric) for one in scored]))
    if len(scored) > 1 and (known := scores[~np.isnan(scores)].tolist()) in ([0.0], [1.0]):
        for question, axes in ((ORDER, {"order"}), (_LENGTH, {*_LENGTHS})):
            if axes & {*varied}:
                yield question, "Cannot tell", f"Every {metric} is {known[0]:g}, in every setting."
        return
    ours = [one for one in scored if not one.own]
    if ours:
        yield ORDER, *_order_verdict(matrix, metric, data)
        curves = length_curves(matrix, metric)
        yield _LENGTH, *_length_verdict([one for one in curves if one.values["data"] == data], metric)
        for axis in varied:
            if axis not in _OTHERS and (effects := effects_of(matrix, metric, axis, data)):
                known = _with_questions(effects)
                parts = (_axis_answer(known), _effects_text(known)) if known else _NOTHING_PAIRED
                yield f"Does {axis} matter?", *parts
    yield from _pipeline_verdicts(scored, ours, metric)


def _deploy_verdict(settings: Sequence[SettingSummary], metric: str) -> _Parts:
    chosen, why = choose_economical(settings, metric)
    unit = "tokens" if chosen.asks_model else "context_tokens"
    tokens = "" if chosen.cost(unit) is None else f", {chosen.cost_text(unit)} {unit.replace('_', ' ')}"
    answer = named(chosen.values, varying_axes(settings)) or "The only setting"
    reason = f": {why}" if len(settings) > 1 else ""
    return "Which setting to deploy?", answer, f"{metric} {chosen.scores[metric].describe()}{tokens}{reason}."


def _order_verdict(matrix: ResultMatrix, metric: str, data: str) -> tuple[str, str]:
    """Whether source order helps, from its pooled differences to other orders, and what other metrics say."""
    effects = effects_of(matrix, metric, "order", data)
    if not effects:
        return "Not tested", "No setting in source order has a counterpart in another order."
    if not (effects := _with_questions(effects)):
        return _NOTHING_PAIRED
    if all(one.difference.tied for one in effects):
        answer, text = "No", f"For each question, {metric} is the same in every order."
        if metric in METRICS and METRICS[metric].of == "context":
            answer, text = "Not tested", f"Order cannot change {metric}. A model's answers can still differ."
    else:
        lower = [one.difference.significantly_lower for one in effects]
        answer = "Yes" if all(lower) else "Partly" if any(lower) else "No significant difference"
        answer = "It hurts" if any(one.difference.significantly_higher for one in effects) else answer
        text = _effects_text(effects)
    if others := list(_disagreeing(matrix, effects, [one for one in matrix.ranking_metrics if one != metric], data)):
        text += f" Other metrics disagree: {'; '.join(others)}."
    return answer, text


def _with_questions(effects: Sequence[Effect]) -> list[Effect]:
    return [one for one in effects if one.difference.n]


def _disagreeing(matrix: ResultMatrix, effects: Sequence[Effect], metrics: Sequence[str], data: str) -> Iterator[str]:
    """The other metrics in which the effect of order has another sign or another significance."""
    known = {one.value: _direction(one.difference) for one in effects}
    for other in metrics:
        same = [one for one in _with_questions(effects_of(matrix, other, "order", data)) if one.value in known]
        if any(_direction(one.difference) != known[one.value] for one in same):
            yield f"by {other}, {_shown(same)}"


def _direction(difference: Difference) -> int:
    return difference.significantly_higher - difference.significantly_lower


def _axis_answer(effects: Sequence[Effect]) -> str:
    """The answer on an axis whose values are compared with its first one."""
    differences = [one.difference for one in effects]
    best = max(effects, key=lambda one: one.difference.mean or 0.0)
    if best.difference.significantly_higher:
        return f"{value_text(best.value)} is better than {value_text(best.baseline)}"
    if all(one.significantly_lower for one in differences):
        return f"{value_text(best.baseline)} is better"
    if any(one.significant for one in differences):
        return "Partly"
    return "No" if all(one.tied for one in differences) else "No significant difference"


def _effects_text(effects: Sequence[Effect]) -> str:
    """The difference of each value from the baseline."""
    pairs = len(effects[0].pairs)
    over = f" over {counted(pairs, 'pair')} of settings" if pairs > 1 else ""
    marks = " (* significant)" if any(one.difference.significant for one in effects) else ""
    text = f"Compared with {value_text(effects[0].baseline)}{over}: {_shown(effects)}{marks}."
    units = min(one.difference.units for one in effects)
    few = f" With only {counted(units, 'unit')} to resample, intervals are too narrow."
    return f"{text}{few if units < FEW_UNITS else ''}"


def _shown(effects: Sequence[Effect]) -> str:
    return listed([f"{value_text(one.value)} {difference_text(one.difference)}" for one in effects])


def _length_verdict(curves: Sequence[Curve], metric: str) -> tuple[str, str]:
    """Which context length is worth its tokens, from the curves over it."""
    if not curves:
        return "Not tested", f"No two settings with scores for {metric} differ only in context length."
    # One axis is enough: curves over the other axis contain the same settings.
    curves = [curve for curve in curves if curve.axis == curves[0].axis]
    spots = [spot for curve in curves if (spot := curve.sweet_spot) is not None]
    values = {spot.values[curves[0].axis] for spot in spots}
    if len(values) == 1:
        largest = ", the largest value that was tried" if any(spots[0] is one.points[-1] for one in curves) else ""
        answer = f"{named(spots[0].values, [curves[0].axis])}{largest}"
    elif values:
        answer = "It depends"
    else:
        worse = any(one.difference.significantly_higher for curve in curves for one in curve.others)
        answer = "Partly" if worse else "No significant difference"
    told = max(curves, key=lambda one: (len(one.points), one.setting in spots, one.values.get("order") == "source"))
    text = told.describe()
    if len(curves) > 1:
        where = named(told.values, varying_axes(curves))
        text = f"{len(spots)} of {len(curves)} curves have a sweet spot. {where}: {text}"
    return answer, f"{text[0].upper()}{text[1:]}."


def _pipeline_verdicts(
    scored: Sequence[SettingSummary], ours: Sequence[SettingSummary], metric: str
) -> Iterator[_Parts]:
    """Each own pipeline compared with the best of our settings; without one, with the first pipeline."""
    others = ours or scored[:1]
    other = highest(others, metric)
    for own in scored:
        if own in others:
            continue
        difference = compared(own, other, metric).difference
        answer = {1: "Better", 0: "No significant difference", -1: "Worse"}[_direction(difference)]
        text = f"{metric} {difference} relative to {named(other.values, varying_axes(scored))}."
        yield _comparison_with(own), answer, text


def _comparison_with(own: SettingSummary) -> str:
    return f"How does {str(own.values['method']).removeprefix(PIPELINE)} compare?"
