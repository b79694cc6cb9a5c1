"""The best of several settings or of a curve, the setting to deploy, and the Pareto front of score and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf
from typing import Any

from oprag.compare.analysis.differences import SettingDifference, compared, highest
from oprag.compare.analysis.settings import counted, curves_along, difference_text, listed, named, varying_axes
from oprag.compare.analysis.summary import MANY, SettingSummary

__all__ = ["Best", "Curve", "best_of", "choose_economical", "curves_of"]

_TOKEN_TOLERANCE = 1.01  # within one token budget, orders differ by a few tokens


@dataclass(frozen=True, kw_only=True)
class Best:
    """The setting with the highest score, and whether it is significantly better than the others.

    The highest of several means is high partly by chance. It is significantly better only if its paired difference to
    every other setting has an interval above 0 and a p-value below 0.05, corrected for all comparisons of the
    experiment in the metric. If all settings were equally good, at most one experiment in twenty would have one.

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
        summary = self.setting.scores[self.metric]
        text = f"{self._named(self.setting)} has the highest {self.metric}, {summary.describe()}"
        if self.tied:
            text += f", tied on every question with {listed([self._named(one) for one in self.tied])}"
        if not self.others:
            return text if self.tied else f"{text}, n = {summary.n:,}; there is nothing to compare it with"
        worse = f"{len(self.others) - len(self.rivals):,} of {len(self.others):,}"
        corrected = f" (p corrected for {self.comparisons:,} comparisons)" if self.comparisons > 1 else ""
        closest = f"{self._named(self.others[0].baseline)} ({difference_text(self.others[0].difference)})"
        return f"{text}, significantly better than {worse} others{corrected}; the closest is {closest}"

    def _named(self, setting: SettingSummary) -> str:
        return named(setting.values, self.axes) or "the only setting"


@dataclass(frozen=True, kw_only=True)
class Curve(Best):
    """Settings that differ only in a numeric axis, and the best value of that axis, if it is significantly the best.

    Attributes:
        metric: The metric.
        setting: The highest setting of the curve, as in `Best`.
        others: The highest setting compared with each of the others that are not tied, smallest difference first.
        tied: Settings with the same score in every question.
        axes: The axis of the curve.
        axis: Name of the axis.
        values: Values on the other axes.
        points: Settings with scores, in ascending order of their values on the axis.
    """

    axis: str
    values: Mapping[str, Any]
    points: tuple[SettingSummary, ...]

    @property
    def contenders(self) -> tuple[SettingSummary, ...]:
        """The highest point, and all points that are not significantly worse."""
        near = [self.setting, *self.tied, *(one.baseline for one in self.rivals)]
        return tuple(point for point in self.points if point in near)

    @property
    def sweet_spot(self) -> SettingSummary | None:
        """The highest point, if every other point is significantly worse; None if the curve is flat at the top."""
        return self.setting if self.significant and not self.tied else None

    def describe(self) -> str:
        """One sentence with numbers: the sweet spot, or the values at which the curve is flat."""
        text = super().describe()
        if self.sweet_spot is not None:
            return f"sweet spot: {text}"
        values = ", ".join(self._named(point) for point in self.contenders)
        return f"flat at {values}: {text}" if len(self.points) > 1 else text


def best_of(settings: Sequence[SettingSummary], metric: str) -> Best:
    """The setting with the highest score, compared with every other one, question by question."""
    scored = [setting for setting in settings if metric in setting.scores]
    return Best(**_best(scored, metric), axes=tuple(varying_axes(settings)))


def curves_of(settings: Sequence[SettingSummary], axis: str, metric: str) -> list[Curve]:
    """Curves over a numeric axis with scores of a metric, in grid order."""
    return [
        Curve(**_best(scored, metric, axis), axes=(axis,), axis=axis, values=values, points=tuple(scored))
        for values, members in curves_along(settings, axis)
        if (scored := [one for one in members if metric in one.scores])
    ]


def _best(scored: Sequence[SettingSummary], metric: str, axis: str | None = None) -> dict[str, Any]:
    """Fields of a `Best`."""
    top = highest(scored, metric)
    others = [compared(top, one, metric, axis) for one in scored if one is not top]
    others.sort(key=lambda one: -1.0 if one.difference.mean is None else one.difference.mean)
    return {
        "metric": metric,
        "setting": top,
        "others": tuple(one for one in others if not one.difference.tied),
        "tied": tuple(one.baseline for one in others if one.difference.tied),
    }


def choose_economical(settings: Sequence[SettingSummary], metric: str) -> tuple[SettingSummary, str]:
    """The setting worth deploying, with the reason in words.

    The fewest tokens within one standard error of the highest: the one-standard-error rule (Breiman, Friedman, Olshen
    and Stone 1984, Classification and Regression Trees, 3.4.3), with the standard error of the paired difference. A
    setting that lacks more than 10 % of the scores that another one has is left out: its failures would be deployed.
    """
    axes = varying_axes(settings)
    settings = [one for one in settings if one.values.get("order") != "random"] or settings
    most, considered = max((one.scores[metric].n for one in settings), default=0), len(settings)
    settings = [one for one in settings if one.scores[metric].n >= (1 - MANY) * most]
    left_out = considered - len(settings)
    top = highest(settings, metric)
    above = [(one, compared(top, one, metric).difference) for one in settings]
    near = [one for one, apart in above if apart.mean is not None and apart.mean <= (apart.standard_error or 0.0)]
    limit = _TOKEN_TOLERANCE * min(map(_tokens, near))
    alike = [one for one in near if _tokens(one) <= limit]
    # Equal also if no tokens are known, as of own pipelines.
    chosen = min(alike, key=lambda one: (one.values.get("order") != "source", _tokens(one), one is not top))
    why = f"the highest {metric}"
    if chosen is not top:
        within = f"of the {len(near)} settings within one standard error (of the paired difference) of"
        why = f"the fewest tokens {within} {why} ({top.scores[metric].describe()} at {named(top.values, axes)})"
    if isinf(_tokens(chosen)):
        why += "; its tokens are unknown"
    elif any(_tokens(one) < _tokens(chosen) for one in near):
        why += "; among those within 1 % of the fewest tokens, the one in source order"
    if left_out:
        why += f"; {counted(left_out, 'setting')} with scores for too few questions left out"
    return chosen, why


def _tokens(setting: SettingSummary) -> float:
    """Input plus output tokens of the model, or context tokens if no model is used; infinite if unknown."""
    cost = setting.cost("tokens" if setting.asks_model else "context_tokens")
    return inf if cost is None else cost
