"""The best setting, and whether it is shown to be better than the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oprag.compare.highest import highest, lags
from oprag.compare.reading import Results
from oprag.compare.setting import Setting
from oprag.compare.statistics import Difference, Summary
from oprag.compare.table import CellSummary
from oprag.errors import OptionError

__all__ = ["Best", "Other", "best_of"]

_TOLD = 3  # others that are named in a sentence


@dataclass(frozen=True, kw_only=True)
class Other:
    """A setting beside the highest one.

    Attributes:
        setting: The setting.
        difference: The score of the highest minus the score here, over the questions that both have.
        adjusted_p: Its p-value among those of all the others, by Holm; None without questions.
        shown: Whether it is shown to be worse.
    """

    setting: CellSummary
    difference: Difference
    adjusted_p: float | None
    shown: bool


@dataclass(frozen=True, kw_only=True)
class Best:
    """The setting with the highest scores, and how sure it is that it is the best one.

    Attributes:
        metric: The metric.
        setting: The setting that is highest.
        summary: Its scores.
        shown: Whether every other setting is shown to be worse. Where this is False, it is the highest and no more:
            with other questions another one might be.
        others: The other settings, the nearest first.
        axes: The axes in which settings differ.
    """

    metric: str
    setting: CellSummary
    summary: Summary
    shown: bool
    others: tuple[Other, ...] = field(repr=False)
    axes: tuple[str, ...] = field(repr=False)

    @property
    def rivals(self) -> tuple[Other, ...]:
        """The other settings that are not shown to be worse, the nearest first."""
        return tuple(other for other in self.others if not other.shown)

    @property
    def values(self) -> dict[str, Any]:
        """The values of the setting on the axes in which settings differ."""
        return {name: self.setting.values[name] for name in self.axes if name in self.setting.values}

    def describe(self) -> str:
        """One sentence: the highest setting, and whether it is shown to be better than the others."""
        text = f"{self._named(self.setting)} has the highest {self.metric}, {self.summary.describe()}"
        if not self.others:
            return f"{text}, n = {self.summary.n:,}; there is nothing to compare it with"
        if self.shown:
            told = self.others[:1]
            text += f", and is shown to be better than each of the {len(self.others):,} others; the nearest is "
        else:
            told = self.rivals[:_TOLD]
            text += f", and is not shown to be better than {len(self.rivals):,} of the {len(self.others):,} others: "
        text += "; ".join(f"{self._named(one.setting)} ({_told(one)})" for one in told)
        more = 0 if self.shown else len(self.rivals) - len(told)
        return f"{text}; and {more:,} more" if more else text

    def _named(self, setting: CellSummary) -> str:
        names = [f"{name}={_value(setting.values[name])}" for name in self.axes if name in setting.values]
        return ", ".join(names) or "the only setting"


def best_of(
    settings: Sequence[Setting],
    rows: Sequence[CellSummary],
    results: Results,
    metric: str,
    axes: Sequence[str],
    *,
    confidence: float,
    resamples: int | None = None,
) -> Best:
    """The setting with the highest scores, held against every other one, question by question.

    It is judged as a point of a curve is (`oprag.compare.sweet_spot`): shown to be better only where all paired
    differences have intervals above 0, and p-values below 1 - confidence after Holm's correction for all of them.

    Args:
        settings: The settings.
        rows: What they scored, in the same sequence.
        results: What they are settings of: one data set, since the questions of several differ.
        metric: The metric.
        axes: The axes in which settings differ.
        confidence: How often an interval holds the truth.
        resamples: How many samples are drawn.

    Raises:
        OptionError: There are no scores of the metric.
    """
    scored = [(setting, row) for setting, row in zip(settings, rows, strict=True) if metric in row.scores]
    if not scored:
        raise OptionError(f"there are no scores of {metric!r}", metric)
    scores = [setting.scores(metric) for setting, _ in scored]
    place = highest(scores)
    found = lags(scores, place, clusters=results.clusters, confidence=confidence, resamples=resamples)
    others = [Other(setting=scored[number][1], **lag._asdict()) for number, lag in found.items()]
    others.sort(key=lambda one: -1.0 if one.difference.mean is None else one.difference.mean)
    row = scored[place][1]
    return Best(
        metric=metric,
        setting=row,
        summary=row.scores[metric],
        shown=bool(others) and all(one.shown for one in others),
        others=tuple(others),
        axes=tuple(axes),
    )


def _told(other: Other) -> str:
    adjusted = "" if other.adjusted_p is None else f"; p = {other.adjusted_p:.2g}"
    return f"difference {other.difference.describe()}{adjusted}"


def _value(value: Any) -> str:
    return "none" if value is None else str(value)
