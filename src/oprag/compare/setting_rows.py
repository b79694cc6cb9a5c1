"""The settings of an experiment as rows of plain values, with the same columns in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprag.compare.analysis.settings import HasValues, varying_axes
from oprag.compare.measurements import MeasuredSetting
from oprag.compare.spec.axes import axes
from oprag.compare.table import TAKEN, CellSummary

__all__ = ["axis_columns", "setting_columns", "setting_rows"]

_ALWAYS = ("method", "order", "k", "data", "model", "embedder")
_MEASURED = ("cpu_percent", "peak_memory_bytes", "memory_growth_bytes")


def axis_columns(settings: Sequence[HasValues]) -> list[str]:
    """The axes in which settings differ, then those that are not the default."""
    differ, same = varying_axes(settings)
    known = axes()
    return [
        *differ,
        *(name for name, value in same.items() if name in _ALWAYS or (value != known[name].default)),
    ]


def setting_rows(
    rows: Sequence[CellSummary],
    measured: Sequence[MeasuredSetting],
    seconds: Sequence[float | None],
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """A row for each setting.

    Args:
        rows: What settings scored and took.
        measured: What was measured of some of them.
        seconds: The mean time of an answer of each, over questions; None where it was not measured.
        names: The axes that are columns.
    """
    taken = {_key(one.values): one for one in measured}
    metrics = list(dict.fromkeys(name for row in rows for name in row.scores))
    made = [
        {**_plain(row, names, metrics), **_measured(taken.get(_key(row.values)), answer)}
        for row, answer in zip(rows, seconds, strict=True)
    ]
    columns = setting_columns(made)
    return [{name: row.get(name) for name in columns} for row in made]


def setting_columns(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns that some row has, in their sequence."""
    return list(dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row))


def _plain(row: CellSummary, names: Sequence[str], metrics: Sequence[str]) -> dict[str, Any]:
    plain: dict[str, Any] = {name: row.values.get(name) for name in names}
    for metric in metrics:
        summary = row.scores.get(metric)
        plain |= {
            metric: summary and summary.mean,
            f"{metric}_low": summary and summary.low,
            f"{metric}_high": summary and summary.high,
            f"{metric}_median": summary and summary.median,
            f"{metric}_sd": summary and summary.standard_deviation,
            f"{metric}_n": summary.n if summary else 0,
        }
    counts = ("cells", "asked", "answered", "failed", "left", "cut_short", "empty")
    plain |= {name: getattr(row, name) for name in counts}
    plain |= {name: row.per_answer.get(name) for name in TAKEN}
    read, written = plain["input_tokens"], plain["output_tokens"]
    return plain | {"tokens": None if read is None or written is None else read + written}


def _measured(taken: MeasuredSetting | None, seconds: float | None) -> dict[str, Any]:
    if taken is None:
        return {}
    # Not the sum of the means of the phases: questions that ask no model have one phase alone.
    plain: dict[str, Any] = {"seconds": seconds}
    for name, phase in taken.phases.items():
        plain |= {
            f"{name}_seconds": phase.seconds.mean,
            f"{name}_seconds_median": phase.seconds.median,
            f"{name}_seconds_sd": phase.seconds.standard_deviation,
        }
        plain |= {f"{name}_{what}": getattr(phase, what) for what in _MEASURED}
    return plain


def _key(values: Mapping[str, Any]) -> str:
    return repr(sorted(values.items()))
