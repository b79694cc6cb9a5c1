"""Score over context length: a chart of each group of curves that differ only in the order."""

from __future__ import annotations

from collections.abc import Sequence

from oprag.compare.analysis.best import Curve
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.verdicts import length_curves
from oprag.compare.analysis.wording import counted, name_of, named
from oprag.compare.plotting import plot_curves
from oprag.compare.report.page import Figure, Part, Points, Section, Text
from oprag.compare.results import Results

__all__ = ["MAX_DATA_SETS", "curve_groups", "length_parts", "section"]

MAX_DATA_SETS = 4
"""Maximum number of data sets in the overview."""
_MAX_CHARTS = 8
_ORDER_AXES = ("order", "source_ranking")


def section(results: Results, metric: str | None) -> Section | None:
    """A sentence on each curve, and the charts that are not in the overview."""
    sets = {} if metric is None else curve_groups(results, metric)
    groups = [
        (number < MAX_DATA_SETS and not place, group)
        for number, some in enumerate(sets.values())
        for place, group in enumerate(some)
    ]
    if not groups:
        return None
    parts: list[Part] = []
    for in_overview, group in groups[:_MAX_CHARTS]:
        figure, points = length_parts(results, group)
        parts += [Text(f"{figure.title}: the chart is in the overview.") if in_overview else figure, points]
    if len(groups) > _MAX_CHARTS:
        parts.append(
            Text(f"{counted(len(groups) - _MAX_CHARTS, 'chart')} more: `Results.curves` returns their points.")
        )
    return Section("length", "Score over context length", parts)


def curve_groups(results: Results, metric: str) -> dict[str, list[list[Curve]]]:
    """For each data set the curves in groups that differ only in the order, those with the most points first."""
    groups: dict[str, dict[str, list[Curve]]] = {}
    for curve in length_curves(results.matrix, metric):
        shared = sorted((name, str(value)) for name, value in curve.values.items() if name not in _ORDER_AXES)
        groups.setdefault(str(curve.values["data"]), {}).setdefault(f"{curve.axis} {shared}", []).append(curve)
    return {
        data: sorted(some.values(), key=lambda group: -sum(len(curve.points) for curve in group))
        for data, some in groups.items()
    }


def length_parts(results: Results, group: Sequence[Curve]) -> tuple[Figure, Points]:
    """A chart with a line for each order, and a sentence on each line."""
    in_tokens = all(point.context_tokens is not None for curve in group for point in curve.points)
    differ = [name for name in _ORDER_AXES if name in varying_axes(group)[0]] or ["order"]
    names = [name_of(curve.values, differ) for curve in group]
    told = [f"{name}: {curve.describe()}." for name, curve in zip(names, group, strict=True)]
    where = named(group[0].values, [name for name in results.axes if name not in differ])
    title = f"{group[0].metric} over context length{where and f', {where}'}"
    plot = plot_curves(group, names, x="context_tokens" if in_tokens else group[0].axis)
    return Figure(plot, title, " ".join(told)), Points(told)
