"""What the sections are made of, each part of it read or computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from oprag.compare.better import NOT_BETTER, check_metric
from oprag.compare.html.texts import Texts
from oprag.compare.html.words import named, value_text
from oprag.compare.measurements import MeasuredSetting, measured_table
from oprag.compare.reading import KeptAnswer, Results, opened_database
from oprag.compare.sequence import values_of
from oprag.compare.setting import Setting, settings_of, varying_axes
from oprag.compare.table import CellSummary, cell_table, metrics_of
from oprag.errors import OptionError

__all__ = ["Material", "metric_of", "tokens_of"]


def metric_of(results: Results, wanted: str | None) -> str | None:
    """The metric that charts show.

    Args:
        results: The results.
        wanted: Its name; by default the first that there are scores of, the accuracy of choices before all others.

    Returns:
        None where nothing is scored.

    Raises:
        OptionError: There are no scores of it, or more of it is not better.
    """
    there = [name for name in metrics_of(results) if name not in NOT_BETTER]
    if wanted is not None:
        check_metric(wanted, results)
        if wanted not in there:
            raise OptionError(
                f"no answer has a score of {wanted!r}; there are scores of {', '.join(there) or 'none'}", wanted
            )
        return wanted
    return "choice_accuracy" if "choice_accuracy" in there else next(iter(there), None)


def tokens_of(answer: KeptAnswer) -> int:
    """The tokens that models read and wrote for an answer; without a model, those of its context."""
    return answer.input_tokens + answer.output_tokens if answer.calls else answer.context_tokens or 0


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
        return metrics_of(self.results)

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
    def seconds(self) -> Mapping[str, Mapping[str, float]]:
        """What answers took by cell and question, where it was measured: the mean of retrieval and generation."""
        found: dict[str, dict[str, float]] = {}
        with opened_database(self.path).reading() as connection:
            for cell, question, seconds in connection.execute(
                "SELECT measured.cell, measured.question, sum(measured.seconds) FROM "
                "(SELECT cells.key AS cell, questions.key AS question, "
                "avg(seconds) AS seconds FROM measurements JOIN cells ON cells.id = measurements.cell "
                "JOIN questions ON questions.id = measurements.question WHERE phase != 'indexing' "
                "GROUP BY cells.key, questions.key, phase) AS measured GROUP BY measured.cell, measured.question"
            ):
                found.setdefault(cell, {})[question] = seconds
        return {cell.key: found[cell.key] for cell in self.results.cells if cell.key in found}

    @cached_property
    def routes(self) -> Mapping[str, Counter[str]]:
        """How many answers of each cell went which way, of the cells whose method has ways."""
        found: dict[str, Counter[str]] = {}
        asked = set(self.results.clusters)
        with opened_database(self.path).reading() as connection:
            for cell, question, route in connection.execute(
                "SELECT cells.key, questions.key, route FROM answers JOIN cells ON cells.id = answers.cell "
                "JOIN questions ON questions.id = answers.question WHERE route IS NOT NULL"
            ):
                if question in asked:
                    found.setdefault(cell, Counter())[route] += 1
        return found

    def values_of(self, axis: str) -> list[Any]:
        """The values of an axis that settings have, in the sequence of the grid."""
        there = [setting.values[axis] for setting in self.settings if axis in setting.values]
        listed = [value for value in values_of(self.results.described)[axis] if value in there]
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
