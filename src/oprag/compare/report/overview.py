"""The first and the last section: warnings and verdicts; and what was run, failed and spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from oprag.compare.analysis.settings import by_data
from oprag.compare.analysis.summary import PROBLEMS
from oprag.compare.analysis.wording import amount, counted, money_text, value_text
from oprag.compare.db.reader import ResultsReader
from oprag.compare.report.charts import length_figures, order_figures
from oprag.compare.report.page import Part, Section, Table, Text, Verdicts
from oprag.compare.results import Results
from oprag.compare.stats import FEW_UNITS

__all__ = ["run_details", "section"]


def section(results: Results, metric: str | None) -> Section:
    """Warnings, the verdicts, and the charts that support them."""
    about = [
        counted(len(results.matrix.questions), "question"),
        counted(len(results.settings), "setting"),
        counted(sum(one.answered for one in results.settings), "answer"),
        f"models: {', '.join(results.matrix.described['models']) or 'none'}",
        f"main metric: {metric or 'none'}",
    ]
    parts: list[Part] = [Text(" · ".join(about), quiet=True)]
    parts += [Text(text, warning=True) for text in _warnings(results, metric)]
    if metric is not None:
        figures = [*order_figures(results, metric), *islice(length_figures(results, metric), 1)]
        parts += [Verdicts(results.verdicts(metric)), *figures]
    return Section("overview", "In short", parts)


def _warnings(results: Results, metric: str | None) -> Iterator[str]:
    """What a reader must know before any score."""
    counts = {what: sum(getattr(one, name) for one in results.settings) for name, what in PROBLEMS.items()}
    if found := [f"{count:,} {what}" for what, count in counts.items() if count]:
        asked = counted(sum(one.asked for one in results.settings), "answer")
        yield f"Of {asked}: {', '.join(found)}. Answers that are cut short or empty are scored as they are."
    for data, settings in by_data(results.settings).items():
        summaries = [one.scores[metric] for one in settings if metric is not None and metric in one.scores]
        units = max((one.units for one in summaries), default=FEW_UNITS)
        if units < FEW_UNITS:
            yield f"Intervals of {data} come from only {units:,} questions or documents, so they are too narrow."


def run_details(results: Results) -> Section:
    """The experiment as it was described, failures, spending and runs."""
    described = results.matrix.described
    rows = [("results file", results.path.name), *(("grid", _text(grid)) for grid in described["grid"])]
    rows += [(name.replace("_", " "), _text(value)) for name, value in described.items() if name != "grid"]
    parts: list[Part] = [Table("The experiment", ("What", "Value"), [row for row in rows if row[1]], words=True)]
    with ResultsReader(results.path, results.experiment) as reader:
        if failed := [(one.error, one.message, f"{one.count:,}") for one in reader.failures()]:
            parts.append(Table("Failures by cause", ("Error", "Message", "Answers"), failed, words=True))
        spent = [
            (model, purpose, f"{one.calls:,}", amount(one.tokens), money_text(one.money) if one.money else "–")
            for (model, purpose), one in reader.spending().items()
        ]
        runs = [
            (_time(one.started), _time(one.ended), one.outcome or "not finished", _text(one.versions))
            for one in reader.runs()
        ]
    parts.append(Table("Spent in all runs", ("Model", "For", "Calls", "Tokens", "Money"), spent, names=2))
    head = ("Started", "Ended", "Outcome", "Versions")
    parts.append(Table("Runs, latest first (times in UTC)", head, runs, words=True))
    return Section("run", "Run details", parts)


def _text(value: Any) -> str:
    """The text of a value of a description; empty if there is nothing to say."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {text}" for name, one in value.items() if (text := _text(one)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(value_text, value))
    return "" if value is None else value_text(value)


def _time(text: str | None) -> str:
    return "–" if text is None else text[:19].replace("T", " ")
