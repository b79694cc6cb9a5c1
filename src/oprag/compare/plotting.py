"""Matplotlib figures: scores along an axis, scores against costs, and differences; and their SVG."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from oprag._internal.text_table import printable
from oprag.compare.analysis.best import Curve
from oprag.compare.analysis.settings import axis_rank, difference_text, value_text
from oprag.compare.stats import Difference
from oprag.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["pareto_front", "plot_curves", "plot_differences", "plot_pareto", "svg_of"]

_INCHES = (5.0, 3.4)
"""So narrow that text of 10 points is legible on a phone."""
_LINE_INCHES = 0.2  # a line of text
_MARKERS = "osD^v<>Pp"
"""One fewer than matplotlib's ten colors, so that a color and marker pair repeats only after 90 lines."""
_LINES = ("-", "--", "-.", ":")
_MAX_WITH_BARS = 4  # curves; error bars of more could not be told apart
_WIDE_LABEL = 24  # characters; longer labels have a legend of one column
_LOG_SCALE_RATIO = 8
"""The axis is logarithmic if the largest value is at least this many times the smallest."""


def plot_curves(curves: Sequence[Curve], names: Sequence[str], *, x: str) -> Figure:
    """Plot a named line for each curve over the axis `x`, with error bars if there are at most four curves."""
    figure, axes = _figure()
    in_tokens = x == "context_tokens"
    points = [point for curve in curves for point in curve.points]
    places: dict[Any, float | None] = {}
    if in_tokens:
        places = {point: point.cost(x) for point in points}
        _scale(axes, [*places.values()])
    else:
        values = sorted({point.values[x] for point in points}, key=lambda value: axis_rank(x, value))
        ticks = _ticks(axes, values)
        places = {point: ticks[point.values[x]] for point in points}
    for curve, name, marker, style in zip(curves, names, cycle(_MARKERS), cycle(_LINES), strict=False):
        there = sorted((place, number) for number, one in enumerate(curve.points) if (place := places[one]) is not None)
        at, shown = [place for place, _ in there], [curve.points[number] for _, number in there]
        scores = [(one.mean, one.low, one.high) for one in (point.scores[curve.metric] for point in shown)]
        means, *ends = np.array(scores, dtype=float).reshape(-1, 3).T
        label = f"{name} (flat)" if curve.sweet_spot is None and len(curve.points) > 1 else name
        (line,) = axes.plot(at, means, marker=marker, linestyle=style, label=_plain(label))
        if len(curves) <= _MAX_WITH_BARS:
            bars = np.nan_to_num(np.abs(ends - means))
            axes.errorbar(at, means, yerr=bars, fmt="none", ecolor=line.get_color(), elinewidth=1, capsize=3)
        if curve.sweet_spot in shown:
            spot = shown.index(curve.sweet_spot)
            axes.plot(at[spot], means[spot], "*", color=line.get_color(), markersize=18, zorder=3)
    axes.set_xlabel("context tokens" if in_tokens else x)
    axes.set_ylabel(curves[0].metric if curves else "")
    bars = " with confidence interval" if len(curves) <= _MAX_WITH_BARS else ""
    axes.set_title(f"Mean{bars}; a star marks a sweet spot", fontsize="medium")
    _legend(figure, axes)
    return figure


def plot_pareto(
    scores: Sequence[float], costs: Sequence[float], groups: Sequence[str], *, metric: str, cost: str
) -> Figure:
    """Plot a marker for each setting, colored by group, and the Pareto front as a step line."""
    figure, axes = _figure()
    paid, scored = np.array(costs), np.array(scores)
    for group, marker in zip(dict.fromkeys(groups), cycle(_MARKERS), strict=False):
        members = np.array([name == group for name in groups])
        axes.plot(paid[members], scored[members], marker, label=_plain(group), alpha=0.8)
    front = pareto_front(scores, costs)
    axes.step(paid[front], scored[front], where="post", color="0.4", linewidth=1, zorder=0, label="Pareto front")
    _scale(axes, costs)
    axes.set_xlabel(f"{cost.replace('_', ' ')} per answer")
    axes.set_ylabel(metric)
    _legend(figure, axes)
    return figure


