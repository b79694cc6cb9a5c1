"""Matplotlib figures: scores along an axis, scores against costs, and differences; and their SVG for a page."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import cycle
from textwrap import wrap
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from oprag.compare.analysis.best import Curve, pareto_front
from oprag.compare.analysis.settings import axis_rank
from oprag.compare.analysis.wording import difference_text, printable
from oprag.compare.stats import Difference
from oprag.errors import MissingExtraError
from oprag.text_table import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_curves", "plot_differences", "plot_pareto", "svg_of"]

_INCHES = (5.0, 3.4)
"""So narrow that text of 10 points is legible on a phone."""
_LINE_INCHES = 0.2  # a line of text
_MARKERS = "osD^v<>Pp"
"""One fewer than matplotlib's ten colors, so that a color and marker pair repeats only after 90 lines."""
_LINES = ("-", "--", "-.", ":")
_MAX_WITH_BARS = 4  # curves; error bars of more could not be told apart
_WIDE_LABEL = 24  # characters; longer labels have a legend of one column
_ROW_LENGTH = 58  # characters of a line above an interval
_LOG_SCALE_RATIO = 8
"""The axis is logarithmic if the largest value is at least this many times the smallest."""
_HASHED_ID = re.compile("[a-z][0-9a-f]{10}")
_DECIMALS = re.compile(r"-?\d+\.\d+")


def plot_curves(curves: Sequence[Curve], names: Sequence[str], *, x: str) -> Figure:
    """Plot a line for each curve, with a star at the sweet spot, and error bars if there are at most four curves.

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
        if len(curves) <= _MAX_WITH_BARS:
            axes.errorbar(at, means, yerr=ends, fmt="none", ecolor=line.get_color(), elinewidth=1, capsize=3)
        for place, point in there:
            if point is curve.sweet_spot:
                axes.plot([place], [point.summary.mean], "*", color=line.get_color(), markersize=18, zorder=3)
    axes.set_xlabel("context tokens" if in_tokens else x)
    axes.set_ylabel(curves[0].metric if curves else "")
    bars = " with confidence interval" if len(curves) <= _MAX_WITH_BARS else ""
    axes.set_title(f"Mean{bars}; a star marks a sweet spot", fontsize="medium")
    _legend(figure, axes)
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
    _legend(figure, axes)
    return figure


def plot_differences(rows: Sequence[tuple[str, Difference, bool]], *, label: str) -> Figure:
    """Plot an interval for each difference, with its name and figures above it; filled if it is significant.

    Args:
        rows: The name of each difference, the difference, and whether it is pooled over several pairs of settings.
        label: What is subtracted from what.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    lines = [_row_lines(printable(name), difference_text(one)) for name, one, _ in rows]
    height = sum(map(len, lines)) + len(rows)
    figure, axes = _figure((height + 4) * _LINE_INCHES)
    axes.axvline(0, color="0.4", linewidth=1)
    place = 0.0
    for (_, one, pooled), text in zip(rows, lines, strict=True):
        place += len(text)
        axes.annotate(
            "\n".join(text),
            (0.01, place),
            xycoords=("axes fraction", "data"),
            verticalalignment="bottom",
            fontsize=9,
            parse_math=False,
        )
        place += 1
        if one.mean is None:
            continue
        ends = [[0.0 if end is None else abs(end - one.mean)] for end in (one.low, one.high)]
        colour = "C0" if one.significant else "0.45"
        axes.errorbar(
            [one.mean],
            [place - 0.5],
            xerr=ends,
            fmt="D" if pooled else "o",
            color=colour,
            markerfacecolor=colour if one.significant else "white",
            elinewidth=3 if pooled else 1.5,
        )
    axes.set_ylim(height + 0.5, -0.3)
    axes.set_yticks([])
    axes.set_xlabel(_plain(label))
    return figure


def _row_lines(name: str, figures: str) -> list[str]:
    whole = f"{name}: {figures}"
    return [whole] if len(whole) <= _ROW_LENGTH else [*wrap(f"{name}:", _ROW_LENGTH), figures]


def svg_of(figure: Figure, *, title: str, description: str = "") -> str:
    """The SVG of a figure, to be embedded in an HTML page; equal figures have equal SVG.

    Styles are attributes, since the content security policy of the page allows no others. Ids are unique on the page
    unless the same figure is embedded twice.

    Args:
        figure: The figure.
        title: What it shows.
        description: The same in more words, for screen readers.
    """
    import matplotlib as mpl

    written = BytesIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "oprag"}), warnings.catch_warnings():
        # Glyphs are only missing in the font that measures the text; the browser has its own.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(written, format="svg", metadata={"Date": None})
    label = visible(f"{title}. {description}".strip())
    mark = hashlib.sha256(f"{label}\0".encode() + written.getvalue()).hexdigest()[:8]
    root = ET.fromstring(written.getvalue())  # noqa: S314 - written by matplotlib
    size = root.attrib["viewBox"]
    for node in root.iter():
        for child in [child for child in node if child.tag.endswith(("}metadata", "}style"))]:
            node.remove(child)
        node.tag = node.tag.rpartition("}")[2]
        node.tail = None
        if node.tag not in ("text", "tspan"):
            node.text = None
        node.attrib |= _attributes(node.attrib, mark)
    root.attrib |= {"viewBox": size, "class": "chart", "role": "img", "aria-label": label}
    root.attrib |= {"stroke-linejoin": "round", "xmlns": "http://www.w3.org/2000/svg"}
    return ET.tostring(root, encoding="unicode")


def _attributes(given: dict[str, str], mark: str) -> dict[str, str]:
    """The attributes of an SVG element, which are removed from `given`: short, and without styles."""
    found = dict(given)
    given.clear()
    for part in found.pop("style", "").split("; "):
        name, _, value = part.partition(": ")
        if name == "font":  # Written by matplotlib before 3.11.
            name, value = "font-size", re.findall(r"[\d.]+px", value)[0]
        if name and name != "font-family":
            found[name] = value
    if not _HASHED_ID.fullmatch(found.get("id", "")):
        found.pop("id", None)
    shown: dict[str, str] = {}
    for name, value in found.items():
        name = name.rpartition("}")[2]  # noqa: PLW2901
        if name in ("width", "height", "version") and value.endswith(("pt", "1.1")):
            continue
        if name == "id" or value.startswith(("#", "url(#")):
            value = _HASHED_ID.sub(lambda one: f"{one[0]}-{mark}", value)  # noqa: PLW2901
        elif name in ("d", "x", "y", "transform"):
            value = _DECIMALS.sub(lambda one: f"{float(one[0]):.1f}".removesuffix(".0"), " ".join(value.split()))  # noqa: PLW2901
        shown[name] = value
    return shown


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


def _places(axes: Axes, values: Sequence[Any]) -> dict[Any, float]:
    """The x coordinate of each value: the value itself, or evenly spaced if one of them is None."""
    titles = [printable(value) for value in values]
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
