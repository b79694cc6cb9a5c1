"""Any two axes against each other: median ± standard deviation, as Şakar and Emekci 2024 have them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from oprag.compare.analysis.wording import counted, value_text
from oprag.compare.report.material import COSTS, Material
from oprag.compare.report.page import Heading, Part, Section, Table, Text

__all__ = ["section"]

_FIRST = (("embedder", "model"), ("store", "embedder"), ("method", "store"), ("method", "model"), ("method", "order"))
_MOST, _MOST_VALUES = 8, 12


def section(material: Material) -> Section | None:
    """The pivots of the axes that vary."""
    axes = [axis for axis in material.differ if len(material.values_of(axis)) > 1]
    # Those of the papers first, each with its sides as they are there.
    known = {frozenset(pair): pair for pair in _FIRST}
    pairs = [known.get(frozenset(pair), pair) for pair in combinations(axes, 2)]
    pairs.sort(key=lambda pair: _FIRST.index(pair) if pair in _FIRST else len(_FIRST))
    tables = [(pair, [*_tables(material, *pair)]) for pair in pairs[:_MOST]]
    tables = [(pair, found) for pair, found in tables if found]
    if not tables:
        return None
    parts: list[Part] = [
        Text(
            "Median ± standard deviation over questions; where several settings have both values, that of a question "
            "is its mean over them. Where the grid is not the same for all values, neither is what is averaged; the "
            "paired differences above hold everything else equal."
        )
    ]
    for (rows, columns), found in tables:
        parts += [Heading(f"{rows} × {columns}"), *found]
    if len(pairs) > _MOST:
        parts.append(
            Text(f"{counted(len(pairs) - _MOST, 'pair')} of axes more: `oprag compare --csv` has the figures.")
        )
    return Section("pivots", "Two axes at a time", parts)


def _tables(material: Material, rows: str, columns: str) -> Iterator[Table]:
    names = [material.cost, "seconds"] if material.metric is None else [material.metric, material.cost, "seconds"]
    for name in names:
        pivot = material.pivot(rows, columns, metric=name, value="median ± sd")
        # A setting in which an axis has no effect has no place here.
        across = [value for value in material.values_of(columns) if any(place[1] == value for place in pivot.cells)]
        down = [row for row in material.values_of(rows) if any((row, column) in pivot.cells for column in across)]
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