def pareto_front(scores: Sequence[float], costs: Sequence[float]) -> list[int]:
    """Indices of the points that no other point dominates, cheapest first.

    A point dominates another if its score is at least as high and its cost at least as low, and one of both is better.

    Example:
        >>> pareto_front(scores=[0.5, 0.4, 0.7, 0.6], costs=[10, 20, 90, 40])
        [0, 3, 2]
    """
    points = list(zip(costs, (-score for score in scores), strict=True))
    front = [
        number
        for number, (cost, loss) in enumerate(points)
        if not any(one <= cost and other <= loss and (one, other) != (cost, loss) for one, other in points)
    ]
    return sorted(front, key=costs.__getitem__)


def plot_differences(rows: Sequence[tuple[str, Difference]], *, label: str) -> Figure:
    """Plot an interval for each named difference, filled if it is significant; `label` says what is subtracted."""
    figure, axes = _figure((2 * len(rows) + 4) * _LINE_INCHES)
    axes.axvline(0, color="0.4", linewidth=1)
    for row, (name, one) in enumerate(rows):
        text, at = f"{printable(name)}: {difference_text(one)}", ("axes fraction", "data")
        axes.annotate(text, (0.01, row + 0.5), xycoords=at, verticalalignment="bottom", fontsize=9, parse_math=False)
        if one.mean is not None:
            color = "C0" if one.significant else "0.45"
            ends = [[0.0 if end is None else abs(end - one.mean)] for end in (one.low, one.high)]
            fill = color if one.significant else "white"
            axes.errorbar([one.mean], [row + 0.75], xerr=ends, fmt="o", color=color, markerfacecolor=fill)
    axes.set_ylim(len(rows) + 0.25, -0.15)
    axes.set_yticks([])
    axes.set_xlabel(_plain(label))
    return figure


def svg_of(figure: Figure) -> bytes:
    """The SVG file of a figure; equal figures have equal files."""
    import matplotlib as mpl

    written = BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "oprag"}), warnings.catch_warnings():
        # Glyphs are only missing in the font that measures the text; the browser has its own.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def _figure(height: float = _INCHES[1]) -> tuple[Figure, Axes]:
    try:
        # pyplot would keep the figure in memory and may open a window.
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("A figure", "compare") from error
    figure = Figure(figsize=(_INCHES[0], height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(visible=True, alpha=0.3)
    return figure, axes


def _ticks(axes: Axes, values: Sequence[Any]) -> dict[Any, float]:
    """The x coordinate of each value: the value itself, or evenly spaced if one of them is None."""
    titles = [value_text(value) for value in values]
    if None in values:
        axes.set_xticks(range(len(values)), titles)
        return {value: float(place) for place, value in enumerate(values)}
    _scale(axes, values)
    axes.set_xticks(values, titles)
    return {value: float(value) for value in values}


def _scale(axes: Axes, values: Sequence[float | None]) -> None:
    from matplotlib.ticker import LogLocator

    there = [value for value in values if value is not None]
    if there and min(there) > 0 and max(there) >= _LOG_SCALE_RATIO * min(there):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.minorticks_off()


def _legend(figure: Figure, axes: Axes) -> None:
    """Place a legend below the axes."""
    labels = [label for label in axes.get_legend_handles_labels()[1] if not label.startswith("_")]
    if labels:
        columns = 1 if max(map(len, labels)) > _WIDE_LABEL else 2
        figure.set_figheight(figure.get_figheight() + _LINE_INCHES * -(-len(labels) // columns))
        figure.legend(loc="outside lower center", ncols=columns, fontsize=9, frameon=False)


def _plain(name: str) -> str:
    """Escape a label: matplotlib parses "$" as math text, and hides labels starting with "_" from the legend."""
    return " " + printable(name).replace("$", r"\$")
