"""Run an experiment from Python and analyze its results."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oprag._internal.files.writing import FileKind, check_target, replacing
from oprag._internal.masking import describe
from oprag.compare.analysis.best import Best, Curve, best_of, choose_economical, curves_of
from oprag.compare.analysis.differences import Effect, SettingDifference, axis_pairs, compared, slices_of
from oprag.compare.analysis.matrix import ResultMatrix, matrix_of
from oprag.compare.analysis.settings import ORDERED_AXES, by_data, named, value_text, varying_axes
from oprag.compare.analysis.summary import COUNTS, MEASURED, PROBLEMS, SettingSummary, why_failed
from oprag.compare.analysis.verdicts import Verdict, verdicts
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.experiment import Experiment
from oprag.compare.grid import AVERAGED, axes, check_axis
from oprag.compare.metrics.registry import DEFAULT_METRICS, METRICS, check_better, higher_is_better, usual_metric
from oprag.errors import MissingExtraError, OptionError
from oprag.options import check_names

if TYPE_CHECKING:
    import pandas as pd

    from oprag.compare.db.records import AnswerRecord
    from oprag.compare.running.run import ProgressCallback, RunReport

__all__ = ["CSV", "File", "Results", "compare", "write_csv"]

File = str | os.PathLike[str]

_COUNTS = {"answered": "answers", **PROBLEMS}
_MAX_LISTED = 8  # values in a message
# Columns of the rows of settings, and of those of answers.
_ALWAYS = ("method", "order", "k", "data", "model", "embedder")
_QUESTION = ("question_id", "question", "gold_answers", "documents")
_ANSWER = ("status", "answer", "error", "message", "notes", "route", "calls", "input_tokens", "output_tokens")
_MORE = ("cached_tokens", "tokens", "estimated", "embedded_tokens", "context_tokens", "context_chunks")


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

    A setting is the group of cells that differ only in the seed of the random order or in the repeat. Each has a row.
    The columns are the axes in which settings differ, then the axes with another value than the default, and always the
    method, order, k, data, model and embedder; for each metric the mean, its confidence interval, the median, the
    standard deviation and the number of questions (`token_f1`, `token_f1_low`, `token_f1_high`, `token_f1_median`,
    `token_f1_sd`, `token_f1_n`); the number of answers; the mean tokens, calls and, if models have prices, money per
    answer; and, if measured, the number of measured answers (`measured`), and the mean, median and standard deviation
    of their `seconds`, `cpu_seconds`, `cpu_percent` (of one core) and `peak_memory_mib`. None means a missing value
    (such as tokens if no model was called), an axis without effect, or an axis whose value is None.

    Intervals resample documents if a data set has ten or more, else questions.

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
        listed = [name for name, value in values.items() if name in _ALWAYS or value != axes()[name].default]
        return tuple(dict.fromkeys([*self.axes, *listed]))

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics with scores: first those listed in the experiment, in that order, then the others."""
        scored = self.matrix.metrics
        requested = [name for name in self.matrix.described.get("metrics", ()) if name in scored]
        return tuple(dict.fromkeys([*requested, *scored]))

    @cached_property
    def ranking_metrics(self) -> tuple[str, ...]:
        """The metrics with scores for which higher is better, so that settings can be ranked by them."""
        return tuple(name for name in self.metrics if higher_is_better(name, self.matrix.described))

    @property
    def metric(self) -> str:
        """The default metric, for which higher is better: of your own list the first one with scores.

        Of the default metrics `choice_accuracy` if all questions have choices, else `token_f1`, or `evidence_coverage`
        without a model; the same as in a sweep.

        Raises:
            OptionError: No such metric has scores.
        """
        if not self.ranking_metrics:
            self._check_answered()
            advice = f"add one, such as token_f1; metrics with scores: {', '.join(self.metrics) or 'none'}"
            raise OptionError(f"no metric for which higher is better has scores; {advice}", self.metrics)
        if tuple(self.matrix.described.get("metrics", ())) == DEFAULT_METRICS:
            usual = usual_metric(self.matrix.questions, answered=any(one.asks_model for one in self.settings))
            if usual in self.ranking_metrics:
                return usual
        return self.ranking_metrics[0]

    def ranking_metric(self, metric: str | None = None) -> str:
        """The metric, or the default one, after checking that settings can be ranked by it.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The metric is unknown or has no scores, or higher is not better for it.
        """
        metric = self.metric if metric is None else metric
        check_better(metric, self.matrix.described)
        if metric not in self.metrics:
            self._check_answered()
            what = "no scores of" if metric in METRICS else "unknown metric"
            raise OptionError(f"{what} {metric!r}; metrics with scores: {', '.join(self.metrics) or 'none'}", metric)
        return metric

    def _check_answered(self) -> None:
        if (why := why_failed(self.settings)) is not None:
            advice = "remove the cause, and run again with retry_failed=True (--retry-failed)"
            raise OptionError(f"there are no scores, since {why}; {advice}", why)

    def label(self, setting: SettingSummary) -> str:
        """A short name of a setting that no other one has, such as "stuff, source, k=8": only what was varied.

        Args:
            setting: One of `settings`.
        """
        method = setting.values["method"]
        return named(setting.values, self._axes_of_methods[method]) or value_text(method)

    @cached_property
    def _axes_of_methods(self) -> dict[Any, list[str]]:
        """For each method, the varying axes in which settings of this method differ."""
        methods: dict[Any, list[SettingSummary]] = {}
        for one in self.settings:
            methods.setdefault(one.values["method"], []).append(one)
        varied = {method: {"method", *varying_axes(some)} for method, some in methods.items()}
        return {method: [name for name in self.axes if name in some] for method, some in varied.items()}

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each setting, in grid order."""
        metrics = list(dict.fromkeys(name for one in self.settings for name in one.scores))
        costs = [*COUNTS, "tokens", *(["money"] if any("money" in one.per_answer for one in self.settings) else [])]
        is_measured = any(one.measured for one in self.settings)
        rows: list[dict[str, Any]] = []
        for one in self.settings:
            row: dict[str, Any] = {name: one.values.get(name) for name in self.axis_columns}
            for metric in metrics:
                summary = one.scores.get(metric)
                row[metric] = summary and summary.mean
                row |= {f"{metric}_{end}": summary and getattr(summary, end) for end in ("low", "high", "median")}
                row[f"{metric}_sd"] = summary and summary.standard_deviation
                row[f"{metric}_n"] = summary.n if summary else 0
            row |= {name: getattr(one, name) for name in ("cells", "asked", "answered", *PROBLEMS)}
            row |= {name: one.cost(name) for name in costs}
            if is_measured:
                row["measured"] = one.measured
                for name in MEASURED:
                    taken = one.measurements.get(name)
                    row[name] = taken and taken.mean
                    row |= {f"{name}_median": taken and taken.median, f"{name}_sd": taken and taken.standard_deviation}
            rows.append(row)
        return rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names of the rows."""
        return tuple(next(iter(self.rows), ()))

    def where(self, **values: Any) -> Results:
        """Keep only the settings with these axis values; p-values are corrected for the remaining comparisons.

        Args:
            values: A value of an axis, or a list of values, such as `order="source"` or `k=[8, 16]`; as in a row, None
                means settings in which the axis has no effect.

        Raises:
            OptionError: An axis is unknown, no setting has one of the values, or no setting has all of them.
        """
        kept = self.settings
        for axis, wanted in values.items():
            check_axis(axis)
            known = list(dict.fromkeys(one.values.get(axis) for one in self.settings))
            allowed = [*wanted] if isinstance(wanted, list | tuple | set | range) else [wanted]
            for value in allowed:
                if value not in known:
                    some = known[:_MAX_LISTED]
                    raise OptionError(f"no setting has {axis}={describe(value)}; the values are {some}", wanted)
            kept = tuple(one for one in kept if one.values.get(axis) in allowed)
        if not kept:
            raise OptionError(f"no setting has all of {dict(values)}; remove one of these conditions", values)
        found = Results(self.matrix.select(kept), self.path, run=self.run)
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
        return best_of(self._of_one_data_set("best()"), self.ranking_metric(metric))

    def deployed(self, metric: str | None = None) -> SettingSummary:
        """The setting to deploy: the fewest tokens within one standard error of the highest score.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: As in `best`.
        """
        metric = self.ranking_metric(metric)
        scored = [one for one in self._of_one_data_set("deployed()") if metric in one.scores]
        return choose_economical(scored, metric)[0]

    def curves(self, axis: str = "k", metric: str | None = None) -> list[Curve]:
        """The curves along an axis, with their sweet spots; the settings of a curve differ only in this axis.

        Args:
            axis: A numeric axis, such as k, token_budget or a threshold.
            metric: The metric; by default `Results.metric`.

        Returns:
            The curves with scores of the metric, in grid order.

        Raises:
            OptionError: The axis is not numeric, or the metric has no scores, or higher is not better for it.
        """
        check_axis(axis)
        if axis not in ORDERED_AXES:
            raise OptionError(f"the values of {axis!r} are not numbers; use differences() or a numeric axis", axis)
        return curves_of(self.settings, axis, self.ranking_metric(metric))

    def differences(self, axis: str = "order", metrics: Collection[str] | None = None) -> list[SettingDifference]:
        """Each setting minus its baseline: the setting with the first value of an axis, and otherwise equal values.

        Axes without effect in one of the two settings are ignored: a method without a context has no `k`, and is
        compared with every `k` of another method. p-values are corrected for all comparisons of the experiment in the
        metric, so a pair of settings has the same p-value here, in `curves`, in `best` and in the report.

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

        The difference of a question is the mean over all pairs of settings that differ only in the axis. Orders are
        compared with source order, values of other axes with the first one of the grid. p-values are corrected for all
        of them. If only one of two slices has a significant difference, the slices may still be alike.

        Args:
            field: A field of the questions with two to eight values: a field of your data, or, for questions with gold
                evidence, `evidence_spans` or `spread`.
            metric: The metric; by default `Results.metric`.
            axis: The axis.

        Raises:
            OptionError: No question has the field, the axis or metric is unknown, or there are several data sets.
        """
        check_axis(axis)
        self._of_one_data_set("slices()")
        return slices_of(self.matrix, field, self.ranking_metric(metric), axis)

    def verdicts(self, metric: str | None = None) -> list[Verdict]:
        """Answers to the questions of an experiment for each data set, in one or two sentences each.

        Which setting to deploy? Does source order help here? How much context is worth its tokens? What is the effect
        of each other axis that was varied? How do own pipelines compare?

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The metric has no scores, or higher is not better for it.
        """
        return verdicts(self.matrix, self.ranking_metric(metric), self.ranking_metrics)

    def answers(self) -> Iterator[dict[str, Any]]:
        """A row for each answer and each failure, one cell at a time.

        A row contains the axes of the table (plus the seed and the repeat, if they vary), the question with its gold
        answers and documents, the answer or its error, and its tokens, scores and measurements.
        """
        matrix = self.matrix
        effective = {row: setting.values for setting in self.settings for row in setting.rows}
        for row, cell in enumerate(matrix.cells):
            for column, question in enumerate(matrix.questions):
                answer: AnswerRecord | None = matrix.answers[row, column]
                if answer is None:
                    continue
                known = {
                    **{name: getattr(answer, name, None) for name in (*_ANSWER, *_MORE)},
                    "question_id": question.name,
                    "question": question.question,
                    "gold_answers": question.answers,
                    "documents": [*question.documents],
                    "status": "failed" if answer.failed else "answered",
                    "answer": answer.text,
                    "notes": [*answer.notes],
                    "tokens": answer.tokens,
                    **matrix.fields[column],
                    **{name: effective[row].get(name) for name in self.axis_columns},
                    **{name: _averaged_value(cell.values, name) for name in AVERAGED},
                }
                if answer.tokens is None:
                    known |= dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens", "estimated"))
                for name in (*matrix.metrics, *MEASURED):
                    if name in matrix.values and not np.isnan(value := matrix.values[name][row, column]):
                        known[name] = float(value)
                yield {name: known.get(name) for name in self._answer_columns}

    @property
    def _answer_columns(self) -> list[str]:
        values = {name: {_averaged_value(cell.values, name) for cell in self.matrix.cells} for name in AVERAGED}
        averaged = [name for name, some in values.items() if len(some - {None}) > 1]
        measured = MEASURED if "seconds" in self.matrix.values else ()
        known = (*self.axis_columns, *averaged, *_QUESTION, *self.matrix.field_names, *_ANSWER, *_MORE)
        return [*known, *self.matrix.metrics, *measured]

    def to_pandas(self, *, answers: bool = False) -> pd.DataFrame:
        """A pandas data frame with a row for each setting.

        `pivot_table` of the frame arranges scores or costs by two axes, and `to_parquet` writes it to a file.

        Args:
            answers: Whether to return a row for each answer instead.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("A data frame", "analysis") from error
        columns, rows = self._exported(answers=answers)
        return pd.DataFrame(list(rows), columns=list(columns))

    def to_csv(self, path: File, *, answers: bool = False) -> None:
        """Write a comma-separated CSV file in UTF-8, atomically.

        Strings that a spreadsheet would evaluate as a formula (they start with =, +, - or @, a tab or a line break) are
        prefixed with an apostrophe.

        Args:
            path: The path of the file; an existing file is only replaced if it is a table of oprag.
            answers: Whether to write a row for each answer instead of one for each setting.

        Raises:
            OptionError: The file cannot be written.
        """
        columns, rows = self._exported(answers=answers)
        write_csv(check_target(path, self.path, kind=CSV), columns, rows)

    def _exported(self, *, answers: bool) -> tuple[Sequence[str], Iterable[Mapping[str, Any]]]:
        return (self._answer_columns, self.answers()) if answers else (self.columns, self.rows)

    def __repr__(self) -> str:
        counts = {what: sum(getattr(one, name) for one in self.settings) for name, what in _COUNTS.items()}
        parts = [f"{count:,} {what}" for what, count in {"settings": len(self.settings), **counts}.items() if count]
        return f"Results of {describe(self.experiment)}: {', '.join(parts)}"

    def _of_one_data_set(self, what: str) -> Sequence[SettingSummary]:
        data = list(by_data(self.settings))
        if len(data) > 1:
            advice = f"select one: .where(data={data[0]!r}).{what}"
            raise OptionError(
                f"there are several data sets ({', '.join(data)}), whose questions differ; {advice}", data
            )
        return self.settings


def _averaged_value(values: Mapping[str, Any], name: str) -> Any:
    return None if name == "seed" and values["order"] != "random" else values[name]


# CSV

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# Columns of every table with one row per setting, or one row per answer; others depend on the axes and metrics.
_REQUIRED_COLUMNS = ({"asked", "answered", "failed", "tokens"}, {"question_id", "gold_answers", "status", "tokens"})
_HEAD = 1 << 16  # bytes read to find the column names


def _is_csv(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).decode(errors="replace")
        columns = next(csv.reader(io.StringIO(head)), [])
    except (OSError, csv.Error):
        return False
    return any(names.issubset(columns) for names in _REQUIRED_COLUMNS)


CSV = FileKind("a CSV table of oprag", _is_csv)
"""Files written by `write_csv`."""


def write_csv(path: str | os.PathLike[str], columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a comma-separated CSV file in UTF-8, atomically; an existing file is replaced.

    Lists are written as JSON, None as an empty cell. Strings that a spreadsheet would evaluate as a formula (they start
    with =, +, - or @, also after whitespace, a tab or a line break) are prefixed with an apostrophe.
    """
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=True)
        # With "\r\n" (RFC 4180) the writer quotes texts that contain "\r" or "\n"; with "\n" it would not quote "\r".
        writer = csv.writer(text, lineterminator="\r\n")
        # Column names can come from fields of the data, so they are escaped like any other text.
        for line in chain([columns], ([row.get(name) for name in columns] for row in rows)):
            writer.writerow(map(_cell, line))
        text.detach()


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
