"""Run an experiment from Python and analyze its results."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oprag._internal.files.writing import FileKind, check_target, replacing
from oprag._internal.masking import describe
from oprag.compare.analysis.best import Best, Curve, best_of, choose_economical, curves_of
from oprag.compare.analysis.differences import Effect, SettingDifference, axis_pairs, compared, slices_of
from oprag.compare.analysis.matrix import ResultMatrix, matrix_of
from oprag.compare.analysis.settings import ORDERED_AXES, by_data, varying_axes
from oprag.compare.analysis.summary import COUNTS, MEASURED, MODEL_COUNTS, PROBLEMS, SettingSummary
from oprag.compare.analysis.verdicts import Verdict, verdicts
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.experiment import Experiment
from oprag.compare.grid import axes, check_axis
from oprag.compare.metrics.registry import METRICS
from oprag.compare.stats import Summary
from oprag.errors import MissingExtraError, OptionError
from oprag.options import check_names

if TYPE_CHECKING:
    import pandas as pd

    from oprag.compare.running.run import ProgressCallback, RunReport

__all__ = ["CSV", "File", "Results", "compare", "write_csv"]

File = str | os.PathLike[str]
_COUNTS = {"answered": "answers", **PROBLEMS}
# By the suffix of their columns.
_STATISTICS = {"": "mean", "_low": "low", "_high": "high", "_median": "median", "_sd": "standard_deviation", "_n": "n"}
_NO_SCORES = Summary(n=0)
_ALWAYS = ("method", "order", "k", "data", "model", "embedder")  # columns of settings
_COUNTED = (*MODEL_COUNTS, "tokens", "estimated", "embedded_tokens", "context_tokens", "context_chunks")


def compare(
    experiment: Experiment | File,
    path: File | None = None,
    *,
    retry_failed: bool = False,
    measure: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Results:
    """Run an experiment, or continue an earlier run of it, and return its results.

    Args:
        experiment: The experiment, or the path of its TOML file.
        path: The results file; created if missing. By default the path of the TOML file with the suffix .db.
        retry_failed: Whether to retry questions that failed before.
        measure: Whether to measure time, CPU and memory of each new answer, see `run`.
        on_progress: Called with the progress of the run.

    Returns:
        The results. Some questions may have no answer yet: the attribute `run` reports how the run ended.

    Raises:
        OptionError: `path` is missing, and the experiment was not read from a file.
        ExperimentError: The experiment cannot be run as described.
        ResultsFileError: The results file is corrupt, is not a results file, or cannot be written.
        MissingExtraError: A required package is not installed.
    """
    from oprag.compare.running.run import run

    if not isinstance(experiment, Experiment):
        file, experiment = experiment, Experiment.from_file(experiment)
        path = Path(file).with_suffix(".db") if path is None else path
    if path is None:
        raise OptionError('path is missing; name the results file of the experiment, such as path="results.db"', path)
    report = run(experiment, path, retry_failed=retry_failed, measure=measure, on_progress=on_progress)
    results = Results.open(path, experiment.name)
    results.run = report
    return results


class Results:
    """The results of an experiment: a snapshot of its file when it was opened, see `Results.open`.

    A setting is the group of cells that differ only in the seed of the random order or in the repeat. Each has a row,
    with its axes; the mean of each metric, its interval, median, standard deviation and number of questions; the number
    of answers; their mean tokens, calls and money; and measured time, CPU (percent of one core) and memory. None means
    a missing value (such as tokens if no model was called), an axis without effect, or an axis whose value is None.

    Attributes:
        matrix: The scores and costs of each question in each cell.
        path: The results file.
        run: The report of the run that produced these results; None for results read from a file.
        experiment: The name of the experiment.
    """

    def __init__(self, matrix: ResultMatrix, path: File, *, run: RunReport | None = None) -> None:
        self.matrix, self.path, self.run = matrix, Path(path), run
        self.experiment = matrix.experiment

    @classmethod
    def open(cls, path: File, experiment: str | None = None) -> Results:
        """Read the results of an experiment from a file.

        Args:
            path: The results file.
            experiment: The name of the experiment; only required if the file contains several.

        Raises:
            ExperimentError: The file does not contain the experiment, or contains several and `experiment` is missing.
            ResultsFileError: The file is missing, corrupt or not a results file.
        """
        with ResultsReader.open(path, experiment) as reader:
            return cls(matrix_of(reader), path)

    @property
    def settings(self) -> tuple[SettingSummary, ...]:
        """A summary of each setting."""
        return self.matrix.settings

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes in which settings differ."""
        return tuple(varying_axes(self.settings))

    @cached_property
    def axis_columns(self) -> tuple[str, ...]:
        """The axes that are columns of the rows."""
        most_first = sorted(self.settings, key=lambda one: -len(one.values))
        values = {name: value for one in most_first for name, value in one.values.items()}
        listed = (name for name, value in values.items() if name in _ALWAYS or value != axes()[name].default)
        return tuple(dict.fromkeys([*self.axes, *listed]))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics with scores: first those listed in the experiment, in that order, then the others."""
        return self.matrix.listed_metrics

    @property
    def metric(self) -> str:
        """The default metric, for which higher is better: of your own list the first one with scores.

        Of the default metrics `choice_accuracy` if all questions have choices, else `token_f1`, or `evidence_coverage`
        without a model; the same as in a sweep.

        Raises:
            OptionError: No such metric has scores.
        """
        return self.matrix.ranking_metric()

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each setting, in grid order."""
        metrics = list(dict.fromkeys(name for one in self.settings for name in one.scores))
        has_money = any("money" in one.per_answer for one in self.settings)
        is_measured = any(one.measured for one in self.settings)
        rows: list[dict[str, Any]] = []
        for one in self.settings:
            row: dict[str, Any] = {name: one.values.get(name) for name in self.axis_columns}
            for metric in metrics:
                score = one.scores.get(metric, _NO_SCORES)
                row |= {f"{metric}{end}": getattr(score, name) for end, name in _STATISTICS.items()}
            row |= {name: getattr(one, name) for name in ("cells", "asked", "answered", *PROBLEMS)}
            row |= {name: one.cost(name) for name in (*COUNTS, "tokens", *(["money"] if has_money else []))}
            if is_measured:
                row["measured"] = one.measured
                for name in MEASURED:
                    taken = one.measurements.get(name, _NO_SCORES)
                    row |= {f"{name}{end}": getattr(taken, _STATISTICS[end]) for end in ("", "_median", "_sd")}
            rows.append(row)
        return rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names of the rows."""
        return tuple(next(iter(self.rows), ()))

    def where(self, **values: Any) -> Results:
        """Keep only the settings with these axis values; p-values are corrected for the remaining comparisons.

        Args:
            values: A value of an axis, or a list of values, such as `k=[8, 16]`; None where the axis has no effect.

        Raises:
            OptionError: An axis is unknown, no setting has one of the values, or no setting has all of them.
        """
        found = Results(self.matrix.where(**values), self.path, run=self.run)
        # Axes that varied before remain columns.
        found.axis_columns = tuple(dict.fromkeys([*found.axis_columns, *self.axis_columns]))
        return found

    def best(self, metric: str | None = None) -> Best:
        """The setting with the highest mean score, and whether every other one is significantly worse.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The metric has no scores, higher is not better for it, or there are several data sets.
        """
        return best_of(self._of_one_data_set("best()"), self.matrix.ranking_metric(metric))

    def deployed(self, metric: str | None = None) -> SettingSummary:
        """The setting to deploy: the fewest tokens within one standard error of the highest score.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: As in `best`.
        """
        name = self.matrix.ranking_metric(metric)
        return choose_economical([one for one in self._of_one_data_set("deployed()") if name in one.scores], name)[0]

    def curves(self, axis: str = "k", metric: str | None = None) -> list[Curve]:
        """The curves along an axis, with their sweet spots; the settings of a curve differ only in this axis.

        Args:
            axis: A numeric axis, such as k, token_budget or a threshold.
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The axis is not numeric, or the metric has no scores, or higher is not better for it.
        """
        check_axis(axis)
        if axis not in ORDERED_AXES:
            raise OptionError(f"the values of {axis!r} are not numbers; use differences() or a numeric axis", axis)
        return curves_of(self.settings, axis, self.matrix.ranking_metric(metric))

    def differences(self, axis: str = "order", metrics: Collection[str] | None = None) -> list[SettingDifference]:
        """Each setting minus its baseline: the setting with the first value of an axis, and otherwise equal values.

        Axes without effect in one of the two settings are ignored: a method without a context is compared with every
        `k` of another method. p-values are corrected for all comparisons of the experiment in the metric.

        Args:
            axis: The axis.
            metrics: The names of the metrics; by default all with scores.

        Raises:
            OptionError: The axis or a metric is unknown.
        """
        check_axis(axis)
        check_names(metrics or (), {*METRICS, *self.metrics}, what="metric")
        pairs = list(axis_pairs(self.matrix, axis))
        return [
            compared(self.settings[other], self.settings[first], metric, axis)
            for metric in self.matrix.metrics
            if metrics is None or metric in metrics
            for first, other in pairs
            if any(metric in self.settings[one].scores for one in (first, other))
        ]

    def slices(self, field: str, metric: str | None = None, *, axis: str = "order") -> dict[Any, list[Effect]]:
        """The differences between the values of an axis, pooled over settings, for each value of a question field.

        Orders are compared with source order, values of other axes with the first one of the grid. p-values are
        corrected for all of them. If only one of two slices has a significant difference, they may still be alike.

        Args:
            field: A field of the questions with two to eight values, such as `evidence_spans` or `spread`.
            metric: The metric; by default `Results.metric`.
            axis: The axis.

        Raises:
            OptionError: No question has the field, the axis or metric is unknown, or there are several data sets.
        """
        check_axis(axis)
        self._of_one_data_set("slices()")
        return slices_of(self.matrix, field, self.matrix.ranking_metric(metric), axis)

    def verdicts(self, metric: str | None = None) -> list[Verdict]:
        """Which setting to deploy, whether source order helps, and the effect of each other axis, for each data set.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The metric has no scores, or higher is not better for it.
        """
        return verdicts(self.matrix, self.matrix.ranking_metric(metric))

    def answers(self) -> Iterator[dict[str, Any]]:
        """A row for each answer and each failure, one cell at a time.

        It has the axes, the question with its gold answers, the answer or its error, tokens, scores and measurements.
        """
        matrix = self.matrix
        effective = {row: one.values for one in self.settings for row in one.rows}
        seeds = [cell.values["seed"] if cell.values["order"] == "random" else None for cell in matrix.cells]
        averaged = {"seed": seeds, "repeat": [cell.values["repeat"] for cell in matrix.cells]}
        averaged = {name: values for name, values in averaged.items() if len({*values} - {None}) > 1}
        scored = [name for name in (*matrix.metrics, *MEASURED) if name in matrix.values]
        for row, column in product(*map(range, matrix.answers.shape)):
            if (answer := matrix.answers[row, column]) is None:
                continue
            question, values = matrix.questions[column], {name: matrix.values[name][row, column] for name in scored}
            counts = {name: getattr(answer, name) for name in _COUNTED}
            if answer.tokens is None:
                counts |= dict.fromkeys((*MODEL_COUNTS[1:], "estimated"))
            yield {
                **{name: effective[row].get(name) for name in self.axis_columns},
                **{name: values[row] for name, values in averaged.items()},
                "question_id": question.name,
                "question": question.question,
                "gold_answers": question.answers,
                "documents": [*question.documents],
                **{name: matrix.fields[column].get(name) for name in matrix.field_names},
                "status": "failed" if answer.failed else "answered",
                "answer": answer.text,
                "error": answer.error,
                "message": answer.message,
                "notes": [*answer.notes],
                "route": answer.route,
                **counts,
                **{name: None if np.isnan(value) else float(value) for name, value in values.items()},
            }

    def to_pandas(self, *, answers: bool = False) -> pd.DataFrame:
        """A pandas data frame with a row for each setting; its `pivot_table` arranges scores by two axes.

        Args:
            answers: Whether to return a row for each answer instead.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("A data frame", "analysis") from error
        return pd.DataFrame([*self.answers()] if answers else self.rows)

    def to_csv(self, path: File, *, answers: bool = False) -> None:
        """Write a comma-separated CSV file; strings that a spreadsheet would run as a formula get an apostrophe.

        Args:
            path: The path of the file; an existing file is only replaced if it is a table of oprag.
            answers: Whether to write a row for each answer instead of one for each setting.

        Raises:
            OptionError: The file cannot be written.
        """
        write_csv(check_target(path, self.path, kind=CSV), self.answers() if answers else self.rows)

    def __repr__(self) -> str:
        counts = {what: sum(getattr(one, name) for one in self.settings) for name, what in _COUNTS.items()}
        parts = [f"{count:,} {what}" for what, count in {"settings": len(self.settings), **counts}.items() if count]
        return f"Results of {describe(self.experiment)}: {', '.join(parts)}"

    def _of_one_data_set(self, what: str) -> Sequence[SettingSummary]:
        if len(data := list(by_data(self.settings))) > 1:
            problem = f"there are several data sets ({', '.join(data)}), whose questions differ"
            raise OptionError(f"{problem}; select one: .where(data={data[0]!r}).{what}", data)
        return self.settings


_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# In the head of every table with one row per setting, or one row per answer, before the columns of metrics and fields.
_MARKS = (b"asked,answered,failed", b"question_id,question,gold_answers")


def _is_csv(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.readline(1 << 16)
    except OSError:
        return False
    return any(mark in head for mark in _MARKS)


CSV = FileKind("a CSV table of oprag", _is_csv)


def write_csv(path: File, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows with the same columns atomically; lists are written as JSON, None as an empty cell."""
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
        # With "\r\n" (RFC 4180) the writer quotes texts that contain "\r" or "\n"; with "\n" it would not quote "\r".
        writer = csv.writer(text, lineterminator="\r\n")
        for number, row in enumerate(rows):
            # Column names can come from fields of the data, so they are escaped like any other text.
            writer.writerows(map(_cell, line) for line in ([row.values()] if number else [row, row.values()]))
        text.detach()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
