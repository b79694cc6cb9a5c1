"""Heat maps of the two thresholds: score and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from oprag.compare.analysis.wording import counted, named, value_text
from oprag.compare.report.charts import heat_map
from oprag.compare.report.material import COSTS, Material
from oprag.compare.report.parts import Figure, Part, Section, Text
from oprag.compare.setting import Setting

__all__ = ["section"]

_ROWS, _COLUMNS = "similarity_threshold", "redundancy_threshold"
_MOST = 10  # methods and data sets


def section(material: Material) -> Section | None:
    """The heat maps, where both thresholds vary."""
    if material.metric is None or not {_ROWS, _COLUMNS} <= {*material.differ}:
        return None
    # The questions of another data set are easier or harder.
    places = product(material.values_of("data"), material.values_of("method"))
    grids = [settings for place in places if _both_vary(settings := _with(material, *place))]
    if not grids:
        return None
    parts: list[Part] = [
        Text(
            "Means over questions; where several settings have the same thresholds, that of a question is its mean "
            "over them. The similarity threshold is the least cosine of a chunk and the question; a chunk goes, too, "
            "when its cosine with a better one reaches the redundancy threshold."
        )
    ]
    names = [axis for axis in ("data", "method") if len({settings[0].values[axis] for settings in grids}) > 1]
    for settings in grids[:_MOST]:
        parts += _maps(material, settings, named(settings[0].values, names))
    if len(grids) > _MOST:
        parts.append(Text(f"{counted(len(grids) - _MOST, 'grid')} more: `oprag compare --csv` has the figures."))
    return Section("thresholds", "Thresholds", parts)


def _with(material: Material, data: Any, method: Any) -> list[Setting]:
    return [one for one in material.settings if one.values["data"] == data and one.values["method"] == method]


def _both_vary(settings: Sequence[Setting]) -> bool:
    return all(len({one.values[axis] for one in settings if axis in one.values}) > 1 for axis in (_ROWS, _COLUMNS))


def _maps(material: Material, settings: Sequence[Setting], name: str) -> list[Part]:
    rows, columns = (material.values_of(axis) for axis in (_ROWS, _COLUMNS))
    found: list[Part] = []
    for metric, what, show in (
        (str(material.metric), str(material.metric), "{:.3f}"),
        (material.cost, COSTS[material.cost], "{:,.0f}"),
    ):
        pivot = material.pivot(_ROWS, _COLUMNS, metric=metric, value="mean", settings=settings)
        values = [
            [None if (cell := pivot.cells.get((row, column))) is None else cell.summary.mean for column in columns]
            for row in rows
        ]
        if not any(value is not None for line in values for value in line):
            continue
        title = f"{what} by thresholds{name and f', {name}'}"
        chart = heat_map(
            [value_text(value) for value in rows],
            [value_text(value) for value in columns],
            values,
            title=title,
            description=_described(what, rows, columns, values),
            row_title=_ROWS,
            column_title=_COLUMNS,
            show=show,
        )
        found.append(Figure(chart))
        if fewer := sum(cell.lacking > 0 for cell in pivot.cells.values()):
            found.append(
                Text(f"In {counted(fewer, 'field')} the mean is over fewer settings: others failed or were not tried.")
            )
        if fewer := sum(cell.summary.n < cell.asked for cell in pivot.cells.values()):
            found.append(
                Text(
                    f"In {counted(fewer, 'field')} the mean is over fewer questions than were asked: the others failed "
                    "or were not tried, and may be the harder ones."
                )
            )
    return found


def _described(what: str, rows: list[Any], columns: list[Any], values: list[list[float | None]]) -> str:
    known = [
        (value, row, column)
        for row, line in zip(rows, values, strict=True)
        for column, value in zip(columns, line, strict=True)
        if value is not None
    ]
    ends = [pick(known, key=lambda one: one[0]) for pick in (min, max)]
    told = [
        f"{end} {value:,.3f} at a similarity threshold of {value_text(row)} and a redundancy threshold of "
        f"{value_text(column)}"
        for end, (value, row, column) in zip(("the lowest is", "the highest"), ends, strict=True)
    ]
    return f"Mean {what}; {'; '.join(told)}."
