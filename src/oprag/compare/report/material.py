"""What the sections are made of, each part of it read or computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oprag.compare.analysis.differences import ComparisonFamily
from oprag.compare.analysis.pivot import Pivot, pivot_of
from oprag.compare.analysis.settings import HasValues, grid_values, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import named, value_text
from oprag.compare.metrics.registry import check_better, more_is_better
from oprag.compare.report.texts import Texts
from oprag.compare.results import Results
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["COSTS", "Material", "metric_of"]

_UNSHOWN = 100  # resamples of the intervals of pivots, which are not shown
COSTS = {
    "tokens": "tokens of an answer, in and out",
    "context_tokens": "tokens of the context",
    "seconds": "seconds of an answer, retrieval and generation",
}
"""What answers cost, in words."""


def metric_of(results: Results, wanted: str | None) -> str | None:
    """The metric that charts show.

    Args:
        results: The results.
        wanted: Its name; by default the first that the experiment names, more of which is better, and that there are
            scores of.

    Returns:
        None where nothing is scored.

    Raises:
        OptionError: There are no scores of it, or more of it is not better.
    """
    there = [name for name in results.metrics if more_is_better(name)]
    if wanted is not None:
        check_better(wanted)
        if wanted not in there:
            raise OptionError(
                f"no answer has a score of {describe(wanted)}; there are scores of {', '.join(there) or 'none'}", wanted
            )
        return wanted
    return next(iter(there), None)


@dataclass
class Material:
    """What there is of an experiment.

    Attributes:
        results: The results.
        metric: The metric of the charts; None where nothing is scored.
        texts: The texts of the documents, or why they are not there.
    """

    results: Results
    metric: str | None
    texts: Texts

    @property
    def settings(self) -> Sequence[SettingSummary]:
        """What each setting scored and took, in the sequence of the grid."""
        return self.results.settings

    @property
    def metrics(self) -> Sequence[str]:
        """The metrics that there are scores of."""
        return self.results.metrics

    @property
    def differ(self) -> Sequence[str]:
        """The axes in which settings differ."""
        return self.results.axes

    @cached_property
    def same(self) -> dict[str, Any]:
        """The values of the other axes."""
        return varying_axes(self.settings)[1]

    @cached_property
    def cost(self) -> str:
        """The tokens that are counted; those of the settings that the metric scores."""
        return self.results.usual_cost(self.metric)

    @cached_property
    def by_data(self) -> dict[str, list[SettingSummary]]:
        """The settings of each data set; scores of different questions are not compared."""
        found: dict[str, list[SettingSummary]] = {}
        for setting in self.settings:
            found.setdefault(str(setting.values["data"]), []).append(setting)
        return found

    def pivot(
        self, rows: str, columns: str, *, metric: str, value: str, settings: Sequence[SettingSummary] | None = None
    ) -> Pivot:
        """The table of two axes, see `pivot_of`; of all settings by default."""
        numbers = None if settings is None else [setting.number for setting in settings]
        return pivot_of(
            self.results.matrix,
            rows=rows,
            columns=columns,
            metric=metric,
            value=value,
            settings=numbers,
            resamples=_UNSHOWN,
        )

    @property
    def family(self) -> ComparisonFamily:
        """The comparisons in the metric of the report, whose p-values are corrected together."""
        return self.results.family(str(self.metric))

    def values_of(self, axis: str) -> list[Any]:
        """The values of an axis that settings have, in the sequence of the grid."""
        there = [setting.values[axis] for setting in self.settings if axis in setting.values]
        listed = [value for value in grid_values(self.results.matrix.described)[axis] if value in there]
        found: list[Any] = []
        for value in (*listed, *there):
            if value not in found:
                found.append(value)
        return found

    def names(self, settings: Sequence[HasValues]) -> list[str]:
        """What some settings are called among themselves: by the axes in which they differ, but for the method."""
        differ = [name for name in varying_axes(settings)[0] if name != "method"]
        return [named(one.values, differ) or value_text(one.values.get("method")) for one in settings]

    def name(self, values: Mapping[str, Any], without: str = "") -> str:
        """What a setting is called: its values on the axes in which settings differ, but for one; else its method."""
        found = named(values, [name for name in self.differ if name != without])
        return found or value_text(values.get("method", "all settings"))
