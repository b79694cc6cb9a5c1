"""Settings by their values on axes: which axes vary, curves along an axis, and the text of values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import floor, log10
from typing import TYPE_CHECKING, Any

from oprag._internal.masking import describe, shown
from oprag.chunk import counted
from oprag.compare.stats import Difference

if TYPE_CHECKING:
    from oprag.compare.analysis.best import Curve
    from oprag.compare.analysis.summary import SettingSummary

__all__ = [
    "ORDERED_AXES",
    "amount",
    "axis_rank",
    "by_data",
    "counted",
    "curves_along",
    "difference_text",
    "listed",
    "money_text",
    "named",
    "value_text",
    "varying_axes",
]

_NONE_LAST = (
    *("chunk_size", "k", "token_budget", "redundancy_threshold"),
    *("passage_tokens", "collapse_tokens", "source_token_budget"),
)
_NONE_FIRST = (
    *("chunk_overlap", "max_candidates", "similarity_threshold", "min_chunks"),
    *("neighbors", "variants", "answer_threshold"),
)
ORDERED_AXES = (*_NONE_LAST, *_NONE_FIRST)
"""Numeric axes; None is the smallest value of the second group, such as no minimum threshold, else the largest."""


def varying_axes(settings: Iterable[SettingSummary | Curve]) -> list[str]:
    """Axes in which settings differ.

    An axis without effect in some settings varies if the other settings have several values of it.
    """
    found: dict[str, set[Any]] = {}
    for one in sorted(settings, key=lambda one: -len(one.values)):
        for name, value in one.values.items():
            found.setdefault(name, set()).add(value)
    return [name for name, values in found.items() if len(values) > 1]


def axis_rank(axis: str, value: Any) -> tuple[int, float]:
    """Sort key for the values of a numeric axis."""
    return (0, value) if value is not None else (-1 if axis in _NONE_FIRST else 1, 0)


def by_data(settings: Iterable[SettingSummary]) -> dict[str, list[SettingSummary]]:
    """Settings by data set, since scores of different questions are not comparable."""
    found: dict[str, list[SettingSummary]] = {}
    for setting in settings:
        found.setdefault(str(setting.values["data"]), []).append(setting)
    return found


def curves_along(settings: Sequence[SettingSummary], axis: str) -> list[tuple[dict[str, Any], list[SettingSummary]]]:
    """Groups of settings that differ only in a numeric axis, sorted along it, each with the values they share."""
    groups: dict[frozenset[Any], tuple[dict[str, Any], list[SettingSummary]]] = {}
    for setting in settings:
        if axis in setting.values:
            values = {name: value for name, value in setting.values.items() if name != axis}
            groups.setdefault(frozenset(values.items()), (values, []))[1].append(setting)
    curves: list[tuple[dict[str, Any], list[SettingSummary]]] = []
    for shared, (values, members) in groups.items():
        if not any(shared < other for other in groups):
            # Without a threshold, min_chunks has no effect and is not among the values of such a setting, which
            # therefore is on the curve of every min_chunks.
            without = [one for other, (_, others) in groups.items() if other < shared for one in others]
            curves.append((values, sorted(members + without, key=lambda one: axis_rank(axis, one.values[axis]))))
    return curves


# Axes whose values are clear without the name of the axis.
_BARE = ("data", "splitter", "embedder", "search", "store", "order", "method", "model")
_MAX_VALUE_LENGTH = 200  # characters


def value_text(value: Any) -> str:
    """Text of an axis value."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return shown(value, _MAX_VALUE_LENGTH) if value.strip() else describe(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def named(values: Mapping[str, Any], names: Collection[str]) -> str:
    """A setting for people, such as "source, k=8": its values on those of the given axes that have an effect in it."""
    parts = [
        value_text(values[name]) if name in _BARE else f"{name}={value_text(values[name])}"
        for name in sorted(names, key=lambda name: name != "method")
        if name in values
    ]
    return ", ".join(parts)


def difference_text(difference: Difference) -> str:
    """A difference with its interval, and a star if it is significant."""
    return f"{difference}{' *' if difference.significant else ''}"


def money_text(value: float | None) -> str:
    """An amount in the currency of the prices: two decimals from 1 up, else two significant digits."""
    if value is None:
        return "–"
    return f"{value:,.{2 if value >= 1 or not value else 1 - floor(log10(value))}f}"


def listed(texts: Sequence[str], longest: int = 5) -> str:
    """Join texts with commas and "and"; of more than the longest list, the first ones and the number of the others."""
    if len(texts) > longest:
        texts = [*texts[:longest], f"{len(texts) - longest:,} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def amount(value: float | None) -> str:
    """A number of tokens or calls, or a time."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.1f}" if value >= 1 else f"{value:.3f}"
