"""Verdicts: answers of one or two sentences to the main questions of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
_MOST = 4  # curves listed in a sentence


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Answer to one of the main questions of an experiment.

    Attributes:
        question: The question.
        answer: The answer in a few words; on order "Yes", "Partly", "No", "Not shown" or "Not tested".
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

    A difference is claimed only if it is shown (`Difference.shown`). If none is shown, the verdict states the size of a
    difference that would have been detected. There is one verdict on order and one on length per data set, then one on
    costs.
    """
    sets = by_data([one for one in settings if metric in one.scores])
    curves = length_curves(settings, metric, family)
    of_order: list[Verdict] = []
    of_length: list[Verdict] = []
    for name, (first, *_) in sets.items():
        effects = order_effects(first.matrix, metric, name)
        label = name if len(sets) > 1 else ""
        of_order.append(order_verdict(effects, metric, data=label))
        along = [curve for curve in curves if curve.values["data"] == name]
        of_length.append(length_verdict(along, metric, data=label))
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
        text = f"Order cannot change {metric}: it is the same in every question. A model's answers can still differ."
    else:
        answer = "No"
        text = f"{metric} is the same in every question in source order and in {_orders(pooled)}."
    return Verdict(question=ORDER, answer=answer, text=text, data=data)


def _order_answer(pooled: Sequence[OrderEffect]) -> tuple[str, str]:
    higher = [one for one in pooled if one.difference.shown_higher]
    lower = [one for one in pooled if one.difference.shown and one not in higher]
    others = [one for one in pooled if not one.difference.shown]
    parts: list[str] = []
    if higher:
        parts.append(f"source order scores higher {_than(higher)}.")
    if lower:
        parts.append(f"source order scores lower {_than(lower)}.")
    if len(others) == len(pooled):
        scores = listed([f"{one.difference} relative to {one.order}" for one in others])
        lowest = min((p for one in others if (p := one.difference.adjusted_p) is not None), default=None)
        p_value = "" if lowest is None else f" ({'smallest ' if len(others) > 1 else ''}p = {lowest:.2g})"
        parts.append(f"source order scores {scores}; no difference is shown{p_value}.")
    elif others:
        parts.append(f"No difference from {_orders(others)} is shown.")
    over = f"over {counted(pooled[0].pairs, 'pair')} of settings, " if pooled[0].pairs > 1 else ""
    first, *more = [f"{over}{parts[0]}", *(f"{part[0].upper()}{part[1:]}" for part in parts[1:])]
    text = [f"{first[0].upper()}{first[1:]}", *more, *_detectable(others)]
    units = min(one.difference.units for one in pooled)
    if units < FEW_UNITS:
        text.append(f"With only {units:,} units to resample, intervals are too narrow.")
    return "No" if lower else "Not shown" if not higher else "Partly" if others else "Yes", " ".join(text)


def _orders(effects: Sequence[OrderEffect]) -> str:
    return listed([str(one.order) for one in effects])


def _than(effects: Sequence[OrderEffect]) -> str:
    return f"than {listed([f'{one.order} ({one.difference})' for one in effects])}"


def _detectable(effects: Sequence[OrderEffect]) -> Iterator[str]:
    sizes = [one.detectable for one in effects if one.detectable is not None]
    if sizes:
        questions = counted(min(one.difference.n for one in effects), "question")
        smallest = f"{float(f'{max(sizes):.2g}'):g}"
        yield f"With {questions}, differences of about {smallest} or more would have been detected ({POWER:.0%} power)."


def length_verdict(curves: Sequence[Curve], metric: str, *, data: str = "") -> Verdict:
    """Which context length is worth its tokens, based on the curves over it."""
    if not curves:
        text = f"No two settings with scores for {metric} differ only in context length."
        return Verdict(question=LENGTH, answer="Not tested", text=text, data=data)
    # One axis is enough: curves over the other axis contain the same settings.
    curves = [curve for curve in curves if curve.axis == curves[0].axis]
    answer, text = _length_answer(curves)
    settings = {point.setting.number: point.setting for curve in curves for point in curve.points}
    differ = varying_axes(list(settings.values()))[0]
    chosen, _ = choose_economical(list(settings.values()), metric, axes=differ)
    text += f" By the one-standard-error rule: {named(chosen.values, differ)}."
    return Verdict(question=LENGTH, answer=answer, text=text, data=data)


def _length_answer(curves: Sequence[Curve]) -> tuple[str, str]:
    differ = varying_axes(curves)[0]
    where = [f" in {name}" if (name := named(curve.values, differ)) else "" for curve in curves]
    best = [
        (curve.sweet_spot, f"{_point_text(curve, curve.sweet_spot)}{place}")
        for curve, place in zip(curves, where, strict=True)
        if curve.sweet_spot is not None
    ]
    worse = [
        f"{listed([f'{curve.axis}={one.baseline_value}' for one in found])}{place}"
        for curve, place in zip(curves, where, strict=True)
        if (found := [one for one in curve.others if one.difference.shown_higher])
    ]
    if best:
        values = {point.value for point, _ in best}
        answer = _point_text(curves[0], best[0][0]).partition(" ")[0] if len(values) == 1 else "It depends"
        text = f"Shown to be better than every other length: {_first([text for _, text in best])}."
        return answer, text if len(best) == len(curves) else (
            f"{text} In {len(curves) - len(best):,} of {len(curves):,} curves, no length is."
        )
    if worse:
        text = f"Shown to be worse than the highest: {_first(worse)}."
        return "Partly", f"{text} None of the other lengths is shown to be better."
    longest = _longest(curves)
    ends = f"From {_point_text(longest, longest.points[0])} to {_point_text(longest, longest.points[-1])}"
    several = f", in any of {len(curves):,} curves" if len(curves) > 1 else ""
    return "Not shown", f"{ends}, no length is shown to be better{several}."


def _longest(curves: Sequence[Curve]) -> Curve:
    """The curve with the most points; among equals, the first in source order."""
    return max(curves, key=lambda curve: (len(curve.points), curve.values.get("order") == "source"))


def _first(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _MOST:,} more"] if len(texts) > _MOST else []
    return listed([*texts[:_MOST], *more])


def _point_text(curve: Curve, point: CurvePoint) -> str:
    tokens = "" if point.context_tokens is None else f" ({amount(point.context_tokens)} tokens)"
    return f"{curve.axis}={'none' if point.value is None else point.value}{tokens}"


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
    along = [(one.setting, _point_text(longest, one).partition(" ")[0]) for one in longest.points] if longest else []
    if not along or not all(asks_model(one) for one, _ in along):
        axes = varying_axes(settings)[0]
        along = [
            (one, named(one.values, axes)) for one in sorted(answered_by_model, key=lambda one: one.cost(unit) or 0.0)
        ]
    (low, first), *_, (high, last) = [(show(one.cost(unit)), name) for one, name in (along[0], *along)]
    answer = f"{low} to {high}" if low != high else low
    parts = [f"{low} at {first}, {high} at {last}."] if low != high else []
    if unpriced:
        parts.append(f"The experiment has no price for {listed(unpriced)}.")
    text = " ".join([*parts, total]).strip()
    return Verdict(
        question=COST, answer=f"{answer} tokens per answer" if unpriced else f"{answer} per answer", text=text
    )
