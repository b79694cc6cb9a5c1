"""Verdicts: answers of one or two sentences to the main questions of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from oprag.compare.analysis.best import choose_economical
from oprag.compare.analysis.curves import Curve, CurvePoint, curves_of
from oprag.compare.analysis.differences import ComparisonFamily
from oprag.compare.analysis.effects import OrderEffect, order_effects
from oprag.compare.analysis.settings import asks_model, by_data, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import amount, counted, listed, money_text, named
from oprag.compare.db.records import Spent
from oprag.compare.metrics.registry import METRICS
from oprag.compare.stats.difference import FEW_UNITS, POWER

__all__ = ["ORDER", "Verdict", "cost_verdict", "length_curves", "length_verdict", "order_verdict", "verdicts"]

ORDER = "Does source order help here?"
LENGTH = "How much context is worth its tokens?"
COST = "What does it cost?"
_LENGTHS = ("k", "token_budget")
_MAX_LISTED = 4  # curves listed in a sentence


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Answer to one of the main questions of an experiment.

    Attributes:
        question: The question.
        answer: The answer in a few words; on order "Yes", "Partly", "No", "No significant
            difference" or "Not tested".
        text: The evidence for it.
        data: The data set, if there are several.
    """

    question: str
    answer: str
    text: str
    data: str = ""

    def describe(self) -> str:
        """The answer and the evidence for it, on one line."""
        return f"{self.data and f'{self.data}: '}{self.answer}. {self.text}"


def verdicts(settings: Sequence[SettingSummary], metric: str, family: ComparisonFamily) -> list[Verdict]:
    """Whether source order helps, how much context is worth its tokens, and what an answer costs.

    A difference is claimed only if it is significant (`Difference.significant`). If none is, the verdict states the
    size of a difference that would have been detected. There is one verdict on order and one on length per data set,
    then one on costs.
    """
    sets = by_data([one for one in settings if metric in one.scores])
    curves = length_curves(settings, metric, family)
    of_order: list[Verdict] = []
    of_length: list[Verdict] = []
    varied = any(axis in varying_axes(settings)[0] for axis in _LENGTHS)
    for name, (first, *_) in sets.items():
        effects = order_effects(first.matrix, metric, name)
        label = name if len(sets) > 1 else ""
        of_order.append(order_verdict(effects, metric, data=label))
        along = [curve for curve in curves if curve.values["data"] == name]
        of_length.append(length_verdict(along, metric, data=label, varied=varied))
    return [*of_order, *of_length, cost_verdict(settings, curves, settings[0].matrix.spent)]


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


def order_verdict(effects: Sequence[OrderEffect], metric: str, *, data: str = "") -> Verdict:
    """Whether source order helps, based on its pooled differences to other orders."""
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
    answer = "No" if lower else "No significant difference" if not higher else "Partly" if others else "Yes"
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
    settings = {point.setting.number: point.setting for curve in curves for point in curve.points}
    differ = varying_axes(list(settings.values()))[0]
    chosen, _ = choose_economical(list(settings.values()), metric, axes=differ)
    cheapest = "Setting with the fewest tokens whose score is within one standard error of the best"
    text += f" {cheapest}: {named(chosen.values, differ)}."
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
        answer = _length_text(curves[0], next(iter(best))) if len(best) == 1 else "It depends"
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
    unpriced = list(dict.fromkeys(str(one.values["model"]) for one in answered_by_model if one.cost("money") is None))
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
