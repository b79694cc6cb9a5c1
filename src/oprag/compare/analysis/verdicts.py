"""Verdicts: answers of one or two sentences to the main questions of an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oprag.compare.analysis.best import choose_economical
from oprag.compare.analysis.curves import Curve, CurvePoint, curves_of
from oprag.compare.analysis.differences import ComparisonFamily, highest
from oprag.compare.analysis.effects import OrderEffect, compare_pooled, order_effects, pool_pairs
from oprag.compare.analysis.matrix import ResultMatrix
from oprag.compare.analysis.settings import asks_model, by_data, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import amount, counted, listed, money_text, named, value_text
from oprag.compare.controls import PIPELINE, kind_of
from oprag.compare.db.records import Spent
from oprag.compare.metrics.registry import METRICS
from oprag.compare.stats.difference import FEW_UNITS, POWER, Difference

__all__ = ["DEPLOY", "ORDER", "Verdict", "cost_verdict", "length_curves", "length_verdict", "order_verdict", "verdicts"]

DEPLOY = "Which setting to deploy?"
ORDER = "Does source order help here?"
LENGTH = "How much context is worth its tokens?"
COST = "What does it cost?"
_LENGTHS = ("k", "token_budget")
# Axes without a verdict of their own: data sets are not compared, and the others have one already.
_OTHERS = ("data", "order", *_LENGTHS)
_MAX_LISTED = 4  # curves, values or metrics listed in a sentence


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


def verdicts(
    settings: Sequence[SettingSummary], metric: str, family: ComparisonFamily, metrics: Sequence[str] = ()
) -> list[Verdict]:
    """The setting to deploy, the effect of each axis that was varied, own pipelines, and what an answer costs.

    A difference is claimed only if it is significant (`Difference.significant`). If none is, the verdict states the
    size of a difference that would have been detected. Each data set has its own verdicts, except that on costs.

    Args:
        settings: The settings.
        metric: The metric that decides.
        family: All comparisons in this metric.
        metrics: All metrics for which higher is better; those that disagree on order are named beside it.
    """
    sets = by_data([one for one in settings if metric in one.scores])
    curves = length_curves(settings, metric, family)
    varied = varying_axes(settings)[0]
    found: list[Verdict] = []
    for name, scored in sets.items():
        matrix, label = scored[0].matrix, name if len(sets) > 1 else ""
        along = [curve for curve in curves if curve.values["data"] == name]
        found.append(_deploy_verdict(scored, metric, data=label))
        if (equal := _equal_score(scored, metric)) is not None:
            text = f"Every {metric} is {equal:g}, in every setting."
            asked = [ORDER] if "order" in varied else []
            asked += [LENGTH] if any(axis in varied for axis in _LENGTHS) else []
            found += [Verdict(question=one, answer="Cannot tell", text=text, data=label) for one in asked]
            continue
        if all(kind_of(str(one.values["method"])).own for one in scored):
            found += _pipeline_verdicts(scored, metric, family, label)
            continue
        effects = order_effects(matrix, metric, name)
        found.append(order_verdict(effects, metric, data=label, also=_disagreeing(matrix, metric, metrics, name)))
        found.append(length_verdict(along, metric, data=label, varied=any(axis in varied for axis in _LENGTHS)))
        found += [
            verdict
            for axis in varied
            if axis not in _OTHERS and (verdict := _axis_verdict(matrix, metric, axis, name, label)) is not None
        ]
        found += _pipeline_verdicts(scored, metric, family, label)
    kinds = list(dict.fromkeys(one.question for one in found))
    found.sort(key=lambda one: kinds.index(one.question))
    return [*found, cost_verdict(settings, curves, settings[0].matrix.spent)]


def _equal_score(settings: Sequence[SettingSummary], metric: str) -> float | None:
    """The score of all questions in all settings, if it is 0 or 1 everywhere."""
    scores = np.unique(np.concatenate([one.by_question(metric) for one in settings]))
    known = scores[~np.isnan(scores)].tolist()
    return known[0] if len(settings) > 1 and known in ([0.0], [1.0]) else None


def _deploy_verdict(settings: Sequence[SettingSummary], metric: str, *, data: str) -> Verdict:
    axes = varying_axes(settings)[0]
    chosen, why = choose_economical(settings, metric, axes=axes)
    unit = "tokens" if asks_model(chosen) else "context_tokens"
    spent = chosen.cost(unit)
    tokens = "" if spent is None else f", {amount(spent)} {'' if asks_model(chosen) else 'context '}tokens"
    answer = named(chosen.values, axes) or "The only setting"
    text = f"{metric} {chosen.scores[metric].describe()}{tokens}"
    return Verdict(
        question=DEPLOY, answer=answer, text=f"{text}: {why}." if len(settings) > 1 else f"{text}.", data=data
    )


def _disagreeing(matrix: ResultMatrix, metric: str, metrics: Sequence[str], data: str) -> Iterator[str]:
    """The other metrics in which the effect of order has another sign or another significance."""
    known = {one.order: one.difference for one in order_effects(matrix, metric, data)}
    alike: list[str] = []
    for other in metrics:
        effects = [one for one in order_effects(matrix, other, data) if one.order in known] if other != metric else []
        clear = [one for one in effects if one.difference.significant]
        if any(_contradicts(one.difference, known[one.order]) for one in clear):
            yield f"by {other}, {_with_differences(clear)} differ{'s' * (len(clear) == 1)} significantly"
        elif not clear and any(known[one.order].significant for one in effects):
            alike.append(other)
    if alike:
        yield f"no significant difference by {listed(alike)}"


def _contradicts(one: Difference, other: Difference) -> bool:
    """Whether a significant difference is not significant in another metric, or has the other sign there."""
    return not other.significant or (one.mean or 0.0) * (other.mean or 0.0) < 0


def _axis_verdict(matrix: ResultMatrix, metric: str, axis: str, data: str, label: str) -> Verdict | None:
    """The effect of the values of an axis, compared with its first value; None if no settings differ in it alone."""
    pooled = pool_pairs(matrix, metric, axis, data)
    if not pooled:
        return None
    compared = [-one for one in compare_pooled(matrix, [one.apart for one in pooled])]
    first = value_text(matrix.settings[pooled[0].pairs[0][0]].values[axis])
    shown = listed(
        [
            f"{value_text(one.value)} {difference}{' *' if difference.significant else ''}"
            for one, difference in zip(pooled[:_MAX_LISTED], compared, strict=False)
        ]
    )
    more = f", and {len(pooled) - _MAX_LISTED:,} more" if len(pooled) > _MAX_LISTED else ""
    higher = [one for one, difference in zip(pooled, compared, strict=True) if difference.significantly_higher]
    best = max(zip(pooled, compared, strict=True), key=lambda one: one[1].mean or 0.0)
    if higher:
        answer = f"{value_text(best[0].value)} is better than {first}" if best[0] in higher else "Partly"
    elif any(one.significant for one in compared):
        answer = f"{first} is better" if all(one.significant for one in compared) else "Partly"
    else:
        answer = "No" if all(one.tied for one in compared) else "No significant difference"
    marks = " (* significant)" if any(one.significant for one in compared) else ""
    text = f"Compared with {first}: {shown}{more}{marks}."
    return Verdict(question=f"Does {axis} matter?", answer=answer, text=text, data=label)


def _pipeline_verdicts(
    settings: Sequence[SettingSummary], metric: str, family: ComparisonFamily, label: str
) -> Iterator[Verdict]:
    """Each own pipeline compared with the best of our settings, or with the first pipeline if there are no others."""
    axes = varying_axes(settings)[0]
    ours = [one for one in settings if not kind_of(str(one.values["method"])).own]
    for own in settings:
        others = ours or settings[:1]
        if own in others or own in ours:
            continue
        other = others[highest([one.by_question(metric) for one in others])]
        difference = family.compare(own.number, other.number)
        if difference.tied:
            answer = "The same"
        elif not difference.significant:
            answer = "No significant difference"
        else:
            answer = "Better" if difference.significantly_higher else "Worse"
        name = str(own.values["method"]).removeprefix(PIPELINE)
        text = f"{metric} {difference} relative to {named(other.values, axes)}."
        yield Verdict(question=f"How does {name} compare?", answer=answer, text=text, data=label)


def length_curves(settings: Sequence[SettingSummary], metric: str, family: ComparisonFamily) -> list[Curve]:
    """Curves over context length with at least two points.

    `long_context` has none: it reads whole documents, so its context is the same at each length.
    """
    axes = varying_axes(settings)[0]
    return [
        curve
        for axis in _LENGTHS
        if axis in axes
        for curve in curves_of(settings, axis, metric, family)
        if len(curve.points) > 1 and curve.values.get("method") != "long_context"
    ]


def order_verdict(effects: Sequence[OrderEffect], metric: str, *, data: str = "", also: Iterable[str] = ()) -> Verdict:
    """Whether source order helps, from its pooled differences to other orders; `also` is what other metrics say."""
    pooled = [one for one in effects if one.pooled]
    if not pooled:
        answer, text = "Not tested", "No setting in source order has a counterpart in another order."
    elif not all(one.difference.tied for one in pooled):
        answer, text = _order_answer(pooled)
    elif metric in METRICS and METRICS[metric].of == "context":
        answer = "Not tested"
        text = (
            f"Order cannot change {metric}: for each question, it is the same in every order. A model's answers can "
            "still differ."
        )
    else:
        answer = "No"
        text = f"For each question, {metric} is the same in source order as in {_orders(pooled)}."
    if others := list(also):
        text += f" Other metrics disagree: {'; '.join(others[:_MAX_LISTED])}."
    return Verdict(question=ORDER, answer=answer, text=text, data=data)


def _order_answer(pooled: Sequence[OrderEffect]) -> tuple[str, str]:
    higher = [one for one in pooled if one.difference.significantly_higher]
    lower = [one for one in pooled if one.difference.significant and one not in higher]
    others = [one for one in pooled if not one.difference.significant]
    parts: list[str] = []
    if higher:
        parts.append(
            f"{_with_differences(higher)} score{'s' * (len(higher) == 1)} significantly lower than source order."
        )
    if lower:
        parts.append(
            f"{_with_differences(lower)} score{'s' * (len(lower) == 1)} significantly higher than source order."
        )
    if len(others) == len(pooled):
        lowest = min((p for one in others if (p := one.difference.adjusted_p) is not None), default=None)
        p_value = "" if lowest is None else f" ({'smallest corrected ' if len(others) > 1 else ''}p = {lowest:.2g})"
        scores = listed([f"{one.order} order scores {-one.difference}" for one in others])
        parts.append(f"{scores} relative to source order{p_value}.")
    elif others:
        parts.append(f"There is no significant difference from {_orders(others)}.")
    over = f"over {counted(pooled[0].pairs, 'pair')} of settings, " if pooled[0].pairs > 1 else ""
    first, *more = [f"{over}{parts[0]}", *(f"{part[0].upper()}{part[1:]}" for part in parts[1:])]
    text = [f"{first[0].upper()}{first[1:]}", *more, *_detectable(others)]
    units = min(one.difference.units for one in pooled)
    if units < FEW_UNITS:
        text.append(f"With only {units:,} units to resample, intervals are too narrow.")
    answer = "It hurts" if lower else "No significant difference" if not higher else "Partly" if others else "Yes"
    return answer, " ".join(text)


def _orders(effects: Sequence[OrderEffect]) -> str:
    return listed([f"{one.order} order" for one in effects])


def _with_differences(effects: Sequence[OrderEffect]) -> str:
    """The other orders with their differences from source order, which have the signs of the table of settings."""
    return listed([f"{one.order} order ({-one.difference})" for one in effects])


def _detectable(effects: Sequence[OrderEffect]) -> Iterator[str]:
    sizes = [one.detectable for one in effects if one.detectable is not None]
    if sizes:
        questions = counted(min(one.difference.n for one in effects), "question")
        smallest = f"{float(f'{max(sizes):.2g}'):g}"
        yield f"With {questions}, differences of about {smallest} or more would have been detected ({POWER:.0%} power)."


def length_verdict(curves: Sequence[Curve], metric: str, *, data: str = "", varied: bool = False) -> Verdict:
    """Which context length is worth its tokens, based on the curves over it.

    `varied` tells whether the experiment varies the context length at all.
    """
    if not curves:
        text = (
            f"No two settings with scores for {metric} differ only in context length."
            if varied
            else "This experiment does not vary the context length."
        )
        return Verdict(question=LENGTH, answer="Not tested", text=text, data=data)
    # One axis is enough: curves over the other axis contain the same settings.
    curves = [curve for curve in curves if curve.axis == curves[0].axis]
    answer, text = _length_answer(curves)
    return Verdict(question=LENGTH, answer=answer, text=text, data=data)


def _length_answer(curves: Sequence[Curve]) -> tuple[str, str]:
    differ = varying_axes(curves)[0]
    where = [f" in {name}" if (name := named(curve.values, differ)) else "" for curve in curves]
    best: dict[Any, list[Curve]] = {}
    for curve in curves:
        if curve.sweet_spot is not None:
            best.setdefault(curve.sweet_spot.value, []).append(curve)
    worse = [
        f"{listed([f'{curve.axis}={one.baseline_value}' for one in found])}{place}"
        for curve, place in zip(curves, where, strict=True)
        if (found := [one for one in curve.others if one.difference.significantly_higher])
    ]
    if best:
        answer = _sweet_spot(next(iter(best.values()))) if len(best) == 1 else "It depends"
        names = ["It"] if len(best) == 1 else [_length_text(curves[0], value) for value in best]
        text = " ".join(_best_text(name, found, differ) for name, found in zip(names, best.values(), strict=True))
        flat = len(curves) - sum(map(len, best.values()))
        return answer, f"{text} In {flat:,} of {len(curves):,} curves, no length does." if flat else text
    if worse:
        text = f"Significantly worse than the best length: {_first(worse)}."
        return "Partly", f"{text} The other lengths do not differ significantly from the best."
    longest = _longest(curves)
    ends = f"From {_point_text(longest, longest.points[0])} to {_point_text(longest, longest.points[-1])}"
    several = f", in any of {len(curves):,} curves" if len(curves) > 1 else ""
    return "No significant difference", f"{ends}, no length is significantly worse than the best{several}."


def _sweet_spot(curves: Sequence[Curve]) -> str:
    """The length at which these curves have their sweet spot."""
    curve = curves[0]
    spot = curve.sweet_spot
    value = None if spot is None else spot.value
    largest = spot is not None and spot is curve.points[-1]
    return f"{_length_text(curve, value)}{', the largest value that was tried' if largest else ''}"


def _best_text(name: str, curves: Sequence[Curve], differ: Sequence[str]) -> str:
    """The curves that have their sweet spot at the same length."""
    points = [curve.sweet_spot.context_tokens for curve in curves if curve.sweet_spot is not None]
    counts = list(dict.fromkeys(amount(one) for one in sorted(one for one in points if one is not None)))
    tokens = f" ({' to '.join(dict.fromkeys((counts[0], counts[-1])))} context tokens)" if counts else ""
    others = [other for curve in curves if (other := named(curve.values, differ))]
    where = f" in {_first(others)}" if others else ""
    return f"{name} scores significantly higher than every other length{where}{tokens}."


def _longest(curves: Sequence[Curve]) -> Curve:
    """The curve with the most points; among equals, the first in source order."""
    return max(curves, key=lambda curve: (len(curve.points), curve.values.get("order") == "source"))


def _first(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _MAX_LISTED:,} more"] if len(texts) > _MAX_LISTED else []
    return listed([*texts[:_MAX_LISTED], *more])


def _point_text(curve: Curve, point: CurvePoint) -> str:
    tokens = "" if point.context_tokens is None else f" ({amount(point.context_tokens)} context tokens)"
    return f"{_length_text(curve, point.value)}{tokens}"


def _length_text(curve: Curve, value: Any) -> str:
    return f"{curve.axis}={'none' if value is None else value}"


def cost_verdict(settings: Sequence[SettingSummary], curves: Sequence[Curve], spent: Spent) -> Verdict:
    """Cost per answer: at both ends of the longest curve if any, else of the cheapest and costliest setting."""
    answered_by_model = [one for one in settings if asks_model(one) and one.answered]
    total = ""
    if spent.calls:
        amount_spent = money_text(spent.money) if spent.money else f"{amount(spent.tokens)} tokens"
        total = f"All runs together: {amount_spent} for {counted(spent.calls, 'call')}."
    if not answered_by_model:
        return Verdict(question=COST, answer="Nothing", text=f"No answers came from a model. {total}".strip())
    # The cost of own pipelines is unknown.
    answered_by_model = [one for one in answered_by_model if "model" in one.values] or answered_by_model
    if answered_by_model[0].cost("tokens") is None:
        return Verdict(question=COST, answer="Unknown", text=f"No pipeline reports its tokens. {total}".strip())
    unpriced = list(dict.fromkeys(_model_of(one) for one in answered_by_model if one.cost("money") is None))
    unit, show = ("tokens", amount) if unpriced else ("money", money_text)
    longest = _longest(curves) if curves else None
    along = [(one.setting, _length_text(longest, one.value)) for one in longest.points] if longest else []
    if not along or not all(asks_model(one) for one, _ in along):
        axes = varying_axes(settings)[0]
        along = [
            (one, named(one.values, axes)) for one in sorted(answered_by_model, key=lambda one: one.cost(unit) or 0.0)
        ]
    (low, first), *_, (high, last) = [(show(one.cost(unit)), name) for one, name in (along[0], *along)]
    answer = f"{low} ({first}) to {high} ({last})" if low != high else low
    models = f"model{'s' if len(unpriced) > 1 else ''} {listed([repr(name) for name in unpriced])}"
    text = f"No price is set for the {models}. {total}".strip() if unpriced else total
    return Verdict(
        question=COST,
        answer=f"{answer} input and output tokens per answer" if unpriced else f"{answer} per answer",
        text=text,
    )


def _model_of(setting: SettingSummary) -> str:
    return str(setting.values.get("model", setting.values["method"]))
