"""Write the report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from oprag.compare.data.data_set import DataSet, files_of
from oprag.compare.report import costs, differences, lengths, overview, questions, run, settings
from oprag.compare.report.page import Section, check_installed, page
from oprag.compare.results import Results
from oprag.compare.spec.experiment import Experiment
from oprag.files.writing import FileKind, begins_with, check_target, replacing_target

__all__ = ["REPORT", "write_report"]

_MAX_SIZE = 4_800_000  # approximate bytes of a report

REPORT = FileKind("an HTML file", lambda path: begins_with(path, b"<!doctype html"))
"""The kind of file that a report may replace."""


def write_report(
    results_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    *,
    experiment: str | None = None,
    metric: str | None = None,
    documents: Experiment | Mapping[str, DataSet] | None = None,
) -> Path:
    """Write a report of the results of an experiment as one self-contained HTML file, which loads nothing.

    Empty sections are omitted. Questions, documents, replies and errors are escaped, so HTML in them has no effect. The
    file stays under five megabytes; the number of omitted items is shown.

    Args:
        results_path: The results file, opened read-only.
        output_path: The HTML file; an existing one is replaced atomically.
        experiment: The name of the experiment; only required if the file contains several.
        metric: The metric of the charts and differences; by default the first metric of the experiment with scores for
            which higher is better.
        documents: The experiment, or its data sets by name, for the texts of the documents: a results file does not
            contain them, so without this argument only the positions of chunks are shown. Prompts are only shown if
            the experiment is given.

    Returns:
        The path of the HTML file.

    Raises:
        ExperimentError: The file does not contain the experiment, or contains several and `experiment` is missing.
        ResultsFileError: The results file is missing, corrupt or not a results file.
        OptionError: The metric has no scores, or the output path cannot be written, is one of the input files, or
            already exists and is not an HTML file.
        MissingExtraError: The extra `compare` is not installed.
    """
    check_installed()
    output = check_target(output_path, results_path, kind=REPORT)
    results = Results.open(results_path, experiment)
    known = documents
    if known is not None and not isinstance(known, Experiment):
        known = Experiment(name="texts", data=known, grid={"method": "context_only", "k": 1})
    check_target(output, *([] if known is None else files_of(known.data)), kind=REPORT)
    # Without scores, the report still has the answers.
    if metric is not None or results.ranking_metrics:
        metric = results.ranking_metric(metric)
    sections = _sections(results, metric, known, with_prompts=known is documents)
    with replacing_target(output) as file:
        file.write(page(f"Results of {results.experiment}", sections).encode())
    return output


def _sections(
    results: Results, metric: str | None, experiment: Experiment | None, *, with_prompts: bool
) -> list[Section]:
    """The sections in page order; the questions get the space that the others leave."""
    parts = (
        overview.section,
        settings.section,
        differences.slices,
        differences.section,
        lengths.section,
        costs.section,
        settings.measured,
    )
    found = [made for part in parts if (made := part(results, metric)) is not None]
    last = run.section(results)
    size = len(page("", [*found, last]).encode())
    question_section = questions.section(
        results, metric, experiment, max(0, _MAX_SIZE - size), with_prompts=with_prompts
    )
    return [*found, *([] if question_section is None else [question_section]), last]
