"""Two axes against each other: a table of scores or costs, as papers print it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oprag.compare.analysis.matrix import ANSWERED, NOT_ASKED, ResultMatrix, mean_over
from oprag.compare.analysis.settings import Setting, by_data
from oprag.compare.analysis.wording import printable
from oprag.compare.stats.summary import Summary, summarise
from oprag.options import check_choice
from oprag.text_table import html_table, table

__all__ = ["PIVOT_VALUES", "Pivot", "PivotCell", "pivot_of"]

_WITH_INTERVAL = "mean [interval]"
PIVOT_VALUES = ("median ± sd", _WITH_INTERVAL, "mean", "median", "n")
_NO_EFFECT = "–"


@dataclass(frozen=True, kw_only=True)
class PivotCell:
    """Scores or costs of the settings with two values.

    Attributes:
        summary: A summary over questions, with an interval if that is shown; where several settings have these values,
            the value of each question is the mean over them.
        settings: The number of settings.
        lacking: The number of further settings with these values, of which no question was answered.
        asked: The number of questions that they were asked; where the summary is of fewer, the others failed, were not
            tried or have no such value in one of the settings.
    """

    summary: Summary
    settings: int
    lacking: int
    asked: int


@dataclass(frozen=True, kw_only=True)
class Pivot:
    """A table of two axes.

    Attributes:
        rows: The axis of the rows.
        columns: The axis of the columns.
        metric: The metric, or the cost.
        value: The statistic that is shown, one of `PIVOT_VALUES`.
        row_values: The values of the rows, in the sequence of the grid.
        column_values: The values of the columns.
        cells: What there is of each pair of values.
    """

    rows: str
    columns: str
    metric: str
    value: str
    row_values: tuple[Any, ...]
    column_values: tuple[Any, ...]
    cells: Mapping[tuple[Any, Any], PivotCell] = field(repr=False)

    def texts(self) -> list[list[str]]:
        """The text of each cell, row by row; "–" where there is nothing."""
        return [[self._text(self.cells.get((row, column))) for column in self.column_values] for row in self.row_values]

    def __str__(self) -> str:
        return "\n".join([self._title(), *table(self._head(), self._lines(), indent="")])

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._head(), self._lines())

    def _head(self) -> list[str]:
        return [f"{self.rows} \\ {self.columns}", *(printable(value) for value in self.column_values)]

    def _lines(self) -> list[list[str]]:
        return [[printable(row), *texts] for row, texts in zip(self.row_values, self.texts(), strict=True)]

    def _title(self) -> str:
        several = ""
        if most := max((cell.settings for cell in self.cells.values() if cell.settings > 1), default=0):
            several = f"; the value of a question is the mean over the settings of a cell, up to {most:,}"
        return f"{self.metric}, {self.value} over questions{several}"

    def _text(self, cell: PivotCell | None) -> str:
        if cell is None:
            return _NO_EFFECT
        summary = cell.summary
        if self.value == "n":
            return f"{summary.n:,}"
        text = _figure(summary.median if self.value.startswith("median") else summary.mean)
        if self.value == "median ± sd" and summary.standard_deviation is not None:
            text += f" ± {_figure(summary.standard_deviation)}"
        if summary.low is not None:
            text += f" [{_figure(summary.low)}, {_figure(summary.high)}]"
        lacks = [f"n={summary.n:,}"] if summary.n < cell.asked else []
        if cell.lacking:
            # What the others of its row or column are a mean over, it is not.
            lacks.append(f"{cell.settings:,} of {cell.settings + cell.lacking:,} settings")
        return f"{text} ({', '.join(lacks)})" if lacks else text


def pivot_of(
    matrix: ResultMatrix,
    *,
    rows: str,
    columns: str,
    metric: str,
    value: str = PIVOT_VALUES[0],
    settings: Collection[int] | None = None,
) -> Pivot:
    """The table of two axes, of some settings; one in which an axis has no effect is under "–".

    Raises:
        OptionError: The value is not one of `PIVOT_VALUES`.
    """
    check_choice("value", value, PIVOT_VALUES)
    members: dict[tuple[Any, Any], list[Setting]] = {}
    for setting in matrix.settings:
        if settings is None or setting.number in settings:
            place = setting.values.get(rows, _NO_EFFECT), setting.values.get(columns, _NO_EFFECT)
            members.setdefault(place, []).append(setting)
    cells = {place: cell for place, some in members.items() if (cell := _cell(matrix, some, metric, value)) is not None}
    return Pivot(
        rows=rows,
        columns=columns,
        metric=metric,
        value=value,
        row_values=tuple(dict.fromkeys(row for row, _ in members)),
        column_values=tuple(dict.fromkeys(column for _, column in members)),
        cells=cells,
    )


def _cell(matrix: ResultMatrix, settings: Sequence[Setting], metric: str, value: str) -> PivotCell | None:
    of_all = matrix.setting_values(metric)
    values = np.full(len(matrix.questions), np.nan)
    count = lacking = asked = 0
    for some in by_data(settings).values():
        having = [one.number for one in some if not np.isnan(of_all[one.number]).all()]
        cells = [matrix.status[list(one.cells)] for one in some]
        count += len(having)
        lacking += sum(not np.any(status == ANSWERED) for status in cells)
        asked += max(int(np.sum(row != NOT_ASKED)) for status in cells for row in status)
        if having:
            means = mean_over(of_all[having])
            values = np.where(np.isnan(means), values, means)
    if np.isnan(values).all():
        return None
    resamples = matrix.resamples if value == _WITH_INTERVAL else 0
    summary = summarise(values, matrix.clusters, confidence=matrix.confidence, resamples=resamples)
    return PivotCell(summary=summary, settings=count, lacking=lacking, asked=asked)


def _figure(number: float | None) -> str:
    if number is None:
        return _NO_EFFECT
    digits = 0 if abs(number) >= 1_000 else 1 if abs(number) >= 10 else 3
    return f"{number:,.{digits}f}"
