"""Run an experiment from Python and analyze its results."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from oprag.compare.analysis.best import Best, Curve, best_of, choose_economical, curves_of, pareto_front
from oprag.compare.analysis.differences import SettingDifference, axis_pairs
from oprag.compare.analysis.effects import Slice, slices_of
from oprag.compare.analysis.matrix import BoolArray, ResultMatrix, matrix_of
from oprag.compare.analysis.settings import ORDERED_AXES, by_data, varying_axes
from oprag.compare.analysis.summary import COSTS, PROBLEMS, SettingSummary
from oprag.compare.analysis.verdicts import Verdict, verdicts
from oprag.compare.analysis.wording import assignments, name_of, printable
from oprag.compare.db.reader import ResultsReader
from oprag.compare.export import CSV, answer_columns, answer_rows, axis_columns, data_frame, setting_rows, write_csv
from oprag.compare.metrics.registry import DEFAULT_METRICS, METRICS, check_better, higher_is_better, usual_metric
from oprag.compare.spec.axes import axes, check_axis
from oprag.compare.spec.experiment import Experiment
from oprag.errors import OptionError
from oprag.files.writing import check_target
from oprag.masking import describe
from oprag.options import check_choice, check_names
from oprag.text_table import html_table, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from oprag.compare.running.run import ProgressCallback, RunReport

__all__ = ["File", "Results", "compare"]

File = str | os.PathLike[str]

_MAX_SHOWN, _MAX_LISTED = 60, 8  # settings in a printed table, values in a message


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
        raise OptionError(
            "path is missing; an experiment that was not read from a file requires the path of its results file, such "
            'as path="results.db"',
            path,
        )
    report = run(experiment, path, retry_failed=retry_failed, measure=measure, on_progress=on_progress)
    results = Results.open(path, experiment.name)
    results.run = report
    return results


class Results(Sequence[Mapping[str, Any]]):
    """The results of an experiment: a sequence of rows, one for each setting, in grid order.

    A setting is the group of cells that differ only in the seed of the random order or in the repeat. `results[0]` is
    a row, `results["token_f1"]` a column. Results are a snapshot of the file when it was opened, see `Results.open`.

    The columns are the axes in which settings differ, then the axes with another value than the default, and always the
    method, order, k, data, model and embedder; for each metric the mean, its confidence interval, the median, the
    standard deviation and the number of questions (`token_f1`, `token_f1_low`, `token_f1_high`, `token_f1_median`,
    `token_f1_sd`, `token_f1_n`); the number of answers; the mean tokens, calls and, if models have prices, money per
    answer; and, if measured, the number of measured answers (`measured`), and the mean, median and standard deviation
    of their `seconds`, `cpu_seconds`, `cpu_percent` (of one core) and `peak_memory_mib`. None means a missing value
    (such as tokens if no model was called), an axis without effect, or an axis whose value is None.

    Intervals are computed on first use. They resample documents if a data set has ten or more, else questions.

    Args:
        matrix: The scores and costs.
        path: The results file.
        run: The report of the run.

    Attributes:
        matrix: The scores and costs of each question in each cell.
        path: The results file.
        run: The report of the run that produced these results; None for results read from a file.
        settings: A summary of each setting.
        axes: The axes in which settings differ.
        axis_columns: The axes that are columns of the table.
    """

    def __init__(self, matrix: ResultMatrix, path: File, *, run: RunReport | None = None) -> None:
        self.matrix = matrix
        self.path = Path(path)
        self.run = run
        self.settings = matrix.settings
        self.axes = tuple(varying_axes(matrix.settings)[0])
        self.axis_columns = tuple(axis_columns(matrix.settings))

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
        with ResultsReader(path, experiment) as reader:
            return cls(matrix_of(reader), path)

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self.matrix.experiment

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
            others = f"only {', '.join(self.metrics)}" if self.metrics else "no metric has scores yet"
            problem = f"no metric for which higher is better has scores, {others}; add one, such as token_f1"
            raise OptionError(f"{problem}, to the experiment", self.metrics)
        if tuple(self.matrix.described.get("metrics", ())) == DEFAULT_METRICS:
            usual = usual_metric(self.matrix.questions, answered=any(one.asks_model for one in self.settings))
            if usual in self.ranking_metrics:
                return usual
        return self.ranking_metrics[0]

    def ranking_metric(self, metric: str | None = None, *, scored: bool = True) -> str:
        """The metric, or the default one, after checking that settings can be ranked by it.

        Args:
            metric: The metric; by default `Results.metric`.
            scored: Whether it must have scores.

        Raises:
            OptionError: The metric is unknown or has no scores, or higher is not better for it.
        """
        metric = self.metric if metric is None else metric
        check_better(metric, self.matrix.described)
        if metric not in self.metrics and (scored or metric not in METRICS):
            what = "no scores of" if metric in METRICS else "unknown metric"
            raise OptionError(f"{what} {metric!r}; metrics with scores: {', '.join(self.metrics) or 'none'}", metric)
        return metric

    def label(self, setting: SettingSummary) -> str:
        """A short name of a setting that no other one has, such as "stuff, source, k=8": only what was varied.

        Args:
            setting: One of `settings`.
        """
        return name_of(setting.values, self._axes_of_methods[setting.values["method"]])

    @cached_property
    def _axes_of_methods(self) -> dict[Any, list[str]]:
        """For each method, the varying axes in which settings of this method differ."""
        found = {
            method: varying_axes(one for one in self.settings if one.values["method"] == method)[0]
            for method in {one.values["method"] for one in self.settings}
        }
        return {method: [name for name in self.axes if name in ("method", *some)] for method, some in found.items()}

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the questions: those of the data, plus `evidence_spans` and `spread` if there is evidence."""
        return self.matrix.field_names

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(next(iter(self._rows), ()))

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return setting_rows(self.settings, self.axis_columns)

    @overload
    def __getitem__(self, which: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[Mapping[str, Any]]: ...
    @overload
    def __getitem__(self, which: str) -> Sequence[Any]: ...
    def __getitem__(self, which: int | slice | str) -> Any:
        if not isinstance(which, str):
            return self._rows[which]
        if which not in self.columns:
            raise OptionError(f"unknown column {which!r}; the columns are {', '.join(self.columns)}", which)
        return [row[which] for row in self._rows]

    def __len__(self) -> int:
        return len(self.settings)

    def where(self, **values: Any) -> Results:
        """Keep only the settings with these axis values, and the questions with these field values.

        p-values are corrected for the remaining comparisons.

        Args:
            values: For an axis, a value or a list of values, such as `order="source"` or `k=[8, 16]`; as in a row, None
                means settings in which the axis has no effect. For a field of the questions, a value such as
                `spread=True`, a list of values, or a predicate.

        Raises:
            OptionError: An axis or field is unknown, no setting or question has one of the values, or no setting has
                all of them.
        """
        asked = np.ones(len(self.matrix.questions), dtype=bool)
        kept = self.settings
        for name, wanted in values.items():
            if name in self.fields and name not in axes():
                asked &= _matching([fields.get(name) for fields in self.matrix.fields], wanted, f"question has {name}")
            else:
                check_names([name], (*axes(), *self.fields), what="axis or field")
                check_axis(name)
                has = _matching([one.values.get(name) for one in self.settings], wanted, f"setting has {name}")
                kept = tuple(one for one in kept if has[one.number])
        data = {one.data for one, wanted in zip(self.matrix.questions, asked, strict=True) if wanted}
        kept = tuple(one for one in kept if asked.all() or one.values["data"] in data)
        if not kept:
            raise OptionError(f"no setting has all of {dict(values)}; remove one of these conditions", values)
        return self.select(kept, asked)

    def select(self, settings: Iterable[SettingSummary], questions: BoolArray | None = None) -> Results:
        """Results with a subset of the settings and questions.

        Args:
            settings: The settings to keep.
            questions: Boolean mask of the questions of the matrix to keep; all by default.
        """
        found = Results(self.matrix.select([one.number for one in settings], questions), self.path, run=self.run)
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

    def pareto(self, metric: str | None = None, *, cost: str | None = None) -> list[Mapping[str, Any]]:
        """The Pareto front: the settings that no other one matches or beats in both score and cost.

        It compares means; see `best` and `curves` for which differences are significant.

        Args:
            metric: The metric; by default `Results.metric`.
            cost: The cost per answer: tokens (input and output), one kind of tokens, calls, money, or seconds if
                measured. By default tokens, or context_tokens if some setting with scores calls no model.

        Returns:
            The rows of these settings, cheapest first. Settings without a score or a cost are excluded.

        Raises:
            OptionError: The cost is unknown, no setting with scores has it, or as in `best`.
        """
        metric, settings = self.ranking_metric(metric), self._of_one_data_set("pareto()")
        cost = self.usual_cost(metric) if cost is None else cost
        check_choice("cost", cost, COSTS)
        points = [(one, one.scores[metric].mean or 0.0, one.cost(cost)) for one in settings if metric in one.scores]
        known = [(one, score, paid) for one, score, paid in points if paid is not None]
        if not known:
            why = _MISSING_COSTS.get(cost, "settings that call no model only have context_tokens")
            raise OptionError(f"no setting with a score of {metric} has {cost}; {why}", cost)
        front = pareto_front([score for _, score, _ in known], [paid for _, _, paid in known])
        return [self[known[place][0].number] for place in front]

    def curves(self, axis: str = "k", metric: str | None = None) -> list[Curve]:
        """The curves along an axis, with their sweet spots; the settings of a curve differ only in this axis.

        Args:
            axis: A numeric axis, such as k, token_budget or a threshold.
            metric: The metric; by default `Results.metric`.

        Returns:
            The curves with scores of the metric, in grid order.

        Raises:
            OptionError: The axis is not numeric, or higher is not better for the metric.
        """
        check_axis(axis)
        if axis not in ORDERED_AXES:
            raise OptionError(
                f"cannot draw a curve over {axis!r}: its values are not numbers; use Results.differences, which "
                f"accepts any values, or one of the axes {', '.join(ORDERED_AXES)}",
                axis,
            )
        return curves_of(self.settings, axis, self.ranking_metric(metric, scored=False))

    def differences(self, axis: str = "order", metrics: Collection[str] | None = None) -> list[SettingDifference]:
        """Each setting minus its baseline: the setting with the first value of an axis, and otherwise equal values.

        Axes without effect in one of the two settings are ignored: a method without a context has no `k`, and is
        compared with every `k` of another method. p-values are corrected for all comparisons of the experiment in the
        metric, including those along other axes, so a pair of settings has the same p-value here, in `curves`, in
        `best` and in the report.

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
            SettingDifference(
                metric=metric,
                axis=axis,
                setting=self.settings[other],
                baseline=self.settings[first],
                difference=self.matrix.family(metric).compare(other, first),
            )
            for metric in self.matrix.metrics
            if metrics is None or metric in metrics
            for first, other in pairs
            if any(metric in self.settings[one].scores for one in (first, other))
        ]

    def count_pairs(self, axis: str = "order") -> int:
        """The number of pairs of settings that `differences` compares in each metric.

        Args:
            axis: The axis.
        """
        return sum(1 for _ in axis_pairs(self.matrix, axis))

    def slices(self, field: str, metric: str | None = None, *, axis: str = "order") -> list[Slice]:
        """The differences between the values of an axis, pooled over settings, for each value of a question field.

        The difference of a question is the mean over all pairs of settings that differ only in the axis. Orders are
        compared with source order, values of other axes with the first one of the grid.

        Args:
            field: A field of the questions: a field of your data, or, for questions with gold evidence,
                `evidence_spans` or `spread`.
            metric: The metric; by default `Results.metric`.
            axis: The axis.

        Raises:
            OptionError: No question has the field, the axis or metric is unknown, or there are several data sets.
        """
        check_axis(axis)
        self._of_one_data_set("slices()")
        return slices_of(self.matrix, field, self.ranking_metric(metric), axis)

    def verdicts(self, metric: str | None = None) -> list[Verdict]:
        """Answers to the questions of an experiment, in one or two sentences each.

        Which setting to deploy? Does source order help here? How much context is worth its tokens? What is the effect
        of each other axis that was varied? How do own pipelines compare? What does it cost?

        Args:
            metric: The metric; by default `Results.metric`.

        Returns:
            One verdict of each kind for each data set, the setting to deploy first, and one on costs.

        Raises:
            OptionError: The metric has no scores, or higher is not better for it.
        """
        return verdicts(self.matrix, self.ranking_metric(metric), self.ranking_metrics)

    def plot(self, axis: str | None = None, metric: str | None = None) -> Figure:
        """Plot scores along an axis as a matplotlib figure; `figure.savefig("curve.svg")` writes it to a file.

        There is a line for each curve, with a star at the sweet spot, and with the interval of each point if there are
        at most four curves.

        Args:
            axis: The numeric axis; by default the first one in which settings differ, k and token_budget before others.
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The axis or metric is unknown, or settings do not differ in a numeric axis.
            MissingExtraError: matplotlib is not installed.
        """
        from oprag.compare.plotting import plot_curves

        metric = self.ranking_metric(metric)
        # Prefer the axes that change the context length.
        axis = axis or next((name for name in ("k", "token_budget", *ORDERED_AXES) if name in self.axes), None)
        if axis is None:
            varying = ", ".join(self.axes) or "none"
            raise OptionError(f"a curve requires a numeric axis with several values; varying axes: {varying}", axis)
        curves = self.curves(axis, metric)
        names = [assignments(curve.values, varying_axes(curves)[0]) or metric for curve in curves]
        return plot_curves(curves, names, x=axis)

    def answers(self) -> Iterator[dict[str, Any]]:
        """A row for each answer and each failure, read from the file one cell at a time.

        A row contains the axes of the table (plus the seed and the repeat, if they vary), the question with its gold
        answers and documents, the answer or its error, and its tokens, scores and measurements.

        Raises:
            ResultsFileError: The file is missing or corrupt.
        """
        return answer_rows(self.matrix, self.path, self.axis_columns)

    def to_pandas(self, *, answers: bool = False) -> pd.DataFrame:
        """A pandas data frame with a row for each setting.

        `pivot_table` of the frame arranges scores or costs by two axes, and `to_parquet` writes it to a file.

        Args:
            answers: Whether to return a row for each answer instead.

        Raises:
            MissingExtraError: pandas is not installed.
            ResultsFileError: The results file is missing or corrupt.
        """
        return data_frame(*self._exported(answers=answers))

    def to_csv(self, path: File, *, answers: bool = False, spreadsheet_safe: bool = True) -> None:
        """Write a comma-separated CSV file in UTF-8, atomically.

        Args:
            path: The path of the file; an existing file is only replaced if it is a table of oprag.
            answers: Whether to write a row for each answer instead of one for each setting.
            spreadsheet_safe: Whether to prefix an apostrophe to strings that a spreadsheet would evaluate as a formula
                (strings that start with =, +, - or @, a tab or a line break).

        Raises:
            OptionError: The file cannot be written.
            ResultsFileError: The results file is missing or corrupt.
        """
        columns, rows = self._exported(answers=answers)
        write_csv(check_target(path, self.path, kind=CSV), columns, rows, spreadsheet_safe=spreadsheet_safe)

    def _exported(self, *, answers: bool) -> tuple[Sequence[str], Iterable[Mapping[str, Any]]]:
        if not answers:
            return self.columns, self._rows
        return answer_columns(self.matrix, self.axis_columns), self.answers()

    def __repr__(self) -> str:
        return "\n".join([self._caption(), *table(*self._table(), indent="")])

    def _repr_html_(self) -> str:
        return html_table(self._caption(), *self._table())

    def _caption(self) -> str:
        parts = [f"{len(self):,} settings", f"{sum(one.answered for one in self.settings):,} answers"]
        for name, what in PROBLEMS.items():
            if count := sum(getattr(one, name) for one in self.settings):
                parts.append(f"{count:,} {what}")
        more = f"; the first {_MAX_SHOWN}:" if len(self) > _MAX_SHOWN else ""
        return f"Results of {printable(self.experiment)!r}: {', '.join(parts)}{more}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """The header and rows of the printed table: the setting, means with intervals, and tokens."""
        lines = [
            [
                printable(self.label(one)),
                *(one.scores[name].describe() if name in one.scores else "–" for name in self.metrics),
                one.cost_text("context_tokens"),
            ]
            for one in self.settings[:_MAX_SHOWN]
        ]
        return ["setting", *self.metrics, "context_tokens"], lines

    def _of_one_data_set(self, what: str) -> Sequence[SettingSummary]:
        """The settings.

        Raises:
            OptionError: There are several data sets, whose questions differ.
        """
        data = list(by_data(self.settings))
        if len(data) > 1:
            raise OptionError(
                f"there are several data sets ({', '.join(data)}), whose questions differ; select one: "
                f".where(data={data[0]!r}).{what}",
                data,
            )
        return self.settings

    def usual_cost(self, metric: str | None = None) -> str:
        """The default cost: "tokens" if every setting calls a model, else "context_tokens".

        Args:
            metric: Only consider settings with scores of this metric, if there are any.
        """
        scored = [one for one in self.settings if metric is None or metric in one.scores]
        return "tokens" if all(one.asks_model for one in scored or self.settings) else "context_tokens"


_MISSING_COSTS = {
    "money": "the experiment has no model prices; add them, such as [prices.NAME]",
    "seconds": "they were not measured; use measure=True or --measure with a new results file",
}


def _matching(values: Sequence[Any], wanted: Any, what: str) -> BoolArray:
    """Which values are the wanted one, one of several wanted ones, or satisfy a predicate.

    Raises:
        OptionError: Some wanted value is not among them, or none satisfies the predicate.
    """
    known = list(dict.fromkeys(values))
    hint = f"the values are {known[:_MAX_LISTED]}"
    if callable(wanted):
        allowed = [value for value in known if value is not None and wanted(value)]
        if not allowed:
            raise OptionError(f"no {what} that matches the predicate; {hint}", wanted)
    else:
        allowed = list(wanted) if isinstance(wanted, list | tuple | set | frozenset | range) else [wanted]
        for one in allowed:
            if one not in known:
                raise OptionError(f"no {what}={describe(one)}; {hint}", wanted)
    return np.array([value in allowed for value in values])
