"""The best of several settings or of a curve, the setting to deploy, and the Pareto front of score and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf
from typing import Any, NamedTuple

from oprag.compare.analysis.differences import SettingDifference, highest
from oprag.compare.analysis.settings import curves_along, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import assignments
from oprag.compare.stats import Summary
from oprag.errors import OptionError

__all__ = ["Best", "Curve", "best_of", "choose_economical", "curves_of", "pareto_front"]

_MAX_NAMED = 3  # other settings listed in a sentence
_TOKEN_TOLERANCE = 1.01
"""Factor up to which token counts are treated as equal: within one token budget, orders differ by a few tokens."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The setting with the highest score, and whether it is significantly better than the others.

    The highest of several means is high partly by chance. It is therefore significantly better only if its paired
    difference to every other setting, question by question, has an interval above 0 and a p-value below
    0.05, corrected for all comparisons of the experiment in the metric. If all settings were equally good, at
    most one experiment in twenty would have such a setting.

    Attributes:
        metric: The metric.
        setting: The highest setting: over the questions that both have, its mean is above that of every other one (or
            of most of them, if some lack questions).
        others: The highest setting compared with each of the others (`baseline`) that are not tied, smallest difference
            first.
        tied: Settings with the same score in every question, such as all orders in `evidence_coverage`.
        axes: Axes in which settings differ.
    """

    metric: str
    setting: SettingSummary
    others: tuple[SettingDifference, ...] = field(repr=False)
    tied: tuple[SettingSummary, ...] = field(repr=False)
    axes: tuple[str, ...] = field(repr=False)

    @property
    def summary(self) -> Summary:
        """Scores of the setting."""
        return self.setting.scores[self.metric]

    @property
    def comparisons(self) -> int:
        """Number of comparisons that p-values are corrected for."""
        return self.setting.matrix.family(self.metric).comparisons

    @property
    def rivals(self) -> tuple[SettingDifference, ...]:
        """The others that are not significantly worse."""
        return tuple(one for one in self.others if not one.difference.significantly_higher)

    @property
    def significant(self) -> bool:
        """Whether every other setting is significantly worse; if not, other questions might yield another highest."""
        return bool(self.others) and not self.rivals

    def describe(self) -> str:
        """One sentence: the highest setting, and whether it is significantly better than the others."""
        text = f"{self._named(self.setting)} has the highest {self.metric}, {self.summary.describe()}"
        if self.tied:
            text += f", tied on every question with {_listed([self._named(one) for one in self.tied])}"
        if not self.others:
            return text if self.tied else f"{text}, n = {self.summary.n:,}; there is nothing to compare it with"
        count, named = len(self.others), self.rivals or self.others[:1]
        many = "each" if self.significant else "any" if len(named) == count else f"{len(named):,}"
        corrected = f" (p corrected for {self.comparisons:,} comparisons)" if self.comparisons > 1 else ""
        than = f"{'the other' if count == 1 else f'{many} of the {count:,} others'}{corrected}: "
        closest = "the closest is " if self.significant and count > 1 else ""
        texts = _listed([f"{self._named(one.baseline)} ({one.describe()})" for one in named])
        return f"{text}, and is {'' if self.significant else 'not '}significantly better than {than}{closest}{texts}"

    def _named(self, setting: SettingSummary) -> str:
        return assignments(setting.values, self.axes) or "the only setting"


class CurvePoint(NamedTuple):
    """A point of a curve: the value on the axis, the setting, and its scores over all questions that have one."""

    value: Any
    setting: SettingSummary
    summary: Summary

    @property
    def context_tokens(self) -> float | None:
        """Mean number of context tokens; None without a context."""
        return self.setting.cost("context_tokens")


@dataclass(frozen=True, kw_only=True)
class Curve(Best):
    """Settings that differ only in a numeric axis, and the best value of that axis, if it is significantly the best.

    Attributes:
        metric: The metric.
        setting: The highest setting of the curve, as in `Best`.
        others: The highest setting compared with each of the others (`baseline`) that are not tied, smallest difference
            first.
        tied: Settings with the same score in every question.
        axes: The axis of the curve.
        axis: Name of the axis.
        values: Values on the other axes.
        points: Points with scores, in ascending order of their values.
        unscored: Values without scores, because all questions failed or were not tried yet.
    """

    axis: str
    values: Mapping[str, Any]
    points: tuple[CurvePoint, ...]
    unscored: tuple[Any, ...] = ()

    @property
    def highest(self) -> CurvePoint:
        """The point of the highest setting."""
        return next(point for point in self.points if point.setting is self.setting)

    @property
    def contenders(self) -> tuple[CurvePoint, ...]:
        """The highest point, and all points that are not significantly worse."""
        near = [self.setting, *self.tied, *(one.baseline for one in self.rivals)]
        return tuple(point for point in self.points if point.setting in near)

    @property
    def sweet_spot(self) -> CurvePoint | None:
        """The highest point, if every other point is significantly worse; None if the curve is flat at the top."""
        return self.highest if self.significant and not self.tied else None

    def describe(self) -> str:
        """One sentence with numbers: the sweet spot, or the values at which the curve is flat."""
        text, spot = super().describe(), self.sweet_spot
        if spot is not None:
            text = f"sweet spot: {text}"
            if spot in (self.points[0], self.points[-1]):
                end = "largest" if spot is self.points[-1] else "smallest"
                text += f"; {self._at(spot.value)} is the {end} value tried, so the peak may be beyond it"
        elif len(self.points) > 1:
            text = f"flat at {self._at(*(point.value for point in self.contenders))}: {text}"
        if self.unscored:
            text += f"; no scores at {self._at(*self.unscored)}"
        return text

    def _at(self, *values: Any) -> str:
        return ", ".join(assignments({self.axis: value}, [self.axis]) for value in values)


def best_of(settings: Sequence[SettingSummary], metric: str) -> Best:
    """The setting with the highest score, compared with every other one, question by question.

    Raises:
        OptionError: The metric has no scores.
    """
    scored = [setting for setting in settings if metric in setting.scores]
    if not scored:
        raise OptionError(f"no setting has scores for {metric!r}", metric)
    return Best(**_best(scored, metric), axes=tuple(varying_axes(settings)[0]))


def curves_of(settings: Sequence[SettingSummary], axis: str, metric: str) -> list[Curve]:
    """Curves over a numeric axis with scores of a metric, in grid order."""
    return [
        Curve(
            **_best(scored, metric, axis),
            axes=(axis,),
            axis=axis,
            values=values,
            points=tuple(CurvePoint(one.values[axis], one, one.scores[metric]) for one in scored),
            unscored=tuple(one.values[axis] for one in members if one not in scored),
        )
        for values, members in curves_along(settings, axis)
        if (scored := [one for one in members if metric in one.scores])
    ]


def _best(scored: Sequence[SettingSummary], metric: str, axis: str | None = None) -> dict[str, Any]:
    """Fields of a `Best`."""
    top = highest(scored, metric)
    family = top.matrix.family(metric)
    others = [
        SettingDifference(
            metric=metric, setting=top, baseline=one, difference=family.compare(top.number, one.number), axis=axis
        )
        for one in scored
        if one is not top
    ]
    others.sort(key=lambda one: -1.0 if one.difference.mean is None else one.difference.mean)
    return {
        "metric": metric,
        "setting": top,
        "others": tuple(one for one in others if not one.difference.tied),
        "tied": tuple(one.baseline for one in others if one.difference.tied),
    }


def choose_economical(settings: Sequence[SettingSummary], metric: str) -> tuple[SettingSummary, str]:
    """The setting worth deploying, with the reason in words.

    It has the fewest tokens of all settings that are at most one standard error below the highest one.

    This is the one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984, Classification and Regression Trees,
    3.4.3), with the standard error of the paired difference instead of that of the highest mean, since all settings
    answer the same questions. Tokens are the model's input plus output tokens, or the context tokens if no model is
    used. Among settings within 1 % of the fewest tokens, source order is preferred. Random order is a control, and is
    chosen only if there is nothing else.
    """
    axes = varying_axes(settings)[0]
    controls = [one for one in settings if one.values.get("order") == "random"]
    settings = [one for one in settings if one not in controls] or settings
    top = highest(settings, metric)
    near = [one for one in settings if _is_near(top, one, metric)]
    limit = _TOKEN_TOLERANCE * min(map(_tokens, near))
    alike = [one for one in near if _tokens(one) <= limit]
    chosen = min(alike, key=lambda one: (one.values.get("order") != "source", _tokens(one)))

    def at(setting: SettingSummary) -> str:
        return f"{setting.scores[metric].describe()} at {assignments(setting.values, axes)}"

    why = f"the highest {metric}"
    if chosen is not top:
        within = f"of the {len(near)} settings within one standard error (of the paired difference) of"
        why = f"the fewest tokens {within} {why} ({at(top)})"
    elif len(near) > 1:
        why += "; none of the settings within one standard error of it has fewer tokens"
    if isinf(_tokens(chosen)):
        why += "; its tokens are unknown"
    elif any(_tokens(one) < _tokens(chosen) for one in near):
        why += "; among those within 1 % of the fewest tokens, the one in source order"
    chance = max([top, *controls], key=lambda one: one.scores[metric].mean or 0.0)
    if chance not in settings:
        why += f"; random order, a control, scores even higher ({at(chance)})"
    return chosen, why


def _is_near(top: SettingSummary, other: SettingSummary, metric: str) -> bool:
    """Whether the highest setting is above it by at most one standard error of the mean difference."""
    apart = top.matrix.family(metric).compare(top.number, other.number)
    return apart.mean is not None and apart.mean <= (apart.standard_error or 0.0)


def _tokens(setting: SettingSummary) -> float:
    """Input plus output tokens of the model, or context tokens if no model is used; infinite if unknown."""
    cost = setting.cost("tokens" if setting.asks_model else "context_tokens")
    return inf if cost is None else cost


def pareto_front(scores: Sequence[float], costs: Sequence[float]) -> list[int]:
    """Indices of the points that no other point dominates, cheapest first.

    A point dominates another if its score is at least as high and its cost at least as low, and one of both is better.
    Numbers are compared without intervals: two points of the front need not differ significantly. Equal points are
    either all included or all left out.

    Example:
        >>> pareto_front(scores=[0.5, 0.4, 0.7, 0.6], costs=[10, 20, 90, 40])
        [0, 3, 2]
    """
    front: list[int] = []
    for place in sorted(range(len(scores)), key=lambda number: (costs[number], -scores[number])):
        last = front[-1] if front else None
        if last is None or scores[place] > scores[last] or (scores[place], costs[place]) == (scores[last], costs[last]):
            front.append(place)
    return front


def _listed(texts: Sequence[str]) -> str:
    """The first few texts, and the number of the others."""
    more = [f"and {len(texts) - _MAX_NAMED:,} more"] if len(texts) > _MAX_NAMED else []
    return "; ".join([*texts[:_MAX_NAMED], *more])
