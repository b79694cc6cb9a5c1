"""Verdicts: answers of one or two sentences to the main questions of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from oprag.compare.analysis.best import Curve, choose_economical, curves_of
from oprag.compare.analysis.differences import highest
from oprag.compare.analysis.effects import Effect, effects_of
from oprag.compare.analysis.matrix import ResultMatrix
from oprag.compare.analysis.settings import by_data, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import amount, counted, difference_text, listed, money_text, named, value_text
from oprag.compare.controls import PIPELINE
from oprag.compare.metrics.registry import METRICS
from oprag.compare.stats import FEW_UNITS, POWER

__all__ = ["ORDER", "Verdict", "length_curves", "verdicts"]

ORDER = "Does source order help here?"
_LENGTH = "How much context is worth its tokens?"
_COST = "What does it cost?"
_LENGTHS = ("k", "token_budget")
# Axes without a verdict of their own: data sets are not compared, and the others have one already.
_OTHERS = ("data", "order", *_LENGTHS)
_MAX_LISTED = 4  # values or metrics listed in a sentence


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


def verdicts(matrix: ResultMatrix, metric: str, metrics: Sequence[str] = ()) -> list[Verdict]:
    """The setting to deploy, the effect of each axis that was varied, own pipelines, and what an answer costs.

    A difference is claimed only if it is significant (`Difference.significant`). If none is, the verdict states the
    size of a difference that would have been detected. Each data set has its own verdicts, except that on costs.

    Args:
        matrix: The results.
        metric: The metric that decides.
        metrics: All metrics for which higher is better; those that disagree on order are named beside it.
    """
    sets = by_data([one for one in matrix.settings if metric in one.scores])
    curves = length_curves(matrix, metric)
    found: list[Verdict] = []
    for data, scored in sets.items():
        parts = [
            _deploy_verdict(scored, metric),
            *(_equal_verdicts(scored, metric) or _axis_verdicts(scored, metric, metrics, curves)),
        ]
        found += [
            Verdict(question=question, answer=answer, text=text, data=data if len(sets) > 1 else "")
            for question, answer, text in parts
        ]
    kinds = list(dict.fromkeys(one.question for one in found))
    return [*sorted(found, key=lambda one: kinds.index(one.question)), _cost_verdict(matrix)]


def length_curves(matrix: ResultMatrix, metric: str) -> list[Curve]:
    """Curves over context length with at least two points.

    `long_context` has none: it reads whole documents, so its context is the same at each length.
    """
    return [
        curve
        for axis in _LENGTHS
        if axis in varying_axes(matrix.settings)[0]
        for curve in curves_of(matrix.settings, axis, metric)
        if len(curve.points) > 1 and curve.values.get("method") != "long_context"
    ]


_Parts = tuple[str, str, str]  # question, answer and text of a verdict


def _equal_verdicts(scored: Sequence[SettingSummary], metric: str) -> list[_Parts]:
    """That nothing can be told if all questions have the same score, 0 or 1, in all settings; else empty."""
    scores = np.unique(np.concatenate([one.by_question(metric) for one in scored]))
    known, varied = scores[~np.isnan(scores)].tolist(), varying_axes(scored)[0]
    if len(scored) == 1 or known not in ([0.0], [1.0]):
        return []
    asked = {ORDER: ("order",), _LENGTH: _LENGTHS}
    text = f"Every {metric} is {known[0]:g}, in every setting."
    return [(question, "Cannot tell", text) for question, axes in asked.items() if {*axes} & {*varied}]


def _axis_verdicts(
    scored: Sequence[SettingSummary], metric: str, metrics: Sequence[str], curves: Sequence[Curve]
) -> Iterator[_Parts]:
    """Verdicts on order, length and the other axes that were varied, and on own pipelines."""
    matrix, data = scored[0].matrix, scored[0].values["data"]
    ours = [one for one in scored if not one.own]
    if ours:
        varied = varying_axes(matrix.settings)[0]
        yield ORDER, *_order_verdict(matrix, metric, metrics, data)
        along = [curve for curve in curves if curve.values["data"] == data]
        yield _LENGTH, *_length_verdict(along, metric, varied=any(axis in varied for axis in _LENGTHS))
        for axis in varied:
            if axis not in _OTHERS and (effects := effects_of(matrix, metric, axis, data)):
                yield f"Does {axis} matter?", _axis_answer(effects), _effects_text(effects)
    yield from _pipeline_verdicts(scored, ours, metric)


def _deploy_verdict(settings: Sequence[SettingSummary], metric: str) -> _Parts:
    chosen, why = choose_economical(settings, metric)
    unit = "tokens" if chosen.asks_model else "context_tokens"
    tokens = "" if chosen.cost(unit) is None else f", {chosen.cost_text(unit)} {unit.replace('_', ' ')}"
    answer = named(chosen.values, varying_axes(settings)[0]) or "The only setting"
    reason = f": {why}" if len(settings) > 1 else ""
    return "Which setting to deploy?", answer, f"{metric} {chosen.scores[metric].describe()}{tokens}{reason}."


def _order_verdict(matrix: ResultMatrix, metric: str, metrics: Sequence[str], data: str) -> tuple[str, str]:
    """Whether source order helps, from its pooled differences to other orders, and what other metrics say."""
    effects = effects_of(matrix, metric, "order", data)
    if not effects:
        return "Not tested", "No setting in source order has a counterpart in another order."
    if all(one.difference.tied for one in effects):
        answer, text = "No", f"For each question, {metric} is the same in every order."
        if metric in METRICS and METRICS[metric].of == "context":
            answer, text = "Not tested", f"Order cannot change {metric}. A model's answers can still differ."
    else:
        lower = [one.difference.significantly_lower for one in effects]
        answer = "Yes" if all(lower) else "Partly" if any(lower) else "No significant difference"
        answer = "It hurts" if any(one.difference.significantly_higher for one in effects) else answer
        text = _effects_text(effects)
    if others := list(_disagreeing(matrix, effects, [one for one in metrics if one != metric], data)):
        text += f" Other metrics disagree: {'; '.join(others[:_MAX_LISTED])}."
    return answer, text


def _disagreeing(matrix: ResultMatrix, effects: Sequence[Effect], metrics: Sequence[str], data: str) -> Iterator[str]:
    """The other metrics in which the effect of order has another sign or another significance."""
    known = {one.value: one.difference for one in effects}
    alike: list[str] = []
    for other in metrics:
        same = [one for one in effects_of(matrix, other, "order", data) if one.value in known]
        clear = [one for one in same if one.difference.significant]
        if any(
            not known[one.value].significant or (one.difference.mean or 0.0) * (known[one.value].mean or 0.0) < 0
            for one in clear
        ):
            yield f"by {other}, {_shown(clear)}"
        elif not clear and any(known[one.value].significant for one in same):
            alike.append(other)
    if alike:
        yield f"no significant difference by {listed(alike)}"


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
    """The difference of each value from the baseline, and what the questions could have shown."""
    pairs = len(effects[0].pairs)
    over = f" over {counted(pairs, 'pair')} of settings" if pairs > 1 else ""
    marks = " (* significant)" if any(one.difference.significant for one in effects) else ""
    text = f"Compared with {value_text(effects[0].baseline)}{over}: {_shown(effects)}{marks}."
    open_ones = [one.difference for one in effects if not one.difference.significant]
    sizes = [size for one in open_ones if (size := one.detectable(one.n, len(effects))) is not None]
    if sizes:
        questions = counted(min(one.n for one in open_ones), "question")
        smallest = f"{float(f'{max(sizes):.2g}'):g}"
        text += (
            f" With {questions}, differences of about {smallest} or more would have been detected ({POWER:.0%} power)."
        )
    units = min(one.difference.units for one in effects)
    return f"{text} With only {units:,} units to resample, intervals are too narrow." if units < FEW_UNITS else text


def _shown(effects: Sequence[Effect]) -> str:
    shown = [f"{value_text(one.value)} {difference_text(one.difference)}" for one in effects[:_MAX_LISTED]]
    return listed([*shown, *([f"{len(effects) - _MAX_LISTED:,} more"] if len(effects) > _MAX_LISTED else [])])


def _length_verdict(curves: Sequence[Curve], metric: str, *, varied: bool) -> tuple[str, str]:
    """Which context length is worth its tokens, from the curves over it; `varied` is whether there are several."""
    if not curves:
        text = f"No two settings with scores for {metric} differ only in context length."
        return "Not tested", text if varied else "This experiment does not vary the context length."
    # One axis is enough: curves over the other axis contain the same settings.
    curves = [curve for curve in curves if curve.axis == curves[0].axis]
    best = {curve.sweet_spot.value: curve for curve in curves if curve.sweet_spot is not None}
    # The curve with the most points; among equals, one with a sweet spot, or the first in source order.
    told = max(
        curves, key=lambda one: (len(one.points), one.sweet_spot is not None, one.values.get("order") == "source")
    )
    if len(best) == 1:
        ((value, curve),) = best.items()
        largest = ", the largest value that was tried" if value == curve.points[-1].value else ""
        answer = f"{curve.axis}={value_text(value)}{largest}"
    elif best:
        answer = "It depends"
    else:
        worse = any(one.difference.significantly_higher for curve in curves for one in curve.others)
        answer = "Partly" if worse else "No significant difference"
    text = told.describe()
    if len(curves) == 1:
        return answer, f"{text[0].upper()}{text[1:]}."
    where = named(told.values, varying_axes(curves)[0])
    spots = sum(curve.sweet_spot is not None for curve in curves)
    return answer, f"{spots:,} of {len(curves):,} curves have a sweet spot. {where}: {text}."


def _pipeline_verdicts(
    scored: Sequence[SettingSummary], ours: Sequence[SettingSummary], metric: str
) -> Iterator[_Parts]:
    """Each own pipeline compared with the best of our settings, or with the first pipeline if there are no others."""
    others = ours or scored[:1]
    other = highest(others, metric)
    for own in scored:
        if own in others:
            continue
        difference = own.matrix.family(metric).compare(own.number, other.number)
        answer = "Better" if difference.significantly_higher else "Worse"
        if not difference.significant:
            answer = "The same" if difference.tied else "No significant difference"
        name = str(own.values["method"]).removeprefix(PIPELINE)
        text = f"{metric} {difference} relative to {named(other.values, varying_axes(scored)[0])}."
        yield f"How does {name} compare?", answer, text


def _cost_verdict(matrix: ResultMatrix) -> Verdict:
    """Cost per answer of the cheapest and of the costliest setting: money, or tokens without prices."""
    spent = matrix.spent
    paid = money_text(spent.money) if spent.money else f"{amount(spent.tokens)} tokens"
    text = f"All runs together: {paid} for {counted(spent.calls, 'call')}." if spent.calls else ""
    asking = [one for one in matrix.settings if one.asks_model and one.answered]
    unit = "money" if all(one.cost("money") is not None for one in asking) else "tokens"
    known = sorted(((cost, one) for one in asking if (cost := one.cost(unit)) is not None), key=lambda one: one[0])
    if not known:
        answer = "Unknown: no pipeline reports its tokens" if asking else "Nothing: no answers came from a model"
        return Verdict(question=_COST, answer=answer, text=text)
    axes = varying_axes(matrix.settings)[0]
    ends = [f"{one.cost_text(unit)} ({named(one.values, axes)})" for _, one in (known[0], known[-1])]
    answer = " to ".join(ends) if known[0][0] < known[-1][0] else known[0][1].cost_text(unit)
    if unit == "tokens":
        answer, text = f"{answer} input and output tokens", f"Not all models have a price. {text}".strip()
    return Verdict(question=_COST, answer=f"{answer} per answer", text=text)
