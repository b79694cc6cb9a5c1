"""Write the report."""

from __future__ import annotations

import os
from pathlib import Path

from oprag.compare.report import costs, differences, lengths, overview, questions, run, settings
from oprag.compare.report.page import check_installed, page
from oprag.compare.results import Results
from oprag.files.writing import FileKind, begins_with, check_target, replacing_target

__all__ = ["REPORT", "write_report"]

REPORT = FileKind("an HTML file", lambda path: begins_with(path, b"<!doctype html"))
"""The kind of file that a report may replace."""
_SECTIONS = (
    overview.section,
    settings.section,
    differences.slices,
    differences.section,
    lengths.section,
    costs.section,
    settings.measured,
    questions.section,
    run.section,
)


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
        metric: The main metric, by which settings are sorted and compared; by default the first metric of the
            experiment with scores for which higher is better.

    Returns:
        The path of the HTML file.

    Raises:
        ExperimentError: The file does not contain the experiment, or contains several and `experiment` is missing.
        ResultsFileError: The results file is missing, corrupt or not a results file.
        OptionError: The metric has no scores, or the output path cannot be written, is the results file, or already
            exists and is not an HTML file.
        MissingExtraError: The extra `compare` is not installed.
    """
    check_installed()
    output = check_target(output_path, results_path, kind=REPORT)
    results = Results.open(results_path, experiment)
    # Without scores, the report still has the answers.
    if metric is not None or results.ranking_metrics:
        metric = results.ranking_metric(metric)
    sections = [made for section in _SECTIONS if (made := section(results, metric)) is not None]
    with replacing_target(output) as file:
        file.write(page(f"Results of {results.experiment}", sections).encode())
    return output
