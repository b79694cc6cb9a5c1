"""Run details: the experiment and its grid, failures, spending and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.wording import amount, counted, money_text, value_text
from oprag.compare.db.reader import ResultsReader
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.results import Results
from oprag.compare.spec.axes import axes

__all__ = ["section"]


def section(results: Results) -> Section:
    """The experiment and its runs."""
    with ResultsReader(results.path, results.experiment) as reader:
        return Section("run", "Run details", [*_parts(results, reader)])


def _parts(results: Results, reader: ResultsReader) -> Iterator[Part]:
    yield Table(
        "The experiment",
        ("What", "Value"),
        [(name, value) for name, value in _about(results, reader) if value],
        words=True,
    )
    grids = results.matrix.described.get("grid", ())
    for number, grid in enumerate(grids, 1):
        yield Table(
            "The grid" if len(grids) == 1 else f"Grid {number} of {len(grids)}",
            ("Axis", "Values"),
            [(axis, ", ".join(map(value_text, values))) for axis, values in grid.items()],
            words=True,
        )
    yield from _failures(reader)
    yield from _notes(results)
    yield from _spending(reader)
    yield from _runs(reader)


def _about(results: Results, reader: ResultsReader) -> Iterator[tuple[str, str]]:
    described = results.matrix.described
    table = results.settings
    yield "Experiment", results.experiment
    yield "Results file", results.path.name
    question_counts = described.get("data", {})
    yield "Data", ", ".join(f"{name}: {counted(count, 'question')}" for name, count in question_counts.items())
    for name in ("models", "embedders"):
        yield name.capitalize(), ", ".join(_identified(*one) for one in described.get(name, {}).items())
    yield "Cells", f"{len(results.matrix.cells):,}, in {counted(len(table), 'setting')}"
    yield "Answers", f"{sum(row.answered for row in table):,} of {sum(row.asked for row in table):,}"
    yield "Metrics", ", ".join(described.get("metrics", ()))
    yield "Embedder for scores", described.get("score_embedder") or ""
    yield "Token counter", described.get("count_tokens") or ""
    same = [
        f"{name} {value_text(value)}"
        for name, value in varying_axes(results.settings)[1].items()
        if name not in ("data", "embedder", "model") and (name == "method" or value != axes()[name].default)
    ]
    yield "Equal in all settings", ", ".join(same)
    spent = reader.spent()
    cost = f", {money_text(spent.money)} in the currency of the prices" if spent.money else ""
    yield "Spent in all runs", f"{counted(spent.calls, 'model call')}, {amount(spent.tokens)} tokens{cost}"


def _identified(name: str, identity: str) -> str:
    return name if name == identity else f"{name} ({identity})"


def _failures(reader: ResultsReader) -> Iterator[Part]:
    if rows := [(failure.error, failure.message, f"{failure.count:,}") for failure in reader.failures()]:
        yield Table("Failures by cause", ("Error", "Message", "Answers"), rows, words=True)
        yield Text(
            "Means exclude failed questions; paired differences only compare questions with scores in both settings.",
            quiet=True,
        )


def _notes(results: Results) -> Iterator[Part]:
    notes: Counter[str] = Counter()
    for row in results.settings:
        notes.update(row.notes)
    if notes:
        rows = [(note, f"{count:,}") for note, count in notes.most_common()]
        yield Table("Notes on answers", ("Note", "Answers"), rows, max_rows=20)


def _spending(reader: ResultsReader) -> Iterator[Part]:
    """The spending of each model by purpose (answers, or a metric that calls a model), if there are several."""
    rows = [
        (model, purpose, f"{spent.calls:,}", amount(spent.tokens), money_text(spent.money) if spent.money else "–")
        for (model, purpose), spent in reader.spending().items()
    ]
    if len(rows) > 1:
        yield Table("Spent in all runs", ("Model", "For", "Calls", "Tokens", "Money"), rows, names=2)


def _runs(reader: ResultsReader) -> Iterator[Part]:
    rows = reader.runs()
    shown: list[tuple[str, ...]] = []
    for number, run in enumerate(rows):
        same = number and run.versions == rows[number - 1].versions
        versions = "the same" if same else ", ".join(f"{name} {version}" for name, version in run.versions.items())
        shown.append((_time(run.started), _time(run.ended), run.outcome or "not finished", versions))
    yield Table(
        "Runs, latest first (times in UTC)",
        ("Started", "Ended", "Outcome", "Versions"),
        shown,
        words=True,
    )


def _time(text: str | None) -> str:
    return "–" if text is None else text[:19].replace("T", " ")
