"""Pivot tables of two axes: the pairs that papers report, and the two thresholds."""

from __future__ import annotations

from collections.abc import Iterator

from oprag.compare.analysis.pivot import pivot_of
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.wording import value_text
from oprag.compare.report.costs import COSTS
from oprag.compare.report.page import SHADES, Heading, Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["section"]

_THRESHOLDS = ("similarity_threshold", "redundancy_threshold")
_PAIRS = (
    *(("embedder", "model"), ("store", "embedder"), ("method", "store"), ("method", "model"), ("method", "order")),
    _THRESHOLDS,
)
_MAX_COLUMNS = 9  # fits on a sheet of paper


def section(results: Results, metric: str | None) -> Section | None:
    """The pivot tables: median ± standard deviation as in Şakar and Emekci 2024, and means by threshold."""
    parts: list[Part] = [
        Text(
            "Statistics over questions. If several settings share a table cell, the value of each question is its mean "
            "over them. If grids differ, cells may average over different settings; the paired differences above keep "
            "all other axes equal. Higher values are darker."
        )
    ]
    for rows, columns in _PAIRS:
        if {rows, columns} <= {*results.axes} and (tables := [*_tables(results, metric, rows, columns)]):
            parts += [Heading(f"{rows} × {columns}"), *tables]
    return Section("pivots", "Two axes at a time", parts) if len(parts) > 1 else None


def _tables(results: Results, metric: str | None, rows: str, columns: str) -> Iterator[Table]:
    """Tables of score and costs, for the methods with several values on both axes."""
    by_method: dict[str, list[int]] = {}
    for one in results.settings:
        if {rows, columns} <= one.values.keys():
            by_method.setdefault("" if rows == "method" else one.values["method"], []).append(one.number)
    members = [
        number
        for some in by_method.values()
        if {rows, columns} <= {*varying_axes([results.settings[number] for number in some])[0]}
        for number in some
    ]
    value = "mean" if (rows, columns) == _THRESHOLDS else "median ± sd"
    for name in (metric, results.usual_cost(metric), "money", "seconds"):
        if name is None:
            continue
        pivot = pivot_of(results.matrix, rows=rows, columns=columns, metric=name, value=value, settings=members)
        figures = {
            place: cell.summary.mean if value == "mean" else cell.summary.median for place, cell in pivot.cells.items()
        }
        known = [figure for figure in figures.values() if figure is not None]
        if not known:
            continue
        low, high = min(known), max(known)
        shades = {
            place: round(SHADES * (figure - low) / (high - low))
            for place, figure in figures.items()
            if figure is not None and low < high
        }
        across = pivot.column_values[:_MAX_COLUMNS]
        left = (
            f"; {len(pivot.column_values) - _MAX_COLUMNS:,} more columns are not shown"
            if len(pivot.column_values) > _MAX_COLUMNS
            else ""
        )
        yield Table(
            f"{COSTS.get(name, name)}: {rows} × {columns}, {value}{left}",
            (rows, *map(value_text, across)),
            [
                (value_text(row), *texts[:_MAX_COLUMNS])
                for row, texts in zip(pivot.row_values, pivot.texts(), strict=True)
            ],
            shades=[[shades.get((row, column)) for column in across] for row in pivot.row_values],
        )
