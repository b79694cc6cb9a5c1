"""Writing the report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from oprag.compare.data.data_set import DataSet, files_of
from oprag.compare.report import (
    against_whole,
    compression,
    costs,
    curves,
    differences,
    measured,
    overview,
    pivots,
    questions,
    run,
    self_route,
    settings,
    thresholds,
)
from oprag.compare.report.comparisons import comparisons_of
from oprag.compare.report.material import Material, metric_of
from oprag.compare.report.page import Section, check_installed, page
from oprag.compare.report.texts import texts_of
from oprag.compare.results import Results
from oprag.compare.spec.experiment import Experiment
from oprag.errors import OptionError
from oprag.files.writing import FileKind, begins_with, check_target, replacing

__all__ = ["REPORT", "write_report"]

_LARGEST = 4_800_000  # bytes of a report, about
_STEPS = 4

REPORT = FileKind("an HTML file", lambda path: begins_with(path, b"<!doctype html"))
"""What a report is."""


def write_report(
    results_path: str | os.PathLike[str],
    output_path: str | os.PathLike[str],
    *,
    experiment: str | None = None,
    metric: str | None = None,
    documents: Experiment | Mapping[str, DataSet] | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Path:
    """Write one HTML file that shows what an experiment found; it opens offline, and loads nothing.

    A section is there where there is something to show. What a question, a document, a model or an error says is shown
    as text, whatever is in it. The file stays under five megabytes: what does not fit is counted, and in the results
    file.

    Args:
        results_path: The results file; it is read only.
        output_path: The HTML file; one that is there is replaced when the new one is whole.
        experiment: The name of the experiment; not needed where the file has one alone.
        metric: The metric of the charts and of the differences; by default the first that the experiment names, that
            there are scores of, and more of which is better.
        documents: The experiment whose data has the texts of the documents, or that data; a results file has none, and
            without them chunks are shown by their places.
        watch: Told how many steps are done, and how many there are.

    Returns:
        The path of the HTML file.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
        OptionError: There are no scores of the metric, or the HTML file cannot be written, is one that is read, or
            stands for a file that is no HTML.
        MissingExtraError: The extra `compare` is not installed.
    """
    check_installed()
    output = check_target(output_path, results_path, kind=REPORT)
    results = Results.open(results_path, experiment)
    texts = texts_of(documents, [question.key for question in results.matrix.questions])
    check_target(output, *files_of(texts.data), kind=REPORT)
    material = Material(results, metric_of(results, metric), texts)
    made = _sections(material, watch or (lambda _, __: None))
    sections = sorted(made, key=lambda section: section.id != "summary")
    try:
        with replacing(output) as file:
            file.write(page(f"Results of {results.experiment}", sections).encode())
    except OSError as error:
        raise OptionError(f"cannot write {output}: {error.strerror or error}", str(output)) from error
    return output


def _sections(material: Material, watch: Callable[[int, int], None]) -> Iterator[Section]:
    """What there is to show, in its sequence; the summary last, since it says what the others found."""
    watch(0, _STEPS)
    found: list[Section | None] = [run.section(material), settings.section(material)]
    watch(1, _STEPS)
    comparisons = comparisons_of(material)
    found.append(differences.section(material, comparisons))
    watch(2, _STEPS)
    spots = curves.spots_of(material)
    found.append(curves.section(material, spots))
    found += [one.section(material) for one in (costs, thresholds, pivots, compression, against_whole)]
    watch(3, _STEPS)
    found += [self_route.section(material), measured.section(material), overview.section(material, comparisons, spots)]
    there = [section for section in found if section is not None]
    watch(_STEPS - 1, _STEPS)
    size = len(page("", there).encode())
    drill_down = questions.section(material, max(0, _LARGEST - size))
    yield from there
    if drill_down is not None:
        yield drill_down
    watch(_STEPS, _STEPS)
