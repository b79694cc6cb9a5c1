"""Write the report: all sections in one HTML page, rendered by templates that escape every value."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprag._internal.files.writing import FileKind, begins_with, check_target, replacing
from oprag._internal.text_table import safe
from oprag.compare.analysis.settings import amount, by_data, counted, money_text, value_text
from oprag.compare.analysis.summary import PROBLEMS
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.report import charts, questions, tables
from oprag.compare.report.charts import length_figures, order_figures
from oprag.compare.report.page import Part, Section, Table, Text, Verdicts
from oprag.compare.results import Results
from oprag.compare.stats import FEW_UNITS
from oprag.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["REPORT", "page", "write_report"]


def _overview(results: Results, metric: str | None) -> Section:
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


def _run_details(results: Results) -> Section:
    """The experiment as it was described, failures, spending and runs."""
    described = results.matrix.described
    rows = [("results file", results.path.name), *(("grid", _text(grid)) for grid in described["grid"])]
    rows += [(name.replace("_", " "), _text(value)) for name, value in described.items() if name != "grid"]
    parts: list[Part] = [Table("The experiment", ("What", "Value"), [row for row in rows if row[1]], words=True)]
    with ResultsReader.open(results.path, results.experiment) as reader:
        if failed := [(one.error, one.describe(), f"{one.count:,}") for one in reader.failures()]:
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


REPORT = FileKind("an HTML file", lambda path: begins_with(path, b"<!doctype html"))
"""The kind of file that a report may replace."""
_COMMAND = re.compile("`([^`\n]+)`")


def write_report(
    results_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    *,
    experiment: str | None = None,
    metric: str | None = None,
) -> Path:
    """Write a report of the results of an experiment as one self-contained HTML file, which loads nothing.

    Empty sections are omitted. Questions, replies and errors are escaped, so HTML in them has no effect.

    Args:
        results_path: The results file, opened read-only.
        output_path: The HTML file; an existing one is replaced atomically.
        experiment: The name of the experiment; only required if the file contains several.
        metric: The main metric, by which settings are sorted and compared; by default `Results.metric`.

    Returns:
        The path of the HTML file.

    Raises:
        ExperimentError: The file does not contain the experiment, or contains several and `experiment` is missing.
        ResultsFileError: The results file is missing, corrupt or not a results file.
        OptionError: The metric has no scores, or the output path cannot be written, is the results file, or already
            exists and is not an HTML file.
        MissingExtraError: The extra `compare` is not installed.
    """
    _environment()
    output = check_target(output_path, results_path, kind=REPORT)
    results = Results.open(results_path, experiment)
    # Without scores, the report still has the answers.
    if metric is not None or results.matrix.ranking_metrics:
        metric = results.matrix.ranking_metric(metric)
    compared = (tables.slices, tables.differences, charts.lengths, charts.costs)
    settings = [*chain(*tables.all_settings(results, metric))]
    sections = [
        _overview(results, metric),
        Section("settings", "All settings", settings) if settings else None,
        *(section(results, metric) for section in compared if metric is not None),
        tables.measured(results),
        questions.section(results, metric),
        _run_details(results),
    ]
    with replacing(output) as file:
        file.write(page(f"Results of {results.experiment}", [one for one in sections if one]).encode())
    return output


def page(title: str, sections: Sequence[Section]) -> str:
    """The whole page, with a content security policy that only allows its own style, script and images."""
    style, script = (
        (files("oprag.compare.report") / "templates" / name).read_text(encoding="utf-8")
        for name in ("style.css", "script.js")
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    template = _environment().get_template("page.html")
    return template.render(title=title, sections=sections, style=style, script=script, policy=policy)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup, escape
    except ImportError as error:
        raise MissingExtraError("An HTML report", "compare") from error

    def clean(value: Any) -> Any:
        return safe(value) if isinstance(value, str) and not hasattr(value, "__html__") else value

    environment = Environment(
        loader=PackageLoader("oprag.compare.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["commands"] = lambda text: Markup(  # noqa: S704 - the text is escaped
        _COMMAND.sub(r"<code>\1</code>", str(escape(clean(text))))
    )
    return environment
