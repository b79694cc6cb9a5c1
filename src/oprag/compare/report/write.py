"""Write the report: all sections in one HTML page, rendered by templates that escape every value."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprag._internal.files.writing import FileKind, begins_with, check_target, replacing_target
from oprag._internal.text_table import safe
from oprag.compare.report import charts, differences, overview, questions, settings
from oprag.compare.report.page import Section
from oprag.compare.results import Results
from oprag.errors import MissingExtraError

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["REPORT", "page", "write_report"]

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
    if metric is not None or results.ranking_metrics:
        metric = results.ranking_metric(metric)
    compared = (differences.slices, differences.section, charts.lengths, charts.costs)
    sections = [
        overview.section(results, metric),
        settings.section(results, metric),
        *(section(results, metric) for section in compared if metric is not None),
        settings.measured(results),
        questions.section(results, metric),
        overview.run_details(results),
    ]
    with replacing_target(output) as file:
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
