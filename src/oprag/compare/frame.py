"""The results of an experiment in Python: a table to look at, to take further, and to ask for what is best."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprag.compare.best import Best, best_of
from oprag.compare.family import family_of
from oprag.compare.frame_checks import better_metric, check_one_data_set, pivoted, scored_rows
from oprag.compare.frame_table import File, SettingTable
from oprag.compare.measurements import measured_table
from oprag.compare.narrowing import narrowed
from oprag.compare.pareto import pareto_front
from oprag.compare.pivot_table import Pivot, pivot_of
from oprag.compare.quantities import read_seconds
from oprag.compare.reading import read_results
from oprag.compare.running.report import RunReport
from oprag.compare.setting import settings_of
from oprag.compare.spec.experiment import Experiment
from oprag.compare.stats.resampling import RESAMPLES
from oprag.compare.sweet_spot import SweetSpot, sweet_spots
from oprag.compare.table import cell_table
from oprag.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from oprag.compare.running.report import Watch

__all__ = ["Comparison", "compare"]


def compare(
    experiment: Experiment | File,
    path: File | None = None,
    *,
    retry_failed: bool = False,
    watch: Watch | None = None,
    trust: bool = False,
) -> Comparison:
    """Run an experiment from where earlier runs left it, and give its results.

    Args:
        experiment: The experiment, or a TOML file that describes one.
        path: The results file; made where it is missing. By default the TOML file with the ending .db.
        retry_failed: Whether questions that failed before are tried again.
        watch: Told how far it is.
        trust: Whether the TOML file may run code and reach other hosts and folders, see `Experiment.from_file`.

    Returns:
        The results. Its `report` says how the run ended: not all that was asked need be there.

    Raises:
        OptionError: An experiment that is in no file needs a path.
        ExperimentError: The experiment cannot be run as it is described; `UntrustedExperimentError` where its file
            needs trust.
        ResultsFileError: The file is damaged, is another one, or cannot be written; what was written stays.
        MissingExtraError: Something that it needs is not installed.
    """
    from oprag.compare.running.run import run

    if not isinstance(experiment, Experiment):
        file, experiment = experiment, Experiment.from_file(experiment, trust=trust)
        path = Path(file).with_suffix(".db") if path is None else path
    if path is None:
        raise OptionError("path must name the results file, since the experiment is in no file itself", path)
    report = run(experiment, path, retry_failed=retry_failed, watch=watch)
    return Comparison.open(path, experiment.name, report=report)


class Comparison(SettingTable):
    """The results of an experiment: a sequence of rows, one a setting, in the sequence of the grid.

    Settings are cells that differ in nothing but the seed of the random order, or the repeat. `comparison[0]` is a row,
    `comparison["token_f1"]` a column. It is what was in the file when it was opened; `Comparison.open` makes one.

    A row has the axes in which settings differ, then those that are not the default, and always the method, the order,
    k, the data, the model and the embedder; of each metric the mean, its interval, the median, the standard deviation
    and the number of questions (`token_f1`, `token_f1_low`, `token_f1_high`, `token_f1_median`, `token_f1_sd`,
    `token_f1_n`); how many answers there are; the means of what an answer took; and, where it was measured, its
    seconds, processor and memory. None says that there is no such value (tokens of a model that was not asked), that an
    axis has no effect, or that the value is none.

    Args:
        table: What each setting scored and took.
        measured: What was measured of each setting.
        seconds: How long answers took.
        confidence: How often an interval holds the truth.
        resamples: How many samples intervals are drawn from.
        axis_names: The axes that are columns in any case.

    Attributes:
        results: What is in the file.
        settings: What each setting scored and took.
        path: The results file.
        report: What the run did that these are the results of; None where a file was opened.
    """

    @classmethod
    def open(
        cls,
        path: File,
        experiment: str | None = None,
        *,
        confidence: float = 0.95,
        resamples: int = RESAMPLES,
        report: RunReport | None = None,
    ) -> Comparison:
        """Read the results of an experiment from a file.

        Args:
            path: The results file.
            experiment: The name of the experiment; not needed where the file has one alone.
            confidence: How often an interval holds the truth.
            resamples: How many samples intervals are drawn from.
            report: What a run did that made them.

        Raises:
            ExperimentError: There is no such experiment in the file, or several where none is named.
            ResultsFileError: There is no such file, or it is damaged or another one.
            OptionError: The confidence or the resamples cannot be.
        """
        results = read_results(path, experiment)
        return cls(
            results,
            cell_table(results, confidence=confidence, resamples=resamples),
            measured_table(results, path),
            read_seconds(results, path),
            path,
            confidence=confidence,
            resamples=resamples,
            report=report,
        )

    def where(self, **values: Any) -> Comparison:
        """The settings with these values alone.

        Args:
            values: The value of an axis, or a list of values; such as `order="source"` or `k=[8, 16]`.

        Raises:
            OptionError: There is no such axis, no setting has such a value, or none has all of them.
        """
        results, table = narrowed(self.results, self.settings, values)
        return Comparison(
            results,
            table,
            self.measured,
            self.seconds,
            self.path,
            confidence=self.confidence,
            resamples=self.resamples,
            report=self.report,
            axis_names=self.axis_columns,
        )

    def best(self, metric: str | None = None) -> Best:
        """The setting that scores highest, and whether every other one is shown to be worse.

        Args:
            metric: The metric; by default `Comparison.metric`.

        Raises:
            OptionError: There are no scores of it, more of it is not better, or they are of several data sets.
        """
        metric = better_metric(self, metric)
        check_one_data_set(self, "best()")
        family = family_of(self.results, metric, confidence=self.confidence)
        return best_of(settings_of(self.results.cells), self.settings, metric, self.axes, family)

    def pareto(self, metric: str | None = None, *, cost: str | None = None) -> list[Mapping[str, Any]]:
        """The settings that none other beats: none has a score at least as high at a cost at most as high.

        It is about means as they are; `best` and `sweet_spots` say which differences are shown.

        Args:
            metric: The metric; by default `Comparison.metric`.
            cost: What an answer costs: tokens (read and written), one kind of them, calls, or seconds, where they were
                measured. By default tokens, or context_tokens where some of the settings with scores ask no model.

        Returns:
            Their rows, the cheapest first. Settings without a score or a cost have no part.

        Raises:
            OptionError: There is no such cost, or no setting with scores has it; or as in `best`.
        """
        metric = better_metric(self, metric)
        check_one_data_set(self, "pareto()")
        cost, rows = scored_rows(self, metric, cost)
        return [rows[place] for place in pareto_front([row[metric] for row in rows], [row[cost] for row in rows])]

    def pivot(self, rows: str, columns: str, metric: str | None = None, *, value: str = "median ± sd") -> Pivot:
        """Two axes against each other.

        Where several settings have the same two values, the value of each question is the mean over them.

        Args:
            rows: The axis of the rows.
            columns: The axis of the columns.
            metric: A metric, or a cost such as "tokens" or "seconds"; by default `Comparison.metric`.
            value: "median ± sd" and "mean [interval]", over questions; "mean", "median" or "n".

        Raises:
            OptionError: An axis, the metric or the value is unknown, or there is nothing of it.
        """
        return pivot_of(
            settings_of(self.results.cells),
            self.results,
            self.seconds,
            rows=rows,
            columns=columns,
            metric=pivoted(self, rows, columns, metric),
            value=value,
            confidence=self.confidence,
            resamples=self.resamples,
        )

    def sweet_spots(self, axis: str = "k", metric: str | None = None) -> list[SweetSpot]:
        """What can be said about the best value of an axis, for each curve over it; see `oprag.compare.sweet_spots`.

        Args:
            axis: An axis of numbers.
            metric: The metric; by default `Comparison.metric`.

        Raises:
            OptionError: The axis has no order, or more of the metric is not better.
        """
        return sweet_spots(
            self.results,
            axis=axis,
            metric=self.metric if metric is None else metric,
            confidence=self.confidence,
            table=self.settings,
        )

    def plot(
        self, kind: str = "curve", metric: str | None = None, *, x: str | None = None, cost: str | None = None
    ) -> Figure:
        """A figure of matplotlib; `figure.savefig("curve.svg")` writes it.

        Args:
            kind: "curve" for scores over an axis, with a line for each curve, the bands of their intervals, and a star
                at a sweet spot; "pareto" for scores against a cost, with the front.
            metric: The metric; by default `Comparison.metric`.
            x: The axis of numbers that curves are over, or context_tokens; by default the first that differs.
            cost: What an answer costs, for "pareto"; by default as in `pareto`.

        Raises:
            OptionError: There is no such kind, axis, metric or cost, one of them has no effect, or no axis of numbers
                differs.
            MissingExtraError: matplotlib is not installed.
        """
        from oprag.compare.frame_plot import figure_of

        return figure_of(self, kind, better_metric(self, metric), x=x, cost=cost)
