"""How a comparison looks in Python and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from oprag.compare.analysis.settings import varying_axes
from oprag.compare.table import CellSummary, faults
from oprag.compare.text_table import shown, text_table

__all__ = ["as_html", "as_text", "caption", "named"]

_MOST = 60  # settings


def caption(experiment: str, rows: Sequence[CellSummary]) -> str:
    """One line: what there is."""
    answered, failed, left = (sum(getattr(row, name) for row in rows) for name in ("answered", "failed", "left"))
    parts = [f"{len(rows):,} settings", f"{answered:,} answers"]
    if failed:
        parts.append(f"{failed:,} failed")
    if left:
        parts.append(f"{left:,} not tried")
    if told := faults(rows):
        parts.append(told)
    return f"Comparison {shown(experiment)!r}: {', '.join(parts)}"


def as_text(experiment: str, rows: Sequence[CellSummary]) -> str:
    """A table of text: the axes in which settings differ, means with intervals, and tokens."""
    head, lines = _table(rows)
    more = f"\n{len(rows) - _MOST:,} more" if len(rows) > _MOST else ""
    return f"{caption(experiment, rows)}\n{text_table(head, lines)}{more}" if lines else caption(experiment, rows)


def as_html(experiment: str, rows: Sequence[CellSummary]) -> str:
    """The same for notebooks, everything escaped."""
    head, lines = _table(rows)
    titles = "".join(f"<th scope='col'>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    more = f"<p>{len(rows) - _MOST:,} more</p>" if len(rows) > _MOST else ""
    return (
        f"<table><caption>{escape(caption(experiment, rows))}</caption>"
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{more}"
    )


def named(values: Mapping[str, Any], axes: Sequence[str]) -> str:
    """The values on some axes, in a line."""
    return ", ".join(f"{name}={shown(values[name])}" for name in axes if name in values)


def _table(rows: Sequence[CellSummary]) -> tuple[list[str], list[list[str]]]:
    differ = varying_axes(rows)[0]
    metrics = list(dict.fromkeys(name for row in rows for name in row.scores))
    lines = [
        [
            *(shown(row.values[name]) if name in row.values else "–" for name in differ),
            *(_score(row, name) for name in metrics),
            f"{row.answered:,}",
            f"{row.failed:,}",
            _tokens(row.per_answer.get("context_tokens")),
        ]
        for row in rows[:_MOST]
    ]
    return [*differ, *metrics, "answers", "failed", "context_tokens"], lines


def _score(row: CellSummary, metric: str) -> str:
    summary = row.scores.get(metric)
    if summary is None:
        return "–"
    return f"{summary.describe()} (n={summary.n:,})" if row.lacks(metric) else summary.describe()


def _tokens(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
