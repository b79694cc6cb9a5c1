"""Heat maps of the two thresholds: score and tokens."""

from __future__ import annotations

from typing import Any

from oprag.compare.charts import heat_map
from oprag.compare.html.material import COSTS, Material
from oprag.compare.html.parts import Figure, Part, Section, Text
from oprag.compare.html.words import counted, value_text

__all__ = ["section"]

_ROWS, _COLUMNS = "similarity_threshold", "redundancy_threshold"
_MOST = 10  # methods


def section(material: Material) -> Section | None:
    """The heat maps, where both thresholds vary."""
    if material.metric is None or not {_ROWS, _COLUMNS} <= {*material.differ}:
        return None
    methods = [
        method
        for method in material.values_of("method")
        if all(len(_values(material, method, axis)) > 1 for axis in (_ROWS, _COLUMNS))
    ]
    if not methods:
        return None
    parts: list[Part] = [
        Text(
            "Means over questions; where several settings have the same thresholds, that of a question is its mean "
            "over them. The similarity threshold is the least cosine of a chunk and the question; a chunk goes, too, "
            "when its cosine with a better one reaches the redundancy threshold."
        )
    ]
    for method in methods[:_MOST]:
        parts += _maps(material, method, several=len(methods) > 1)
    if len(methods) > _MOST:
        parts.append(Text(f"{counted(len(methods) - _MOST, 'method')} more: `oprag compare --csv` has the figures."))
    return Section("thresholds", "Thresholds", parts)


def _values(material: Material, method: Any, axis: str) -> set[Any]:
    settings = [one for one in material.settings if one.values["method"] == method]
    return {one.values[axis] for one in settings if axis in one.values}


def _maps(material: Material, method: Any, *, several: bool) -> list[Part]:
    rows, columns = (material.values_of(axis) for axis in (_ROWS, _COLUMNS))
    settings = [one for one in material.settings if one.values["method"] == method]
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
        title = f"{what} by thresholds{f', {value_text(method)}' if several else ''}"
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
