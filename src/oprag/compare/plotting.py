"""Matplotlib figures: scores along an axis with confidence intervals, and scores against costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from oprag.compare.analysis.best import pareto_front
from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.settings import axis_rank
from oprag.compare.analysis.wording import printable
from oprag.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_curves", "plot_pareto"]

_INCHES = (7.2, 4.5)
_MARKERS = "osD^v<>Pp"
"""One fewer than matplotlib's ten colors, so that a color and marker pair repeats only after 90 lines."""
_LINES = ("-", "--", "-.", ":")
_MAX_LINES_IN_LEGEND = 6
"""Longer legends are placed outside the axes."""
_LOG_SCALE_RATIO = 8
"""The axis is logarithmic if the largest value is at least this many times the smallest."""


def plot_curves(curves: Sequence[Curve], names: Sequence[str], *, x: str) -> Figure:
    """Plot a line for each curve, with an error bar at each point and a star at the sweet spot.

    Args:
        curves: The curves.
        names: The name of each curve.
        x: The axis that the curves vary, or "context_tokens".

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure, axes = _figure()
    in_tokens = x == "context_tokens"
    points = [point for curve in curves for point in curve.points]
    if in_tokens:
        places: Mapping[Any, float] = {}
        _scale(axes, [point.context_tokens for point in points])
    else:
        places = _places(axes, sorted({point.value for point in points}, key=lambda value: axis_rank(x, value)))
    for curve, name, marker, style in zip(curves, names, cycle(_MARKERS), cycle(_LINES), strict=False):
        placed = ((point.context_tokens if in_tokens else places[point.value], point) for point in curve.points)
        there = sorted(((place, point) for place, point in placed if place is not None), key=lambda one: one[0])
        at = [place for place, _ in there]
        means = [point.summary.mean or 0.0 for _, point in there]
        label = f"{name} (flat)" if curve.sweet_spot is None and len(curve.points) > 1 else name
        (line,) = axes.plot(at, means, marker=marker, linestyle=style, label=_plain(label))
        ends = [
            [0.0 if end is None else abs(end - mean) for end, mean in zip(some, means, strict=True)]
            for some in ([point.summary.low for _, point in there], [point.summary.high for _, point in there])
        ]
        axes.errorbar(at, means, yerr=ends, fmt="none", ecolor=line.get_color(), elinewidth=1, capsize=3)
        for place, point in there:
            if point is curve.sweet_spot:
                axes.plot([place], [point.summary.mean], "*", color=line.get_color(), markersize=18, zorder=3)
    axes.set_xlabel("context tokens" if in_tokens else x)
    axes.set_ylabel(curves[0].metric if curves else "")
    axes.set_title("Mean with confidence interval; a star marks a sweet spot", fontsize="medium")
    _legend(figure, axes, len(curves))
    return figure


def plot_pareto(
    scores: Sequence[float], costs: Sequence[float], groups: Sequence[str], *, metric: str, cost: str
) -> Figure:
    """Plot a marker for each setting, and the Pareto front as a step line.

    Args:
        scores: The score of each setting.
        costs: The cost of each setting.
        groups: The group of each setting; each group has a color and a marker.
        metric: The name of the metric.
        cost: The name of the cost.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    figure, axes = _figure()
    for group, marker in zip(dict.fromkeys(groups), cycle(_MARKERS), strict=False):
        members = [place for place, name in enumerate(groups) if name == group]
        axes.plot(
            [costs[place] for place in members],
            [scores[place] for place in members],
            marker,
            label=_plain(group),
            alpha=0.8,
        )
    front = pareto_front(scores, costs)
    axes.step(
        [costs[place] for place in front],
        [scores[place] for place in front],
        where="post",
        color="0.4",
        linewidth=1,
        zorder=0,
        label="Pareto front",
    )
    _scale(axes, costs)
    axes.set_xlabel(f"{cost.replace('_', ' ')} per answer")
    axes.set_ylabel(metric)
    _legend(figure, axes, len(set(groups)) + 1)
    return figure


def _figure() -> tuple[Figure, Axes]:
    try:
        # pyplot would keep the figure in memory and may open a window.
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("A figure", "analysis") from error
    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.grid(visible=True, alpha=0.3)
    return figure, axes


def _places(axes: Axes, values: Sequence[Any]) -> dict[Any, float]:
    """The x coordinate of each value: the value itself, or evenly spaced if one of them is None."""
    titles = [printable(value) for value in values]
    if None in values:
        axes.set_xticks(range(len(values)), titles)
        return {value: float(place) for place, value in enumerate(values)}
    _scale(axes, values)
    axes.set_xticks(values, titles)
    axes.minorticks_off()
    return {value: float(value) for value in values}


def _scale(axes: Axes, values: Sequence[float | None]) -> None:
    there = [value for value in values if value is not None]
    if there and min(there) > 0 and max(there) >= _LOG_SCALE_RATIO * min(there):
        axes.set_xscale("log")


def _legend(figure: Figure, axes: Axes, count: int) -> None:
    if count > _MAX_LINES_IN_LEGEND:
        figure.set_size_inches(_INCHES[0] * 1.5, _INCHES[1])
        figure.legend(loc="outside right upper", fontsize="small")
    elif count:
        axes.legend(fontsize="small")


def _plain(name: str) -> str:
    """Escape a label: matplotlib parses "$" as math text, and hides labels starting with "_" from the legend."""
    return " " + printable(name).replace("$", r"\$")
