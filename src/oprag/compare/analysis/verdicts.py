"""Verdicts: answers in a sentence or two to the questions that an experiment is made for."""

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
from oprag.compare.stats.difference import FEW_UNITS
from oprag.compare.stats.power import POWER

__all__ = ["ORDER", "Verdict", "cost_verdict", "length_curves", "length_verdict", "order_verdict", "verdicts"]

ORDER = "Does source order help here?"
LENGTH = "How much context is worth its tokens?"
COST = "What does it cost?"
_LENGTHS = ("k", "token_budget")
_MOST = 4  # curves that are named in a sentence


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """An answer to one of the questions that an experiment is made for.

    Attributes:
        question: The question.
        answer: The answer in a few words: of orders "Yes", "In part", "No", "Not shown" or "Not asked".
        text: What it rests on.
        data: The data set that it is about, where there are several.
    """

    question: str
    answer: str
    text: str
    data: str = ""

    def describe(self) -> str:
        """The answer and what it rests on, in one line."""
        return f"{self.data and f'{self.data}: '}{self.answer}. {self.text}"


def verdicts(settings: Sequence[SettingSummary], metric: str, family: ComparisonFamily) -> list[Verdict]:
    """Whether source order helps, how much context is worth its tokens, and what an answer costs.

    Differences are claimed where they are shown (`Difference.shown`), and nowhere else. Where none is, the size of a
    difference that would have been seen is given with that. There is a verdict on the order and one on the length for
    each data set, then one on costs.
    """
    sets = by_data([one for one in settings if metric in one.scores])
    curves = length_curves(settings, metric, family)
    of_order: list[Verdict] = []
    of_length: list[Verdict] = []
    for name, (first, *_) in sets.items():
        effects = order_effects(first.matrix, metric, name)
        told = name if len(sets) > 1 else ""
        of_order.append(order_verdict(effects, metric, data=told))
        along = [curve for curve in curves if curve.values["data"] == name]
        of_length.append(length_verdict(along, metric, data=told))
    return [*of_order, *of_length, cost_verdict(settings, curves, settings[0].matrix.spent)]


