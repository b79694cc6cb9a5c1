"""What the sections are made of, each part of it read or computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any

from oprag.compare.analysis.settings import grid_values, varying_axes
from oprag.compare.analysis.wording import named, value_text
from oprag.compare.db.reader import ResultsReader
from oprag.compare.family import Family, family_of
from oprag.compare.measurements import MeasuredSetting, measured_table
from oprag.compare.metrics.registry import more_is_better
from oprag.compare.pivot_table import Pivot, pivot_of
from oprag.compare.quantities import Seconds, read_seconds, usual_cost, values_by_question
from oprag.compare.reading import Results
from oprag.compare.report.texts import Texts
from oprag.compare.setting import Setting, settings_of
from oprag.compare.table import CellSummary, cell_table, check_metric, metrics_of
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
    there = [name for name in _metrics(results) if more_is_better(name)]
    if wanted is not None:
        check_metric(wanted, results)
        if wanted not in there:
            raise OptionError(
                f"no answer has a score of {describe(wanted)}; there are scores of {', '.join(there) or 'none'}", wanted
            )
        return wanted
    return next(iter(there), None)


def _metrics(results: Results) -> list[str]:
    """The metrics that there are scores of, in the sequence of the experiment."""
    there = metrics_of(results)
    asked = [name for name in results.described.get("metrics", ()) if name in there]
    return [*asked, *(name for name in there if name not in asked)]


@dataclass
class Material:
    """What there is of an experiment.

    Attributes:
        path: The results file.
        results: What is in it.
        metric: The metric of the charts; None where nothing is scored.
        texts: The texts of the documents, or why they are not there.
    """

    path: Path
    results: Results
    metric: str | None
    texts: Texts

    @cached_property
    def settings(self) -> list[Setting]:
        """The settings, in the sequence of the grid."""
        return settings_of(self.results.cells)

    @cached_property
    def table(self) -> list[CellSummary]:
        """What each of the settings scored and took, in the same sequence."""
        return cell_table(self.results)

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics that there are scores of."""
        return _metrics(self.results)

    @cached_property
    def differ(self) -> list[str]:
        """The axes in which settings differ."""
        return varying_axes(self.table)[0]

    @cached_property
    def same(self) -> dict[str, Any]:
        """The values of the other axes."""
        return varying_axes(self.table)[1]

    @cached_property
    def measured(self) -> list[MeasuredSetting]:
        """What was measured of each setting."""
        return measured_table(self.results, self.path)

    @cached_property
    def seconds(self) -> Seconds:
        """What answers took, where it was measured."""
        return read_seconds(self.results, self.path)

    @cached_property
    def cost(self) -> str:
        """The tokens that are counted, see `usual_cost`; those of the settings that the metric scores."""
        scored = [row for row in self.table if self.metric is None or self.metric in row.scores]
        return usual_cost(scored or self.table)

    @cached_property
    def by_data(self) -> dict[str, list[int]]:
        """The numbers of the settings of each data set; scores of different questions are not compared."""
        found: dict[str, list[int]] = {}
        for number, setting in enumerate(self.settings):
            found.setdefault(str(setting.values["data"]), []).append(number)
        return found

    def pivot(
        self, rows: str, columns: str, *, metric: str, value: str, settings: Sequence[Setting] | None = None
    ) -> Pivot:
        """The table of two axes, see `pivot_of`; of all settings by default."""
        return pivot_of(
            self.settings if settings is None else settings,
            self.results,
            self.seconds,
            rows=rows,
            columns=columns,
            metric=metric,
            value=value,
            confidence=0.95,
            resamples=_UNSHOWN,
        )

    def mean(self, setting: Setting, name: str) -> float | None:
        """The mean of a metric or a cost over the questions of a setting; None without any."""
        values = values_by_question(setting, name, self.seconds)
        return fsum(values.values()) / len(values) if values else None

    @cached_property
    def family(self) -> Family:
        """The comparisons in the metric of the report, whose p-values are corrected together."""
        return family_of(self.results, str(self.metric))

    @cached_property
    def routes(self) -> Mapping[str, Counter[str]]:
        """How many answers of each cell went which way, of the cells whose method has ways."""
        found: dict[str, Counter[str]] = {}
        with ResultsReader(self.path, self.results.experiment) as reader:
            for answer in reader.answers():
                if answer.route is not None:
                    found.setdefault(reader.cells[answer.cell].key, Counter())[answer.route] += 1
        return found

    def values_of(self, axis: str) -> list[Any]:
        """The values of an axis that settings have, in the sequence of the grid."""
        there = [setting.values[axis] for setting in self.settings if axis in setting.values]
        listed = [value for value in grid_values(self.results.described)[axis] if value in there]
        found: list[Any] = []
        for value in (*listed, *there):
            if value not in found:
                found.append(value)
        return found

    def names(self, settings: Sequence[Setting]) -> list[str]:
        """What some settings are called among themselves: by the axes in which they differ, but for the method."""
        differ = [name for name in varying_axes(settings)[0] if name != "method"]
        return [named(one.values, differ) or value_text(one.values.get("method")) for one in settings]

    def name(self, values: Mapping[str, Any], without: str = "") -> str:
        """What a setting is called: its values on the axes in which settings differ, but for one; else its method."""
        found = named(values, [name for name in self.differ if name != without])
        return found or value_text(values.get("method", "all settings"))
