"""Run an experiment from Python and analyze its results."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from oprag.compare.analysis.best import Best, best_of, choose_economical, pareto_front
from oprag.compare.analysis.curves import Curve, curves_of
from oprag.compare.analysis.differences import ComparisonFamily, SettingDifference, axis_pairs, family_of
from oprag.compare.analysis.matrix import COSTS, NOT_ASKED, BoolArray, ResultMatrix, read_matrix
from oprag.compare.analysis.profiles import profile_of, retrieval_of
from oprag.compare.analysis.rows import (
    TEXTS,
    answer_columns,
    answer_rows,
    axis_columns,
    setting_rows,
)
from oprag.compare.analysis.settings import ORDERED_AXES, asks_model, check_ordered, varying_axes
from oprag.compare.analysis.slices import Slice, slices_of
from oprag.compare.analysis.summary import PROBLEMS, SettingSummary
from oprag.compare.analysis.verdicts import Verdict, verdicts
from oprag.compare.analysis.wording import assignments, name_of, printable
from oprag.compare.export import CSV, data_frame, write_csv
from oprag.compare.metrics.registry import DEFAULT_METRICS, METRICS, check_better, higher_is_better, usual_metric
from oprag.compare.spec.axes import axes, check_axis
from oprag.compare.spec.experiment import Experiment
from oprag.compare.stats.resampling import RESAMPLES
from oprag.errors import OptionError
from oprag.files.writing import check_target
from oprag.masking import describe
from oprag.options import check_choice, check_count, check_names
from oprag.text_table import html_table, table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from oprag.compare.running.run import ProgressCallback, RunReport
    from oprag.profile import Profile

__all__ = ["File", "Results", "compare"]

File = str | os.PathLike[str]

_MAX_SHOWN = 60
"""Maximum number of settings in a printed table."""
_MAX_LISTED = 8
"""Maximum number of values in a message."""


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
    return Results(read_matrix(path, experiment.name), path, run=report)


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
            experiment: The name of the experiment; only required if the file contains several.
            confidence: Confidence level of the intervals, between 0 and 1.
            resamples: Number of resamples for intervals and p-values.

        Raises:
            ExperimentError: The file does not contain the experiment, or contains several and `experiment` is missing.
            ResultsFileError: The file is missing, corrupt or not a results file.
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
        """The axes that are columns of the table."""
        return tuple(axis_columns(self.settings))

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
        if self.ranking_metrics:
            if tuple(self.matrix.described.get("metrics", ())) == DEFAULT_METRICS:
                usual = usual_metric(self.matrix.questions, answered=any(map(asks_model, self.settings)))
                if usual in self.ranking_metrics:
                    return usual
            return self.ranking_metrics[0]
        others = f"only {', '.join(self.metrics)}" if self.metrics else "no metric has scores yet"
        raise OptionError(
            f"no metric for which higher is better has scores, {others}; add one, such as token_f1, to the experiment",
            self.metrics,
        )

    def ranking_metric(self, metric: str | None = None) -> str:
        """The metric, or the default one, after checking that settings can be ranked by it.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The metric has no scores, or higher is not better for it.
        """
        metric = self._check_rankable(self.metric if metric is None else metric)
        if metric not in self.metrics:
            scored = ", ".join(self.metrics) or "none"
            raise OptionError(f"no scores of {metric!r}; metrics with scores: {scored}", metric)
        return metric

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes in which settings differ."""
        return tuple(varying_axes(self.settings)[0])

    @cached_property
    def _axes_of_methods(self) -> dict[Any, tuple[str, ...]]:
        """For each method, the varying axes in which settings of this method differ."""
        found: dict[Any, list[SettingSummary]] = {}
        for one in self.settings:
            found.setdefault(one.values.get("method"), []).append(one)
        return {
            method: tuple(name for name in self.axes if name in ("method", *varying_axes(some)[0]))
            for method, some in found.items()
        }

    def label(self, setting: SettingSummary) -> str:
        """A short name of a setting that no other one has, such as "stuff, source, k=8": only what was varied.

        Args:
            setting: One of `settings`.
        """
        return name_of(setting.values, self._axes_of_methods[setting.values.get("method")])

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of the questions: those of the data, plus `evidence_spans` and `spread` if there is evidence."""
        return self.matrix.field_names

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names."""
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
        questions = np.ones(len(self.matrix.questions), dtype=bool)
        kept = self.settings
        for axis, value in values.items():
            if axis not in axes() and axis in self.fields:
                questions &= self._matching_questions(axis, value)
                continue
            self._check_axis_or_field(axis)
            allowed = _as_list(value)
            known = list(dict.fromkeys(setting.values.get(axis) for setting in self.settings))
            for one in allowed:
                if not _is_among(one, known):
                    raise OptionError(f"no setting has {axis}={describe(one)}; the values are {known}", value)
            kept = tuple(one for one in kept if _is_among(one.values.get(axis), allowed))
        if not questions.all():
            asked = self.matrix.status[:, questions] != NOT_ASKED
            kept = tuple(one for one in kept if asked[list(one.setting.cells)].any())
        if not kept:
            raise OptionError(f"no setting has all of {dict(values)}; remove one of these conditions", values)
        return self.select(kept, None if questions.all() else questions)

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
        metric = self.ranking_metric(metric)
        self._check_one_data_set("best()")
        return best_of(self.settings, metric, axes=self.axes, family=self.family(metric))

    def deployed(self, metric: str | None = None) -> SettingSummary:
        """The setting to deploy: the fewest tokens within one standard error of the highest score.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: As in `best`.
        """
        metric = self.ranking_metric(metric)
        self._check_one_data_set("deployed()")
        scored = [one for one in self.settings if metric in one.scores]
        return choose_economical(scored, metric, axes=self.axes)[0]

    def profile(self, metric: str | None = None) -> Profile:
        """The profile of the setting to deploy, for `from_profile`; `write_profile` writes it to a file.

        Args:
            metric: The metric; by default `Results.metric`.

        Raises:
            OptionError: The setting is an own pipeline or reads no context; or as in `best`.
        """
        metric = self.ranking_metric(metric)
        setting = self.deployed(metric)
        about = {"experiment": self.experiment, metric: str(setting.scores[metric]), "retrieval": retrieval_of(setting)}
        return profile_of(setting, about)

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
        metric = self.ranking_metric(metric)
        self._check_one_data_set("pareto()")
        cost, points = self._points(metric, cost)
        front = pareto_front([score for _, score, _ in points], [paid for _, _, paid in points])
        return [self[points[place][0].number] for place in front]

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
        check_ordered(axis)
        metric = self._check_rankable(self.metric if metric is None else metric)
        return curves_of(self.settings, axis, metric, self.family(metric)) if metric in self.metrics else []

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
        for name in metrics or ():
            self._check_known(name)
        pairs = list(axis_pairs(self.matrix, axis))
        return [
            SettingDifference(
                metric=metric,
                axis=axis,
                setting=self.settings[other],
                baseline=self.settings[first],
                difference=self.family(metric).compare(other, first),
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
        metric = self.ranking_metric(metric)
        self._check_one_data_set("slices()")
        return slices_of(self.matrix, field, metric, axis)

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
        metric = self.ranking_metric(metric)
        return verdicts(self.settings, metric, self.family(metric), self.ranking_metrics)

    def family(self, metric: str) -> ComparisonFamily:
        """All comparisons of settings in a metric; their p-values are corrected together.

        Args:
            metric: The metric.
        """
        if metric not in self._families:
            self._families[metric] = family_of(self.matrix, metric)
        return self._families[metric]

    def plot(
        self, kind: str = "curve", metric: str | None = None, *, x: str | None = None, cost: str | None = None
    ) -> Figure:
        """Plot the results as a matplotlib figure; `figure.savefig("curve.svg")` writes it to a file.

        Args:
            kind: "curve" for scores along an axis: a line for each curve, with a star at the sweet spot, and with the
                interval of each point if there are at most four curves. "pareto" for scores against a cost, with the
                Pareto front.
            metric: The metric; by default `Results.metric`.
            x: The numeric axis of the curves, or "context_tokens"; by default the first numeric axis in which settings
                differ, k and token_budget before others.
            cost: The cost per answer, for "pareto"; the default is that of `pareto`.

        Raises:
            OptionError: The kind, axis, metric or cost is unknown, an argument has no effect on this kind, or settings
                do not differ in a numeric axis.
            MissingExtraError: matplotlib is not installed.
        """
        from oprag.compare.plotting import plot_curves, plot_pareto

        metric = self.ranking_metric(metric)
        check_choice("kind", kind, ("curve", "pareto"))
        unused = ("x", x) if kind == "pareto" else ("cost", cost)
        if unused[1] is not None:
            other = "curve" if kind == "pareto" else "pareto"
            raise OptionError(
                f'{unused[0]}={describe(unused[1])} requires kind="{other}", got kind="{kind}"; remove {unused[0]}',
                unused[1],
            )
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
            # Prefer the axes that change the context length.
            axis = next((name for name in ("k", "token_budget", *differ) if name in differ), None)
        if axis is None:
            varying = ", ".join(self.axes) or "none"
            raise OptionError(
                f"a curve requires a numeric axis with several values; axes with several values: {varying}", x
            )
        curves = self.curves(axis, metric)
        names = [assignments(curve.values, varying_axes(curves)[0]) or metric for curve in curves]
        return plot_curves(curves, names, x=x or axis)

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
        columns, rows = self._exported(answers=answers)
        return data_frame(columns, rows, numbers=self._numbers(columns))

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
        """The header and rows of the printed table: varying axes, means with intervals, and tokens."""
        metrics = list(dict.fromkeys(name for one in self.settings for name in one.scores))
        lines = [
            [
                *(printable(one.values[name]) if name in one.values else "–" for name in self.axes),
                *(_score(one, name) for name in metrics),
                f"{one.answered:,}",
                f"{one.failed:,}",
                "–" if (tokens := one.cost("context_tokens")) is None else f"{tokens:,.0f}",
            ]
            for one in self.settings[:_MAX_SHOWN]
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
        """The names of the numeric columns, including those without any value."""
        texts = {*TEXTS, *(name for name in self.axis_columns if name not in ORDERED_AXES)}
        return {name for name in columns if name not in texts}

    def _matching_questions(self, field: str, value: Any) -> BoolArray:
        """Mask of the questions whose field has the value, has one of several values, or satisfies a predicate."""
        allowed = _as_list(value)
        values = [fields.get(field) for fields in self.matrix.fields]
        matching = [
            one is not None and (bool(value(one)) if callable(value) else _is_among(one, allowed)) for one in values
        ]
        if not any(matching):
            known = list(dict.fromkeys(one for one in values if one is not None))[:_MAX_LISTED]
            problem = "matches the predicate" if callable(value) else f"has {field}={describe(value)}"
            raise OptionError(f"no question {problem}; values of {field}: {known}", value)
        return np.array(matching)

    def _check_axis_or_field(self, name: str) -> None:
        check_names([name], (*axes(), *self.fields), what="axis or field")
        check_axis(name)

    def _check_known(self, metric: str) -> None:
        if metric not in METRICS and metric not in self.metrics:
            scored = ", ".join(self.matrix.metrics) or "none"
            raise OptionError(f"unknown metric {metric!r}; metrics with scores: {scored}", metric)

    def _check_rankable(self, metric: str) -> str:
        """Check that the metric is known and higher is better for it; it may have no scores."""
        check_better(metric, self.matrix.described)
        self._check_known(metric)
        return metric

    def _check_one_data_set(self, what: str) -> None:
        """Raise if there are several data sets, since their questions differ."""
        data = list(dict.fromkeys(one.values["data"] for one in self.settings))
        if len(data) > 1:
            raise OptionError(
                f"there are several data sets ({', '.join(map(str, data))}), whose questions differ; select one: "
                f".where(data={data[0]!r}).{what}",
                data,
            )

    def _points(self, metric: str, cost: str | None) -> tuple[str, list[tuple[SettingSummary, float, float]]]:
        """The cost, or the default one, and each setting that has both, with its score and cost."""
        scored = [(one, one.scores[metric].mean or 0.0) for one in self.settings if metric in one.scores]
        cost = self.usual_cost(metric) if cost is None else cost
        if cost not in COSTS:
            raise OptionError(f"cost must be one of {', '.join(COSTS)}, got {describe(cost)}", cost)
        self._check_measured(cost)
        points = [(one, score, paid) for one, score in scored if (paid := one.cost(cost)) is not None]
        if not points:
            why = (
                "the experiment has no model prices; add them, such as [prices.NAME]"
                if cost == "money"
                else "settings that call no model only have context_tokens"
            )
            raise OptionError(f"no setting with a score of {metric} has {cost}; {why}", cost)
        return cost, points

    def usual_cost(self, metric: str | None = None) -> str:
        """The default cost: "tokens" if every setting calls a model, else "context_tokens".

        Args:
            metric: Only consider settings with scores of this metric, if there are any.
        """
        scored = [one for one in self.settings if metric is None or metric in one.scores]
        return "tokens" if all(map(asks_model, scored or self.settings)) else "context_tokens"

    def _check_measured(self, name: str) -> None:
        if name == "seconds" and name not in self.matrix.values:
            raise OptionError(
                "seconds were not measured; run oprag.compare.compare(..., measure=True) or oprag compare --measure "
                "with a new results file",
                name,
            )


def _score(setting: SettingSummary, metric: str) -> str:
    if metric not in setting.scores:
        return "–"
    summary = setting.scores[metric]
    return f"{summary.describe()} (n={summary.n:,})" if setting.lacks(metric) else summary.describe()


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set | frozenset | range) else [value]


def _is_among(value: Any, others: Iterable[Any]) -> bool:
    """Whether a value is one of the others; unlike `in`, True is not equal to 1."""
    return any(isinstance(value, bool) is isinstance(other, bool) and value == other for other in others)


def _check_resampling(confidence: Any, resamples: Any) -> None:
    """Reject options that do not allow an interval to be computed."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise OptionError(f"confidence must be between 0 and 1, such as 0.95, got {describe(confidence)}", confidence)
    # With fewer resamples the ends of an interval are noise.
    check_count("resamples", resamples, optional=False, minimum=100)