def length_curves(settings: Sequence[SettingSummary], metric: str, family: ComparisonFamily) -> list[Curve]:
    """The curves over the length of the context with two points or more.

    Methods that read whole documents have none: their context is the same at each length.
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
    """Whether source order helps, from its pooled differences to other orders."""
    pooled = [one for one in effects if one.pooled]
    if not pooled:
        answer, text = "Not asked", "No two settings are alike but for the order, one of them in source order."
    elif not all(one.difference.tied for one in pooled):
        answer, text = _order_answer(pooled)
    elif metric in METRICS and METRICS[metric].of == "context":
        answer = "Not asked"
        text = f"No order can change {metric}: it is the same in every question. A model's answers can differ."
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
        against = listed([f"{one.difference} against {one.order}" for one in others])
        least = min((p for one in others if (p := one.difference.adjusted_p) is not None), default=None)
        told = "" if least is None else f" ({'smallest ' if len(others) > 1 else ''}p = {least:.2g})"
        parts.append(f"source order scores {against}; no difference is shown{told}.")
    elif others:
        parts.append(f"No difference is shown to {_orders(others)}.")
    over = f"over {counted(pooled[0].pairs, 'pair')} of settings, " if pooled[0].pairs > 1 else ""
    first, *more = [f"{over}{parts[0]}", *(f"{part[0].upper()}{part[1:]}" for part in parts[1:])]
    text = [f"{first[0].upper()}{first[1:]}", *more, *_could_be_seen(others)]
    units = min(one.difference.units for one in pooled)
    if units < FEW_UNITS:
        text.append(f"{units:,} to draw from is so few that intervals are too narrow.")
    return "No" if lower else "Not shown" if not higher else "In part" if others else "Yes", " ".join(text)


def _orders(effects: Sequence[OrderEffect]) -> str:
    return listed([str(one.order) for one in effects])


def _than(effects: Sequence[OrderEffect]) -> str:
    return f"than {listed([f'{one.order} ({one.difference})' for one in effects])}"


def _could_be_seen(effects: Sequence[OrderEffect]) -> Iterator[str]:
    seen = [one.detectable for one in effects if one.detectable is not None]
    if seen:
        questions = counted(min(one.difference.n for one in effects), "question")
        least = f"{float(f'{max(seen):.2g}'):g}"
        yield f"With {questions}, differences of about {least} or more would have been seen ({POWER:.0%} power)."


def length_verdict(curves: Sequence[Curve], metric: str, *, data: str = "") -> Verdict:
    """Which length of the context is worth its tokens, from the curves over it."""
    if not curves:
        text = f"No two settings with scores of {metric} are alike but for the length of the context."
        return Verdict(question=LENGTH, answer="Not asked", text=text, data=data)
    # The curves over one axis: those over the other are other cuts through the same settings.
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
        (curve.sweet_spot, f"{_told(curve, curve.sweet_spot)}{place}")
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
        answer = _told(curves[0], best[0][0]).partition(" ")[0] if len(values) == 1 else "It depends"
        text = f"Shown to be better than every other length: {_first([told for _, told in best])}."
        return answer, text if len(best) == len(curves) else (
            f"{text} In {len(curves) - len(best):,} of {len(curves):,} curves no length is."
        )
    if worse:
        text = f"Shown to be worse than the highest: {_first(worse)}."
        return "In part", f"{text} Of the other lengths none is shown to be better."
    longest = _longest(curves)
    ends = f"From {_told(longest, longest.points[0])} to {_told(longest, longest.points[-1])}"
    several = f", in any of {len(curves):,} curves" if len(curves) > 1 else ""
    return "Not shown", f"{ends} no length is shown to be better{several}."


def _longest(curves: Sequence[Curve]) -> Curve:
    """The curve with the most points, of equals the first in source order."""
    return max(curves, key=lambda curve: (len(curve.points), curve.values.get("order") == "source"))


def _first(texts: Sequence[str]) -> str:
    more = [f"{len(texts) - _MOST:,} more"] if len(texts) > _MOST else []
    return listed([*texts[:_MOST], *more])


def _told(curve: Curve, point: CurvePoint) -> str:
    tokens = "" if point.context_tokens is None else f" ({amount(point.context_tokens)} tokens)"
    return f"{curve.axis}={'none' if point.value is None else point.value}{tokens}"


def cost_verdict(settings: Sequence[SettingSummary], curves: Sequence[Curve], spent: Spent) -> Verdict:
    """What an answer costs, at the shortest and the longest context where there are several."""
    asked = [one for one in settings if asks_model(one) and one.answered]
    total = ""
    if spent.calls:
        what = money_text(spent.money) if spent.money else f"{amount(spent.tokens)} tokens"
        total = f"{what} spent in all runs, in {counted(spent.calls, 'call')}."
    if not asked:
        return Verdict(question=COST, answer="Nothing", text=f"No model was asked for an answer. {total}".strip())
    lacking = list(dict.fromkeys(str(one.values["model"]) for one in asked if one.cost("money") is None))
    unit, show = ("tokens", amount) if lacking else ("money", money_text)
    longest = _longest(curves) if curves else None
    along = [(one.setting, _told(longest, one).partition(" ")[0]) for one in longest.points] if longest else []
    if not along or not all(asks_model(one) for one, _ in along):
        axes = varying_axes(settings)[0]
        along = [(one, named(one.values, axes)) for one in sorted(asked, key=lambda one: one.cost(unit) or 0.0)]
    (low, least), *_, (high, most) = [(show(one.cost(unit)), name) for one, name in (along[0], *along)]
    answer = f"{low} to {high}" if low != high else low
    parts = [f"{low} at {least}, {high} at {most}."] if low != high else []
    if lacking:
        parts.append(f"The experiment has no price for {listed(lacking)}.")
    text = " ".join([*parts, total]).strip()
    return Verdict(question=COST, answer=f"{answer} tokens an answer" if lacking else f"{answer} an answer", text=text)
