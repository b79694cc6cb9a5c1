"""Run details: the experiment and its grid, failures, spending and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.wording import amount, counted, money_text, value_text
from oprag.compare.db.reader import ResultsReader
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.results import Results
from oprag.compare.spec.axes import axes

__all__ = ["section"]


def section(results: Results, _: str | None = None) -> Section:
    """The experiment and its runs."""
    with ResultsReader(results.path, results.experiment) as reader:
        return Section("run", "Run details", [*_parts(results, reader)])


def _parts(results: Results, reader: ResultsReader) -> Iterator[Part]:
    about = [(name, value) for name, value in _about(results) if value]
    yield Table("The experiment", ("What", "Value"), about, words=True)
    if rows := [(failure.error, failure.message, f"{failure.count:,}") for failure in reader.failures()]:
        yield Table("Failures by cause", ("Error", "Message", "Answers"), rows, words=True)
        yield Text(
            "Means exclude failed questions; paired differences only compare questions with scores in both settings.",
            quiet=True,
        )
    spent = [
        (model, purpose, f"{one.calls:,}", amount(one.tokens), money_text(one.money) if one.money else "–")
        for (model, purpose), one in reader.spending().items()
    ]
    yield Table("Spent in all runs", ("Model", "For", "Calls", "Tokens", "Money"), spent, names=2)
    runs = [
        (_time(one.started), _time(one.ended), one.outcome or "not finished", _listed(one.versions.items()))
        for one in reader.runs()
    ]
    yield Table("Runs, latest first (times in UTC)", ("Started", "Ended", "Outcome", "Versions"), runs, words=True)


def _about(results: Results) -> Iterator[tuple[str, str]]:
    described = results.matrix.described
    table = results.settings
    yield "Experiment", results.experiment
    yield "Results file", results.path.name
    yield "Data", ", ".join(f"{name}: {counted(count, 'question')}" for name, count in described["data"].items())
    for name in ("models", "embedders"):
        identified = described.get(name, {}).items()
        yield name.capitalize(), ", ".join(one if one == other else f"{one} ({other})" for one, other in identified)
    for grid in described.get("grid", ()):
        yield "Grid", "; ".join(f"{axis}: {', '.join(map(value_text, values))}" for axis, values in grid.items())
    same = {
        name: value_text(value)
        for name, value in varying_axes(table)[1].items()
        if name not in ("data", "embedder", "model") and (name == "method" or value != axes()[name].default)
    }
    yield "Equal in all settings", _listed(same.items())
    yield "Cells", f"{len(results.matrix.cells):,}, in {counted(len(table), 'setting')}"
    yield "Answers", f"{sum(row.answered for row in table):,} of {sum(row.asked for row in table):,}"
    yield "Metrics", ", ".join(described.get("metrics", ()))
    yield "Embedder for scores", described.get("score_embedder") or ""
    yield "Token counter", described.get("count_tokens") or ""


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)


def _time(text: str | None) -> str:
    return "–" if text is None else text[:19].replace("T", " ")
