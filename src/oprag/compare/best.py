"""The best setting, and whether it is shown to be better than the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from oprag.compare.analysis.differences import Judgment
from oprag.compare.family import Family
from oprag.compare.highest import highest
from oprag.compare.setting import Setting
from oprag.compare.stats.summary import Summary
from oprag.compare.table import CellSummary
from oprag.errors import OptionError

__all__ = ["Best", "Other", "best_of"]

_TOLD = 3  # others that are named in a sentence


@dataclass(frozen=True, kw_only=True)
class Other(Judgment):
    """A setting beside the highest one, and what is known of the highest one minus this one.

    Attributes:
        setting: The setting.
    """

    setting: CellSummary


@dataclass(frozen=True, kw_only=True)
class Best:
    """The setting with the highest scores, and how sure it is that it is the best one.

    Attributes:
        metric: The metric.
        setting: The setting that is highest.
        summary: Its scores.
        shown: Whether each of the others is shown to be worse. Where this is False, it is the highest and no more:
            with other questions another one might be.
        others: The other settings, the nearest first.
        tied: The settings that have the same score in every question, as every order has of `evidence_coverage`.
        comparisons: The number of comparisons that p-values are corrected for.
        axes: The axes in which settings differ.
    """

    metric: str
    setting: CellSummary
    summary: Summary
    shown: bool
    others: tuple[Other, ...] = field(repr=False)
    tied: tuple[CellSummary, ...] = field(repr=False)
    comparisons: int
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
        if self.tied:
            text += f", tied in every question with {_listed([self._named(one) for one in self.tied])}"
        if not self.others:
            return text if self.tied else f"{text}, n = {self.summary.n:,}; there is nothing to compare it with"
        told = self.others[:1] if self.shown else self.rivals[:_TOLD]
        count, rivals = len(self.others), len(self.rivals)
        corrected = f" (p corrected for {self.comparisons:,} comparisons)" if self.comparisons > 1 else ""
        if count == 1:
            than = f"the other{corrected}: "
        elif self.shown:
            than = f"each of the {count:,} others{corrected}; the nearest is "
        else:
            than = f"{'any' if rivals == count else f'{rivals:,}'} of the {count:,} others{corrected}: "
        text += f", and is {'' if self.shown else 'not '}shown to be better than {than}"
        named = [f"{self._named(one.setting)} ({one.describe()})" for one in told]
        return text + _listed(named, 0 if self.shown else rivals - len(told))

    def _named(self, setting: CellSummary) -> str:
        names = [f"{name}={_value(setting.values[name])}" for name in self.axes if name in setting.values]
        return ", ".join(names) or "the only setting"


def best_of(
    settings: Sequence[Setting], rows: Sequence[CellSummary], metric: str, axes: Sequence[str], family: Family
) -> Best:
    """The setting with the highest scores, held against every other one, question by question.

    It is judged as a point of a curve is (`oprag.compare.sweet_spot`): shown to be better only where all paired
    differences have intervals above 0, and corrected p-values below 1 - confidence. Settings with the
    same score in every question cannot be told apart, and are no rivals.

    Args:
        settings: The settings, of one data set, since the questions of several differ.
        rows: What they scored, in the same sequence.
        metric: The metric.
        axes: The axes in which settings differ.
        family: The comparisons that p-values are corrected for.

    Raises:
        OptionError: There are no scores of the metric.
    """
    scored = [(setting, row) for setting, row in zip(settings, rows, strict=True) if metric in row.scores]
    if not scored:
        raise OptionError(f"there are no scores of {metric!r}", metric)
    scores = [setting.scores(metric) for setting, _ in scored]
    place = highest(scores)
    found = [
        Other(setting=row, **vars(family.judge(scores[place], scores[number])))
        for number, (_, row) in enumerate(scored)
        if number != place
    ]
    others = sorted(
        (one for one in found if not one.tied),
        key=lambda one: -1.0 if one.difference.mean is None else one.difference.mean,
    )
    row = scored[place][1]
    return Best(
        metric=metric,
        setting=row,
        summary=row.scores[metric],
        shown=bool(others) and all(one.shown for one in others),
        others=tuple(others),
        tied=tuple(one.setting for one in found if one.tied),
        comparisons=family.comparisons,
        axes=tuple(axes),
    )


def _listed(texts: Sequence[str], more: int | None = None) -> str:
    """The first few, and how many more there are."""
    more = max(0, len(texts) - _TOLD) if more is None else more
    return "; ".join([*texts[:_TOLD], *([f"and {more:,} more"] if more else [])])


def _value(value: Any) -> str:
    return "none" if value is None else str(value)
