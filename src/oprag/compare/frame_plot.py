"""Which figure of a comparison is meant, and what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oprag.compare.analysis.settings import varying_axes
from oprag.compare.curve import ORDERED_AXES
from oprag.compare.frame_checks import scored_rows
from oprag.compare.frame_table import SettingTable
from oprag.compare.frame_text import named
from oprag.compare.plotting import plot_curves, plot_pareto
from oprag.compare.sweet_spot import sweet_spots
from oprag.errors import OptionError
from oprag.options import check_choice

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_of"]


def figure_of(table: SettingTable, kind: str, metric: str, *, x: str | None, cost: str | None) -> Figure:
    """The figure; see `Comparison.plot`.

    Raises:
        OptionError: There is no such kind, axis or cost, one of them has no effect, or no axis of numbers differs.
        MissingExtraError: matplotlib is not installed.
    """
    check_choice("kind", kind, ("curve", "pareto"))
    unused = ("x", x) if kind == "pareto" else ("cost", cost)
    if unused[1] is not None:
        raise OptionError(f"{unused[0]} has no effect on a {kind} plot; leave it out", unused[1])
    return _pareto(table, metric, cost) if kind == "pareto" else _curves(table, metric, x)


def _pareto(table: SettingTable, metric: str, cost: str | None) -> Figure:
    cost, rows = scored_rows(table, metric, cost)
    group = next((name for name in ("order", "method", *table.axes) if name in table.axes), None)
    values = {id(row): setting.values for row, setting in zip(table, table.settings, strict=True)}
    groups = [table.experiment if group is None else _member(values[id(row)], group) for row in rows]
    return plot_pareto([row[metric] for row in rows], [row[cost] for row in rows], groups, metric=metric, cost=cost)


def _member(values: Mapping[str, Any], axis: str) -> str:
    return named(values, [axis]) or f"without {axis}"


def _curves(table: SettingTable, metric: str, x: str | None) -> Figure:
    differ = [name for name in ORDERED_AXES if name in table.axes]
    axis = x
    if axis in (None, "context_tokens"):
        # Those that change how much is read, before thresholds and what else there is.
        axis = next((name for name in ("k", "token_budget", *differ) if name in differ), None)
    if axis is None:
        raise OptionError(
            f"no axis of numbers differs, so there is no curve; settings differ in {', '.join(table.axes) or 'none'}", x
        )
    spots = sweet_spots(table.results, axis=axis, metric=metric, confidence=table.confidence, table=table.settings)
    names = [named(spot.values, varying_axes(spots)[0]) or metric for spot in spots]
    return plot_curves(spots, names, x=x or axis)
