"""The table of settings: what each scored, with its interval, and what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprag.compare.analysis.summary import MANY, SettingSummary
from oprag.compare.analysis.wording import amount, interval, value_text
from oprag.compare.report.material import Material
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.stats.difference import FEW_UNITS

__all__ = ["section"]

_MOST = 400
_TAKEN = {
    "calls": "calls",
    "input_tokens": "tokens in",
    "output_tokens": "tokens out",
    "context_tokens": "context tokens",
}


def section(material: Material) -> Section | None:
    """The table of settings."""
    rows = material.settings
    if not any(row.answered or row.failed for row in rows):
        return None
    taken = [name for name in _TAKEN if any(row.per_answer.get(name) for row in rows)]
    faulty = [name for name in ("cut_short", "empty") if any(getattr(row, name) for row in rows)]
    axes = material.differ or ["method"]
    most = _most_questions(rows)
    shown = [
        [
            *(value_text(row.values[name]) if name in row.values else "–" for name in axes),
            *(_score(row, metric, most) for metric in material.metrics),
            f"{row.answered:,} of {row.asked:,}",
            *(_marked(getattr(row, name), row) for name in faulty),
            *(amount(row.per_answer.get(name)) for name in taken),
        ]
        for row in rows[:_MOST]
    ]
    head = [
        *axes,
        *material.metrics,
        "answers",
        *(name.replace("_", " ") for name in faulty),
        *(_TAKEN[name] for name in taken),
    ]
    caption = "Means with 95 % intervals in brackets; calls and tokens are means of an answer"
    table = Table(caption, head, shown, names=len(axes), more=len(rows) - len(shown), marked=_highest(material))
    return Section("settings", "All settings", [table, *_notes(material)])


def _most_questions(rows: Sequence[SettingSummary]) -> dict[tuple[str, Any], int]:
    """How many questions of a data set have a score of a metric, in the setting where they are most."""
    most: dict[tuple[str, Any], int] = {}
    for row in rows:
        for name, summary in row.scores.items():
            place = name, row.values.get("data")
            most[place] = max(most.get(place, 0), summary.n)
    return most


def _score(row: SettingSummary, metric: str, most: Mapping[tuple[str, Any], int]) -> str:
    """The mean with its interval, and over how many questions it is where others have more."""
    summary = row.scores.get(metric)
    fewer = summary is not None and (summary.n < most[metric, row.values.get("data")] or row.lacks(metric))
    return f"{interval(summary)} (n = {summary.n:,})" if summary is not None and fewer else interval(summary)


def _marked(count: int, row: SettingSummary) -> str:
    return f"{count:,}{' !' if count > MANY * row.answered else ''}"


def _highest(material: Material) -> list[int]:
    """The setting of each data set with the highest mean, where there are several."""
    metric = material.metric
    found: list[int] = []
    for settings in material.by_data.values():
        scored = {setting.number: setting.scores.get(metric or "") for setting in settings}
        means = {number: summary.mean or 0.0 for number, summary in scored.items() if summary is not None}
        if len(means) > 1:
            found.append(max(means, key=lambda number: means[number]))
    return found


def _notes(material: Material) -> list[Part]:
    notes: list[Part] = []
    rows = material.settings
    summaries = [summary for row in rows for summary in row.scores.values()]
    if _highest(material):
        notes.append(
            Text(
                f"A marked row has the highest mean {material.metric} of its data set. Of many settings one is the "
                "highest by chance, too: the differences below say what can be claimed.",
                quiet=True,
            )
        )
    if any(row.doubtful for row in rows):
        notes.append(
            Text(
                f"! More than {MANY:.0%} of the answers of a setting: its scores say more about that than about the "
                "setting. A higher max_tokens of the model helps where replies are cut short.",
            )
        )
    if any(row.cells > 1 for row in rows):
        notes.append(Text("The scores of a question are averaged over seeds and repeats first.", quiet=True))
    if any(summary.low is not None and summary.units < FEW_UNITS for summary in summaries):
        notes.append(
            Text(f"An interval from fewer than {FEW_UNITS} questions, or documents, is too narrow.", quiet=True)
        )
    return notes
