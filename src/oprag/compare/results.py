"""Running an experiment from Python, and its results."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from oprag.compare.analysis.best import Best, best_of, pareto_front
from oprag.compare.analysis.curves import Curve, curves_of
from oprag.compare.analysis.differences import ComparisonFamily, SettingDifference, axis_pairs, family_of
from oprag.compare.analysis.matrix import COSTS, NOT_ASKED, SECONDS, BoolArray, ResultMatrix, read_matrix
from oprag.compare.analysis.pivot import PIVOT_VALUES, Pivot, pivot_of
from oprag.compare.analysis.rows import (
    TEXTS,
    answer_columns,
    answer_rows,
    axis_columns,
    setting_rows,
)
from oprag.compare.analysis.settings import ORDERED_AXES, asks_model, check_ordered, varying_axes
from oprag.compare.analysis.slices import Slice, slices_of
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.verdicts import Verdict, verdicts
from oprag.compare.analysis.wording import assignments, printable
from oprag.compare.export import CSV, PARQUET, data_frame, write_csv, write_parquet
from oprag.compare.metrics.registry import METRICS, check_better, more_is_better
from oprag.compare.spec.axes import axes, check_axis
from oprag.compare.spec.experiment import Experiment
from oprag.compare.stats.resampling import RESAMPLES
from oprag.errors import OptionError
from oprag.files.writing import FileKind, check_target
from oprag.masking import describe
from oprag.options import check_choice, check_count, check_names
from oprag.text_table import html_table, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from oprag.compare.running.report import RunReport, Watch

__all__ = ["File", "Results", "compare"]

File = str | os.PathLike[str]

_MOST_SHOWN = 60
"""Maximum number of settings in a printed table."""
_MOST_LISTED = 8
"""Maximum number of values in a message."""


def compare(
    experiment: Experiment | File,
    path: File | None = None,
    *,
    retry_failed: bool = False,
    watch: Watch | None = None,
    trust: bool = False,
) -> Results:
    """Run an experiment, or continue an earlier run of it, and return its results.

    Args:
        experiment: The experiment, or a TOML file that describes one.
        path: The results file; created if it is missing. By default the TOML file with the ending .db.
        retry_failed: Whether to retry questions that failed before.
        watch: Called with the progress of the run.
        trust: Whether the TOML file may run code and reach other hosts and folders, see `Experiment.from_file`.

    Returns:
        The results. Some questions may have no answer yet: their `run` says how the run ended.

    Raises:
        OptionError: `path` is missing, and the experiment is not read from a file.
        ExperimentError: The experiment cannot be run as it is described; `UntrustedExperimentError` if its file needs
            trust.
        ResultsFileError: The results file is damaged, belongs to another program, or cannot be written.
        MissingExtraError: A required package is not installed.
    """
    from oprag.compare.running.run import run

    if not isinstance(experiment, Experiment):
        file, experiment = experiment, Experiment.from_file(experiment, trust=trust)
        path = Path(file).with_suffix(".db") if path is None else path
    if path is None:
        raise OptionError("path must name the results file, since the experiment does not come from a file", path)
    report = run(experiment, path, retry_failed=retry_failed, watch=watch)
    return Results(read_matrix(path, experiment.name), path, run=report)


class Results(Sequence[Mapping[str, Any]]):
    """The results of an experiment: a sequence of rows, one for each setting, in the sequence of the grid.

    A setting is all cells that differ only in the seed of the random order or in the repeat. `results[0]` is a row,
    `results["token_f1"]` a column. Results are those of the file when it was opened, see `Results.open`.

    A row has the axes in which settings differ, then those that are not the default, and always the method, the order,
    k, the data, the model and the embedder; for each metric the mean, its interval, the median, the standard deviation
    and the number of questions (`token_f1`, `token_f1_low`, `token_f1_high`, `token_f1_median`, `token_f1_sd`,
    `token_f1_n`); the number of answers; the mean tokens, calls and, if models have prices, money of an answer; and,
    if they were measured, seconds, processor and memory. None stands for a missing value (tokens where no model was
    asked), for an axis without effect, and for an axis whose value is none.

    Intervals are computed on first use. They resample documents if a data set has ten or more, else questions.

    Args:
        matrix: The scores and costs.
        path: The results file.
        run: The report of the run.

    Attributes:
        matrix: The scores and costs of each question in each cell.
        path: The results file.
        run: The report of the run that gave these results; None for results read from a file.
    """

    def __init__(self, matrix: ResultMatrix, path: File, *, run: RunReport | None = None) -> None:
        self.matrix = matrix
        self.path = Path(path)
        self.run = run
        self._families: dict[str, ComparisonFamily] = {}

    @classmethod
    def open(
        cls, path: File, experiment: str | None = None, *, confidence: float = 0.95, resamples: int = RESAMPLES
    ) -> Results:
        """Read the results of an experiment from a file.

        Args:
            path: The results file.
            experiment: The name of the experiment; required only if the file has several.
            confidence: Confidence level of the intervals.
            resamples: Number of samples for intervals and p-values.

        Raises:
            ExperimentError: The file has no such experiment, or has several and `experiment` is missing.
            ResultsFileError: The file is missing, damaged or not a results file.
            OptionError: The confidence or the number of resamples is invalid.
        """
        _check_resampling(confidence, resamples)
        return cls(replace(read_matrix(path, experiment), confidence=confidence, resamples=resamples), path)

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self.matrix.experiment

    @cached_property
    def settings(self) -> tuple[SettingSummary, ...]:
        """A summary of each setting."""
        return tuple(SettingSummary(self.matrix, one.number) for one in self.matrix.settings)

    @cached_property
    def axis_columns(self) -> tuple[str, ...]:
        """The axes that are columns."""
        return tuple(axis_columns(self.settings))

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics with scores: first those that the experiment names, in that sequence."""
        there = self.matrix.metrics
        asked = [name for name in self.matrix.described.get("metrics", ()) if name in there]
        return tuple(dict.fromkeys([*asked, *there]))

    @cached_property
    def ranking_metrics(self) -> tuple[str, ...]:
        """The metrics with scores of which more is better, so that settings can be ranked by them."""
        return tuple(name for name in self.metrics if more_is_better(name, self.matrix.described))

    @property
    def metric(self) -> str:
        """The default metric: the first with scores of which more is better.

        Raises:
            OptionError: No such metric has scores.
        """
        if self.ranking_metrics:
            return self.ranking_metrics[0]
        there = f"; there are scores of {', '.join(self.metrics)}" if self.metrics else ""
        raise OptionError(f"there are no scores of a metric of which more is better{there}", self.metrics)

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes in which settings differ."""
        return tuple(varying_axes(self.settings)[0])

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of the questions: those of the data, and `evidence_spans` and `spread` if there is evidence."""
        return self.matrix.field_names

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(next(iter(self._rows), ()))

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
            raise OptionError(f"there is no column {which!r}; there are {', '.join(self.columns)}", which)
        return [row[which] for row in self._rows]

    def __len__(self) -> int:
        return len(self.settings)

    def compute(
        self, metrics: Collection[str] | None = None, watch: Callable[[int, int], None] | None = None
    ) -> Results:
        """Compute the intervals of all settings now instead of on first use.

        Args:
            metrics: The names of the metrics; all by default.
            watch: Called with the number of settings that are done, and of all settings.

        Returns:
            These results.
        """
        for done, setting in enumerate(self.settings, 1):
            for metric in setting.scores:
                if metrics is None or metric in metrics:
                    setting.scores[metric]
            if watch is not None:
                watch(done, len(self))
        return self

    def where(self, **values: Any) -> Results:
        """The settings with these values of axes, and the questions with these values of fields.

        p-values are corrected for the comparisons that remain.

        Args:
            values: For an axis a value or a list of values, such as `order="source"` or `k=[8, 16]`; None, as in a row,
                for settings in which the axis has no effect. For a field of the questions a value such as
                `spread=True`, a list of values, or a predicate.

        Raises:
            OptionError: An axis or field is unknown, or nothing has such a value or all of the values.
        """
        questions = np.ones(len(self.matrix.questions), dtype=bool)
        kept = self.settings
        for axis, value in values.items():
            if axis not in axes() and axis in self.fields:
                questions &= self._having(axis, value)
                continue
            self._check_axis_or_field(axis)
            wanted = _as_list(value)
            known = list(dict.fromkeys(setting.values.get(axis) for setting in self.settings))
            for one in wanted:
                if not _is_among(one, known):
                    raise OptionError(f"no setting has {axis}={describe(one)}; there are {known}", value)
            kept = tuple(one for one in kept if _is_among(one.values.get(axis), wanted))
        if not questions.all():
            asked = self.matrix.status[:, questions] != NOT_ASKED
            kept = tuple(one for one in kept if asked[list(one.setting.cells)].any())
        if not kept:
            raise OptionError(f"no setting has all of {dict(values)}", values)
        return self.select(kept, None if questions.all() else questions)

    def select(self, settings: Iterable[SettingSummary], questions: BoolArray | None = None) -> Results:
        """Some of the settings, and some of the questions.

        Args:
            settings: Settings of these results.
            questions: Whether to keep each question of the matrix; all by default.
        """
        found = Results(self.matrix.select([one.number for one in settings], questions), self.path, run=self.run)
        # Axes that varied before remain columns.
        found.axis_columns = tuple(dict.fromkeys([*found.axis_columns, *self.axis_columns]))
        return found

    def best(self, metric: str | None = None) -> Best:
        """The setting with the highest score, and whether every other one is shown to be worse.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The metric has no scores, more of it is not better, or there are several data sets.
        """
        metric = self._scored(metric)
        self._check_one_data_set("best()")
        return best_of(self.settings, metric, axes=self.axes, family=self.family(metric))

    def pareto(self, metric: str | None = None, *, cost: str | None = None) -> list[Mapping[str, Any]]:
        """The Pareto front: the settings for which no other one has a score as high at a cost as low.

        It compares means; `best` and `curves` say which differences are shown.

        Args:
            metric: The metric; by default `Results.metric`.
            cost: The cost of an answer: tokens (read and written), one kind of tokens, calls, money, or seconds if
                they were measured. By default tokens, or context_tokens if some setting with scores asks no model.

        Returns:
            The rows of these settings, the cheapest first. Settings without a score or a cost are left out.

        Raises:
            OptionError: The cost is unknown, or no setting with scores has it; or as in `best`.
        """
        metric = self._scored(metric)
        self._check_one_data_set("pareto()")
        cost, points = self._points(metric, cost)
        front = pareto_front([score for _, score, _ in points], [paid for _, _, paid in points])
        return [self[points[place][0].number] for place in front]

    def pivot(self, rows: str, columns: str, metric: str | None = None, *, value: str = PIVOT_VALUES[0]) -> Pivot:
        """A table of one axis by another.

        If several settings have the same two values, the value of each question is the mean over them.

        Args:
            rows: The axis of the rows.
            columns: The axis of the columns.
            metric: A metric, or a cost such as "tokens", "money" or "seconds"; by default `Results.metric`.
            value: "median ± sd" and "mean [interval]", over questions; "mean", "median" or "n".

        Raises:
            OptionError: An axis, the metric or the value is unknown, or was not measured.
        """
        check_axis(rows)
        check_axis(columns)
        if rows == columns:
            raise OptionError(f"rows and columns must be two axes, got {describe(rows)} for both", columns)
        metric = self.metric if metric is None else metric
        if metric not in COSTS and metric not in self.metrics:
            raise OptionError(f"there is no metric {metric!r}; there are {', '.join((*self.metrics, *COSTS))}", metric)
        self._check_measured(metric)
        return pivot_of(self.matrix, rows=rows, columns=columns, metric=metric, value=value)

    def curves(self, axis: str = "k", metric: str | None = None) -> list[Curve]:
        """The curves over an axis, with their sweet spots; the settings of a curve differ in nothing else.

        Args:
            axis: An axis of numbers, such as k, token_budget or a threshold.
            metric: The metric; by default `Results.metric`.

        Returns:
            The curves that have scores of the metric, in the sequence of the grid.

        Raises:
            OptionError: The axis has no order, or more of the metric is not better.
        """
        check_ordered(axis)
        metric = self._known(self.metric if metric is None else metric)
        return curves_of(self.settings, axis, metric, self.family(metric)) if metric in self.metrics else []

    def differences(
        self,
        axis: str = "order",
        metrics: Collection[str] | None = None,
        *,
        watch: Callable[[int, int], None] | None = None,
    ) -> list[SettingDifference]:
        """Each setting minus its baseline: the setting with the first value of an axis, and the same values otherwise.

        Only axes that have an effect in both count: a method without a context has no `k`, and is compared with every
        `k` of another method. p-values are corrected for all comparisons of the experiment in the metric, those of
        other axes included, so that a pair of settings has the same p-value here, in `curves`, in `best` and in the
        report.

        Args:
            axis: The axis.
            metrics: The names of the metrics; all with scores by default.
            watch: Called with the number of differences that are computed, and of all differences.

        Raises:
            OptionError: The axis or a metric is unknown.
        """
        check_axis(axis)
        for name in metrics or ():
            self._check_known(name)
        names = [name for name in self.matrix.metrics if metrics is None or name in metrics]
        pairs = self._pairs(axis)
        found: list[SettingDifference] = []
        for number, (metric, (first, other)) in enumerate(((name, pair) for name in names for pair in pairs), 1):
            if any(metric in self.settings[one].scores for one in (first, other)):
                found.append(
                    SettingDifference(
                        metric=metric,
                        axis=axis,
                        setting=self.settings[other],
                        baseline=self.settings[first],
                        difference=self.family(metric).compare(other, first),
                    )
                )
            if watch is not None:
                watch(number, len(names) * len(pairs))
        return found

    def count_pairs(self, axis: str = "order") -> int:
        """The number of pairs of settings that `differences` compares in each metric.

        Args:
            axis: The axis.
        """
        return len(self._pairs(axis))

    def slices(self, field: str, metric: str | None = None, *, axis: str = "order") -> list[Slice]:
        """The pooled differences between the values of an axis, for the questions with each value of a field.

        The difference of a question is pooled: the mean over all settings that differ only in the axis. Other orders
        are compared with source order, other values with the first of the grid.

        Args:
            field: A field of the questions: one of your data, or `evidence_spans` or `spread` for questions with gold
                evidence.
            metric: The metric; by default `Results.metric`.
            axis: The axis.

        Raises:
            OptionError: No question has the field, the axis or metric is unknown, or there are several data sets.
        """
        check_axis(axis)
        metric = self._scored(metric)
        self._check_one_data_set("slices()")
        return slices_of(self.matrix, field, metric, axis)

    def verdicts(self, metric: str | None = None) -> list[Verdict]:
        """Answers to three questions, each in a sentence or two.

        Does source order help here? How much context is worth its tokens? What does it cost?

        Args:
            metric: The metric; by default `Results.metric`.

        Returns:
            A verdict on the order and one on the length for each data set, then one on costs.

        Raises:
            OptionError: The metric has no scores, or more of it is not better.
        """
        metric = self._scored(metric)
        return verdicts(self.settings, metric, self.family(metric))

    def family(self, metric: str) -> ComparisonFamily:
        """All comparisons of the settings in a metric, whose p-values are corrected together.

        Args:
            metric: The metric.
        """
        if metric not in self._families:
            self._families[metric] = family_of(self.matrix, metric)
        return self._families[metric]

    def plot(
        self, kind: str = "curve", metric: str | None = None, *, x: str | None = None, cost: str | None = None
    ) -> Figure:
        """A matplotlib figure; `figure.savefig("curve.svg")` writes it.

        Args:
            kind: "curve" for scores over an axis: a line for each curve, with the intervals of its points and a star
                at a sweet spot. "pareto" for scores against a cost, with the Pareto front.
            metric: The metric; by default `Results.metric`.
            x: The axis of numbers that curves are over, or context_tokens; by default the first that differs.
            cost: The cost of an answer, for "pareto"; by default as in `pareto`.

        Raises:
            OptionError: The kind, axis, metric or cost is unknown, one of them has no effect, or no axis of numbers
                differs.
            MissingExtraError: matplotlib is not installed.
        """
        from oprag.compare.plotting import plot_curves, plot_pareto

        metric = self._scored(metric)
        check_choice("kind", kind, ("curve", "pareto"))
        unused = ("x", x) if kind == "pareto" else ("cost", cost)
        if unused[1] is not None:
            raise OptionError(f"{unused[0]} has no effect on a {kind} plot; leave it out", unused[1])
        if kind == "pareto":
            cost, points = self._points(metric, cost)
            group = next((name for name in ("order", "method", *self.axes) if name in self.axes), None)
            groups = [
                self.experiment if group is None else assignments(one.values, [group]) or f"without {group}"
                for one, _, _ in points
            ]
            scores, paid = [score for _, score, _ in points], [amount for _, _, amount in points]
            return plot_pareto(scores, paid, groups, metric=metric, cost=cost)
        differ = [name for name in ORDERED_AXES if name in self.axes]
        axis = x
        if axis in (None, "context_tokens"):
            # First those that change how much is read.
            axis = next((name for name in ("k", "token_budget", *differ) if name in differ), None)
        if axis is None:
            told = ", ".join(self.axes) or "none"
            raise OptionError(f"no axis of numbers differs, so there is no curve; settings differ in {told}", x)
        curves = self.curves(axis, metric)
        names = [assignments(curve.values, varying_axes(curves)[0]) or metric for curve in curves]
        return plot_curves(curves, names, x=x or axis)

    def answers(self) -> Iterator[dict[str, Any]]:
        """A row for each answer and each failure, read from the file one cell at a time.

        A row has the axes of the table (and the seed and the repeat, if they differ), the question with its gold
        answers and documents, the answer or its error, its tokens, scores and measurements.

        Raises:
            ResultsFileError: The file is missing or damaged.
        """
        return answer_rows(self.matrix, self.path, self.axis_columns)

    def to_pandas(self, *, answers: bool = False) -> pd.DataFrame:
        """A data frame of pandas, with a row for each setting.

        Args:
            answers: Whether there is a row for each answer instead.

        Raises:
            MissingExtraError: pandas is not installed.
            ResultsFileError: The file is missing or damaged.
        """
        columns, rows = self._exported(answers=answers)
        return data_frame(columns, rows, numbers=self._numbers(columns))

    def to_csv(self, path: File, *, answers: bool = False, spreadsheet_safe: bool = True) -> None:
        """Write a CSV file in UTF-8, separated by commas, completely or not at all.

        Args:
            path: The file; an existing table of oprag is replaced.
            answers: Whether there is a row for each answer instead of one for each setting.
            spreadsheet_safe: Whether to put an apostrophe before texts that a spreadsheet would read as a formula
                (they begin with =, +, - or @, a tab or a line end). Parquet files have texts unchanged.

        Raises:
            OptionError: The file cannot be written.
            ResultsFileError: The results file is missing or damaged.
        """
        columns, rows = self._exported(answers=answers)
        write_csv(self._target(path, CSV), columns, rows, spreadsheet_safe=spreadsheet_safe)

    def to_parquet(self, path: File, *, answers: bool = False) -> None:
        """Write a Parquet file, completely or not at all.

        Args:
            path: The file; an existing table of oprag is replaced.
            answers: Whether there is a row for each answer instead of one for each setting.

        Raises:
            OptionError: The file cannot be written.
            ResultsFileError: The results file is missing or damaged.
            MissingExtraError: pyarrow is not installed.
        """
        columns, rows = self._exported(answers=answers)
        write_parquet(self._target(path, PARQUET), columns, rows, numbers=self._numbers(columns))

    def __repr__(self) -> str:
        return "\n".join([self._caption(), *table(*self._table(), indent="")])

    def _repr_html_(self) -> str:
        return html_table(self._caption(), *self._table())

    def _caption(self) -> str:
        parts = [f"{len(self):,} settings", f"{sum(one.answered for one in self.settings):,} answers"]
        told = {"failed": "failed", "left": "not tried", "cut_short": "cut short", "empty": "empty"}
        for name, what in told.items():
            if count := sum(getattr(one, name) for one in self.settings):
                parts.append(f"{count:,} {what}")
        more = f"; the first {_MOST_SHOWN}:" if len(self) > _MOST_SHOWN else ""
        return f"Results of {printable(self.experiment)!r}: {', '.join(parts)}{more}"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """The axes in which settings differ, means with intervals, and tokens."""
        metrics = list(dict.fromkeys(name for one in self.settings for name in one.scores))
        lines = [
            [
                *(printable(one.values[name]) if name in one.values else "–" for name in self.axes),
                *(_score(one, name) for name in metrics),
                f"{one.answered:,}",
                f"{one.failed:,}",
                "–" if (tokens := one.cost("context_tokens")) is None else f"{tokens:,.0f}",
            ]
            for one in self.settings[:_MOST_SHOWN]
        ]
        return [*self.axes, *metrics, "answers", "failed", "context_tokens"], lines

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return setting_rows(self.settings, self.axis_columns)

    def _exported(self, *, answers: bool) -> tuple[Sequence[str], Iterable[Mapping[str, Any]]]:
        if not answers:
            return self.columns, self._rows
        return answer_columns(self.matrix, self.axis_columns), self.answers()

    def _numbers(self, columns: Iterable[str]) -> set[str]:
        """The columns of numbers, including those without a value."""
        texts = {*TEXTS, *(name for name in self.axis_columns if name not in ORDERED_AXES)}
        return {name for name in columns if name not in texts}

    def _target(self, path: File, kind: FileKind) -> Path:
        return check_target(path, self.path, kind=kind)

    def _pairs(self, axis: str) -> list[tuple[int, int]]:
        return list(axis_pairs(self.matrix, axis))

    def _having(self, field: str, value: Any) -> BoolArray:
        """Whether each question has a value of a field, one of several, or one that a function accepts."""
        wanted = _as_list(value)
        there = [fields.get(field) for fields in self.matrix.fields]
        having = [
            one is not None and (bool(value(one)) if callable(value) else _is_among(one, wanted)) for one in there
        ]
        if not any(having):
            known = list(dict.fromkeys(one for one in there if one is not None))[:_MOST_LISTED]
            told = "is wanted" if callable(value) else f"has {field}={describe(value)}"
            raise OptionError(f"no question {told}; {field} is one of {known}", value)
        return np.array(having)

    def _check_axis_or_field(self, name: str) -> None:
        check_names([name], (*axes(), *self.fields), what="axis or field")
        check_axis(name)

    def _check_known(self, metric: str) -> None:
        if metric not in METRICS and metric not in self.metrics:
            there = ", ".join(self.matrix.metrics) or "none"
            raise OptionError(f"there is no metric {metric!r}; there are scores of {there}", metric)

    def _known(self, metric: str) -> str:
        """A metric of which more is better, with or without scores."""
        check_better(metric, self.matrix.described)
        self._check_known(metric)
        return metric

    def _scored(self, metric: str | None) -> str:
        """A metric of which more is better, with scores."""
        metric = self._known(self.metric if metric is None else metric)
        if metric not in self.metrics:
            there = f"; there are of {', '.join(self.metrics)}" if self.metrics else ", nor of any other metric"
            raise OptionError(f"there are no scores of {metric!r}{there}", metric)
        return metric

    def _check_one_data_set(self, what: str) -> None:
        """Refuse several data sets, since their questions differ."""
        data = list(dict.fromkeys(one.values["data"] for one in self.settings))
        if len(data) > 1:
            raise OptionError(
                f"there are several data sets ({', '.join(map(str, data))}), whose questions differ: "
                f".where(data={data[0]!r}).{what}",
                data,
            )

    def _points(self, metric: str, cost: str | None) -> tuple[str, list[tuple[SettingSummary, float, float]]]:
        """The cost, and each setting that has a score and this cost, with both."""
        scored = [(one, one.scores[metric].mean or 0.0) for one in self.settings if metric in one.scores]
        cost = self.usual_cost(metric) if cost is None else cost
        if cost not in COSTS:
            raise OptionError(f"cost must be one of {', '.join(COSTS)}, got {describe(cost)}", cost)
        self._check_measured(cost)
        points = [(one, score, paid) for one, score in scored if (paid := one.cost(cost)) is not None]
        if not points:
            why = (
                "the experiment has no price of a model, such as [prices.NAME]"
                if cost == "money"
                else "where no model is asked there are context_tokens"
            )
            raise OptionError(f"no setting with a score of {metric} has {cost}; {why}", cost)
        return cost, points

    def usual_cost(self, metric: str | None = None) -> str:
        """The tokens by which settings are compared: "tokens" if every setting asks a model, else "context_tokens".

        Args:
            metric: Ignore settings without scores of it, unless no setting has any.
        """
        scored = [one for one in self.settings if metric is None or metric in one.scores]
        return "tokens" if all(map(asks_model, scored or self.settings)) else "context_tokens"

    def _check_measured(self, name: str) -> None:
        if name in SECONDS and not self.matrix.measured.any():
            raise OptionError(
                f"{name} were not measured; oprag.compare.measure_cells does, or oprag compare --measure", name
            )


def _score(setting: SettingSummary, metric: str) -> str:
    if metric not in setting.scores:
        return "–"
    summary = setting.scores[metric]
    return f"{summary.describe()} (n={summary.n:,})" if setting.lacks(metric) else summary.describe()


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set | frozenset | range) else [value]


def _is_among(value: Any, others: Iterable[Any]) -> bool:
    """Whether it is one of the others; True is not 1."""
    return any(isinstance(value, bool) is isinstance(other, bool) and value == other for other in others)


def _check_resampling(confidence: Any, resamples: Any) -> None:
    """Refuse options with which no interval can be computed."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise OptionError(f"confidence must be between 0 and 1, such as 0.95, got {describe(confidence)}", confidence)
    # With fewer, the ends of an interval are noise.
    check_count("resamples", resamples, optional=False, least=100)
