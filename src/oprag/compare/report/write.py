"""Writing the report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from oprag.compare.data.data_set import DataSet, files_of
from oprag.compare.metrics.registry import check_better
from oprag.compare.report import costs, differences, lengths, long_context, overview, pivots, questions, run, settings
from oprag.compare.report.page import Section, check_installed, page
from oprag.compare.results import Results
from oprag.compare.spec.experiment import Experiment
from oprag.errors import OptionError
from oprag.files.writing import FileKind, begins_with, check_target, replacing
from oprag.masking import describe

__all__ = ["REPORT", "write_report"]

_LARGEST = 4_800_000  # bytes of a report, about

REPORT = FileKind("an HTML file", lambda path: begins_with(path, b"<!doctype html"))
"""What a report may replace."""


def write_report(
    results_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    *,
    experiment: str | None = None,
    metric: str | None = None,
    documents: Experiment | Mapping[str, DataSet] | None = None,
) -> Path:
    """Write one HTML file that shows what an experiment found; it opens offline, and loads nothing.

    A section without anything to show is left out. Questions, documents, replies and errors are shown as text,
    whatever they contain. The file stays under five megabytes; what does not fit is counted.

    Args:
        results_path: The results file; it is read only.
        output_path: The HTML file; an earlier one is replaced when the new one is whole.
        experiment: The name of the experiment; not needed where the file has one alone.
        metric: The metric of the charts and of the differences; by default the first of the experiment that has scores
            and more of which is better.
        documents: The experiment whose data has the texts of the documents, or that data; a results file has none, and
            without them chunks are shown by their places. With the experiment prompts are shown as well.

    Returns:
        The path of the HTML file.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
        OptionError: There are no scores of the metric, or the HTML file cannot be written, is one that is read, or
            exists and is not HTML.
        MissingExtraError: The extra `compare` is not installed.
    """
    check_installed()
    output = check_target(output_path, results_path, kind=REPORT)
    results = Results.open(results_path, experiment)
    known = documents
    if known is not None and not isinstance(known, Experiment):
        known = Experiment(name="texts", data=known, grid={"method": "context_only", "k": 1})
    check_target(output, *([] if known is None else files_of(known.data)), kind=REPORT)
    metric = _metric_of(results, metric)
    sections = _sections(results, metric, known, with_prompts=known is documents)
    try:
        with replacing(output) as file:
            file.write(page(f"Results of {results.experiment}", sections).encode())
    except OSError as error:
        raise OptionError(f"cannot write {output}: {error.strerror or error}", str(output)) from error
    return output


def _metric_of(results: Results, wanted: str | None) -> str | None:
    """The metric of the charts, see `write_report`; None where nothing is scored."""
    there = results.ranking_metrics
    if wanted is None:
        return next(iter(there), None)
    check_better(wanted, results.matrix.described)
    if wanted not in there:
        raise OptionError(
            f"no answer has a score of {describe(wanted)}; there are scores of {', '.join(there) or 'none'}", wanted
        )
    return wanted


def _sections(
    results: Results, metric: str | None, experiment: Experiment | None, *, with_prompts: bool
) -> list[Section]:
    """The sections, in the sequence of the page; the questions get the room that the others leave."""
    parts = (
        overview.section,
        settings.section,
        differences.slices,
        differences.section,
        lengths.section,
        costs.section,
        pivots.section,
        long_context.section,
        settings.measured,
    )
    found = [made for part in parts if (made := part(results, metric)) is not None]
    last = run.section(results)
    size = len(page("", [*found, last]).encode())
    asked = questions.section(results, metric, experiment, max(0, _LARGEST - size), with_prompts=with_prompts)
    return [*found, *([] if asked is None else [asked]), last]
