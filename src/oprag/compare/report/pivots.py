"""Two axes at a time: any two as papers print them, and the two thresholds with their cells shaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

from oprag.compare.analysis.pivot import pivot_of
from oprag.compare.analysis.settings import values_of
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import counted, named, value_text
from oprag.compare.report.costs import COSTS
from oprag.compare.report.page import SHADES, Heading, Part, Section, Table, Text
from oprag.compare.results import Results

__all__ = ["section", "thresholds"]

_FIRST = (("embedder", "model"), ("store", "embedder"), ("method", "store"), ("method", "model"), ("method", "order"))
_MOST, _MOST_VALUES, _MOST_GRIDS = 8, 12, 10
_ROWS, _COLUMNS = "similarity_threshold", "redundancy_threshold"


def section(results: Results, metric: str | None) -> Section | None:
    """The pivots of the axes that vary: median ± standard deviation, as Şakar and Emekci 2024 have them."""
    values = {name: values_of(results.settings, name, results.matrix.described) for name in results.axes}
    axes = [name for name, several in values.items() if len(several) > 1]
    # Those of the papers first, each with its sides as they are there.
    known = {frozenset(pair): pair for pair in _FIRST}
    pairs = [known.get(frozenset(pair), pair) for pair in combinations(axes, 2)]
    pairs.sort(key=lambda pair: _FIRST.index(pair) if pair in _FIRST else len(_FIRST))
    tables = [(pair, [*_tables(results, metric, *pair)]) for pair in pairs[:_MOST]]
    tables = [(pair, found) for pair, found in tables if found]
    if not tables:
        return None
    parts: list[Part] = [
        Text(
            "Median ± standard deviation over questions; where several settings have both values, that of a question "
            "is its mean over them. Where the grid is not the same for all values, neither is what is averaged; the "
            "paired differences above keep everything else equal."
        )
    ]
    for (rows, columns), found in tables:
        parts += [Heading(f"{rows} × {columns}"), *found]
    if len(pairs) > _MOST:
        parts.append(
            Text(f"{counted(len(pairs) - _MOST, 'pair')} of axes more: `oprag compare --csv` has the figures.")
        )
    return Section("pivots", "Two axes at a time", parts)


def _tables(results: Results, metric: str | None, rows: str, columns: str) -> Iterator[Table]:
    described = results.matrix.described
    names = [name for name in (metric, results.usual_cost(metric), "money", "seconds") if name is not None]
    for name in names:
        pivot = pivot_of(results.matrix, rows=rows, columns=columns, metric=name)
        # A setting in which an axis has no effect has no place here.
        across = values_of(results.settings, columns, described)
        across = [value for value in across if any(place[1] == value for place in pivot.cells)]
        down = values_of(results.settings, rows, described)
        down = [row for row in down if any((row, column) in pivot.cells for column in across)]
        if not down or not across:
            continue
        texts = {
            (row, column): text
            for row, line in zip(pivot.row_values, pivot.texts(), strict=True)
            for column, text in zip(pivot.column_values, line, strict=True)
        }
        shown = across[:_MOST_VALUES]
        left = f"; {len(across) - len(shown):,} columns more are not shown" if len(across) > len(shown) else ""
        yield Table(
            f"{COSTS.get(name, name)}: {rows} × {columns}, median ± standard deviation{left}",
            (rows, *map(value_text, shown)),
            [
                (value_text(value), *(texts.get((value, column), "–") for column in shown))
                for value in down[:_MOST_VALUES]
            ],
            more=max(0, len(down) - _MOST_VALUES),
        )


def thresholds(results: Results, metric: str | None) -> Section | None:
    """Score and tokens by both thresholds, for each data set and method in which both vary."""
    if metric is None or not {_ROWS, _COLUMNS} <= {*results.axes}:
        return None
    described = results.matrix.described
    # The questions of another data set are easier or harder.
    places = product(*(values_of(results.settings, name, described) for name in ("data", "method")))
    grids = [some for place in places if _both_vary(some := _with(results, *place))]
    if not grids:
        return None
    parts: list[Part] = [
        Text(
            "Means over questions; where several settings have the same thresholds, that of a question is its mean "
            "over them. Chunks are dropped whose similarity to the question is below the similarity threshold, or "
            "whose similarity to a better-ranked kept chunk is at least the redundancy threshold."
        )
    ]
    names = [axis for axis in ("data", "method") if len({some[0].values[axis] for some in grids}) > 1]
    for some in grids[:_MOST_GRIDS]:
        for name, show in ((metric, "{:.3f}"), (results.usual_cost(metric), "{:,.0f}")):
            parts += _shaded(results, name, show, some, named(some[0].values, names))
    if len(grids) > _MOST_GRIDS:
        parts.append(Text(f"{counted(len(grids) - _MOST_GRIDS, 'grid')} more: `oprag compare --csv` has the figures."))
    return Section("thresholds", "Thresholds", parts)


def _with(results: Results, data: Any, method: Any) -> list[SettingSummary]:
    return [one for one in results.settings if one.values["data"] == data and one.values["method"] == method]


def _both_vary(settings: Sequence[SettingSummary]) -> bool:
    return all(len({one.values[axis] for one in settings if axis in one.values}) > 1 for axis in (_ROWS, _COLUMNS))


def _shaded(results: Results, name: str, show: str, settings: Sequence[SettingSummary], where: str) -> Iterator[Part]:
    rows, columns = (values_of(results.settings, axis, results.matrix.described) for axis in (_ROWS, _COLUMNS))
    pivot = pivot_of(
        results.matrix,
        rows=_ROWS,
        columns=_COLUMNS,
        metric=name,
        value="mean",
        settings=[one.number for one in settings],
    )
    values = [
        [None if (cell := pivot.cells.get((row, column))) is None else cell.summary.mean for column in columns]
        for row in rows
    ]
    known = [value for line in values for value in line if value is not None]
    if not known:
        return
    low, high = min(known), max(known)
    yield Table(
        f"{COSTS.get(name, name)} by thresholds{where and f', {where}'}; the higher, the darker",
        (f"{_ROWS} \\ {_COLUMNS}", *map(value_text, columns)),
        [
            (value_text(row), *("–" if value is None else show.format(value) for value in line))
            for row, line in zip(rows, values, strict=True)
        ],
        shades=[
            [None if value is None or low == high else round(SHADES * (value - low) / (high - low)) for value in line]
            for line in values
        ],
    )
    if fewer := sum(cell.lacking > 0 for cell in pivot.cells.values()):
        yield Text(f"In {counted(fewer, 'field')} the mean is over fewer settings: others failed or were not tried.")
    if fewer := sum(cell.summary.n < cell.asked for cell in pivot.cells.values()):
        yield Text(
            f"In {counted(fewer, 'field')} the mean is over fewer questions than were asked: the others failed "
            "or were not tried, and may be the harder ones."
        )
