"""Some of the settings of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oprag.compare.reading import Results
from oprag.compare.setting import settings_of
from oprag.compare.spec.axes import check_axis
from oprag.compare.table import CellSummary
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["narrowed"]


def narrowed(
    results: Results, table: Sequence[CellSummary], values: Mapping[str, Any]
) -> tuple[Results, list[CellSummary]]:
    """The settings with these values, and what they scored; where an axis has no effect its value is None, as in a row.

    Args:
        results: The results.
        table: A row for each of its settings.
        values: The value of each axis, or a list of values.

    Raises:
        OptionError: There is no such axis, no setting has such a value, or none has all of them.
    """
    everything = kept = list(zip(settings_of(results.cells), table, strict=True))
    for axis, value in values.items():
        check_axis(axis)
        wanted = list(value) if isinstance(value, list | tuple | set | frozenset | range) else [value]
        known = list(dict.fromkeys(setting.values.get(axis) for setting, _ in everything))
        for one in wanted:
            if not any(_same(other, one) for other in known):
                raise OptionError(f"no setting has {axis}={describe(one)}; there are {known}", value)
        kept = [row for row in kept if any(_same(row[0].values.get(axis), one) for one in wanted)]
    if not kept:
        raise OptionError(f"no setting has all of {dict(values)}", values)
    keys = {cell.key for setting, _ in kept for cell in setting.cells}
    cells = [cell for cell in results.cells if cell.key in keys]
    return replace(results, cells=cells), [row for _, row in kept]


def _same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)
