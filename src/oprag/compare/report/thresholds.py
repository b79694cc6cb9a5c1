"""The two thresholds: score and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import counted, named, value_text
from oprag.compare.report.material import COSTS, Material
from oprag.compare.report.page import SHADES, Part, Section, Table, Text

__all__ = ["section"]

_ROWS, _COLUMNS = "similarity_threshold", "redundancy_threshold"
_MOST = 10  # methods and data sets


def section(material: Material) -> Section | None:
    """The tables, where both thresholds vary."""
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


def _with(material: Material, data: Any, method: Any) -> list[SettingSummary]:
    return [one for one in material.settings if one.values["data"] == data and one.values["method"] == method]


def _both_vary(settings: Sequence[SettingSummary]) -> bool:
    return all(len({one.values[axis] for one in settings if axis in one.values}) > 1 for axis in (_ROWS, _COLUMNS))


def _maps(material: Material, settings: Sequence[SettingSummary], name: str) -> list[Part]:
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
        known = [value for line in values for value in line if value is not None]
        found.append(
            Table(
                f"{what} by thresholds{name and f', {name}'}; the higher, the darker",
                (f"{_ROWS} \\ {_COLUMNS}", *map(value_text, columns)),
                [
                    (value_text(row), *("–" if value is None else show.format(value) for value in line))
                    for row, line in zip(rows, values, strict=True)
                ],
                shades=[[_shade(value, min(known), max(known)) for value in line] for line in values],
            )
        )
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


def _shade(value: float | None, low: float, high: float) -> int | None:
    return None if value is None or low == high else round(SHADES * (value - low) / (high - low))
