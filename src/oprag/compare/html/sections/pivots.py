"""Any two axes against each other: median ± standard deviation, as Şakar and Emekci 2024 have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from oprag.compare.html.material import Material
from oprag.compare.html.parts import Heading, Part, Section, Table, Text
from oprag.compare.html.pooled import Pool, pooled
from oprag.compare.html.words import counted, spread, value_text

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
            "Median ± standard deviation over all answers with both values, whatever their other values are. Where the "
            "grid is not the same for all values, neither is what is pooled; the paired differences above hold "
            "everything else equal."
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
    down, across = material.values_of(rows), material.values_of(columns)
    cells = {
        (row, column): pooled(material, _with(material, (rows, down[row]), (columns, across[column])))
        for row in range(min(len(down), _MOST_VALUES))
        for column in range(min(len(across), _MOST_VALUES))
    }
    measures: tuple[tuple[str, int, Callable[[Pool], list[float]]], ...] = (
        (material.metric or "", 3, lambda pool: pool.scores),
        ("tokens of an answer", 0, lambda pool: pool.tokens),
        ("seconds of an answer, measured", 2, lambda pool: pool.seconds),
    )
    for what, digits, values in measures:
        if not any(values(pool) for pool in cells.values()):
            continue
        width = min(len(across), _MOST_VALUES)
        yield Table(
            f"{what}: {rows} × {columns}, median ± standard deviation"
            + (f"; {len(across) - width:,} columns more are not shown" if len(across) > width else ""),
            (rows, *(value_text(value) for value in across[:width])),
            [
                (
                    value_text(value),
                    *(spread(*Pool.middle(values(cells[row, column])), digits) for column in range(width)),
                )
                for row, value in enumerate(down[:_MOST_VALUES])
                if any(values(cells[row, column]) for column in range(width))
            ],
            more=max(0, len(down) - _MOST_VALUES),
        )


def _with(material: Material, *wanted: tuple[str, Any]) -> list[Any]:
    return [
        setting
        for setting in material.settings
        if all(axis in setting.values and setting.values[axis] == value for axis, value in wanted)
    ]
