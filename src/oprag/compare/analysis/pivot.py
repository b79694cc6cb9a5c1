"""Pivot tables: scores or costs over two axes, as papers print them."""

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
    """Scores or costs of the settings with one pair of axis values.

    Attributes:
        summary: Summary over questions, with an interval if that is shown; the value of each question is averaged over
            all settings of the cell.
        settings: Number of settings with values.
        lacking: Number of further settings of the cell that have no answered question.
        asked: Number of questions to answer; the summary covers fewer if some failed, were not tried, or lack a value
            in one of the settings.
    """

    summary: Summary
    settings: int
    lacking: int
    asked: int


@dataclass(frozen=True, kw_only=True)
class Pivot:
    """Table over two axes.

    Attributes:
        rows: Axis of the rows.
        columns: Axis of the columns.
        metric: Metric or cost.
        value: Statistic shown, one of `PIVOT_VALUES`.
        row_values: Values of the rows, in grid order.
        column_values: Values of the columns, in grid order.
        cells: Cells by (row value, column value); pairs without any value are missing.
    """

    rows: str
    columns: str
    metric: str
    value: str
    row_values: tuple[Any, ...]
    column_values: tuple[Any, ...]
    cells: Mapping[tuple[Any, Any], PivotCell] = field(repr=False)

    def texts(self) -> list[list[str]]:
        """Text of each cell, row by row; "–" for a missing cell."""
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
            several = f"; the value of each question is averaged over up to {most:,} settings per cell"
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
            # Other cells of the row or column may average over settings that this one lacks.
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
    """Build the table over two axes; settings in which an axis has no effect are listed under "–".

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
        with_values = [one.number for one in some if not np.isnan(of_all[one.number]).all()]
        statuses = [matrix.status[list(one.cells)] for one in some]
        count += len(with_values)
        lacking += sum(not np.any(status == ANSWERED) for status in statuses)
        asked += max(int(np.sum(row != NOT_ASKED)) for status in statuses for row in status)
        if with_values:
            means = mean_over(of_all[with_values])
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
