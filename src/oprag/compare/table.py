"""The table of an experiment: what each setting scored, and what it took."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum
from numbers import Real
from typing import Any

from oprag.compare.analysis.settings import asks_model
from oprag.compare.highest import as_arrays
from oprag.compare.metrics.registry import METRICS, check_better
from oprag.compare.reading import KeptAnswer, Results, as_results
from oprag.compare.setting import Setting, settings_of
from oprag.compare.stats.resampling import RESAMPLES
from oprag.compare.stats.summary import Summary, summarise
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.methods.answering import CUT_SHORT, EMPTY
from oprag.options import check_count

__all__ = [
    "MANY",
    "OF_MODELS",
    "TAKEN",
    "CellSummary",
    "cell_table",
    "check_known_metric",
    "check_metric",
    "check_resampling",
    "faults",
    "metrics_of",
]

OF_MODELS = ("calls", "input_tokens", "output_tokens", "cached_tokens")
"""What answers take of models; there is none of it where no model is asked."""

_OF_ALL = ("embedded_tokens", "context_tokens")
TAKEN = (*OF_MODELS, *_OF_ALL)
"""What answers take."""

MANY = 0.1
"""The share of answers that may be empty, or cut short, before a setting is marked."""


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """What one setting scored, and what it took.

    Attributes:
        values: The values of the axes that have an effect, but for the seed and the repeat.
        cells: How many cells it is: one for each seed of a random order, and each repeat.
        asked: How many questions its cells ask, together.
        answered: How many of them have an answer.
        failed: How many failed. They have no score, and no part in any mean.
        scores: A summary of the score of each metric, over questions; where there are several cells, the score of a
            question is the mean over them, and one that lacks in any of them is left out.
        per_answer: The mean of calls and of tokens of the answers, as if each cell were alone: calls, input_tokens,
            output_tokens, cached_tokens, embedded_tokens and context_tokens. Those of models lack where none is asked.
        notes: How many answers have each note, such as that the reply was empty.
    """

    values: Mapping[str, Any]
    cells: int
    asked: int
    answered: int
    failed: int
    scores: Mapping[str, Summary]
    per_answer: Mapping[str, float]
    notes: Mapping[str, int] = field(default_factory=dict)

    @property
    def cut_short(self) -> int:
        """How many answers have a reply that was cut at the model's limit of output tokens."""
        return self.notes.get(CUT_SHORT, 0)

    @property
    def empty(self) -> int:
        """How many answers are empty since the model's reply was."""
        return self.notes.get(EMPTY, 0)

    @property
    def doubtful(self) -> bool:
        """Whether so many answers are empty or cut short that its scores are about that."""
        return max(self.cut_short, self.empty) > MANY * self.answered

    def lacks(self, metric: str) -> bool:
        """Whether a metric has a score of fewer questions than have an answer.

        Args:
            metric: The name of the metric.
        """
        summary = self.scores.get(metric)
        return summary is not None and summary.n * self.cells < self.answered

    @property
    def left(self) -> int:
        """How many questions were not tried."""
        return self.asked - self.answered - self.failed


def cell_table(
    results: Results | str | os.PathLike[str],
    experiment: str | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    watch: Callable[[int, int], None] | None = None,
) -> list[CellSummary]:
    """A row for each setting, in the sequence of the grid.

    Intervals are drawn from documents where a data set has ten or more, else from questions (`Results.clusters`,
    `oprag.compare.stats.summary.summarise`).

    Args:
        results: The results, or the file that has them.
        experiment: The name of the experiment; not needed where the file has one alone.
        confidence: How often such an interval holds the truth.
        resamples: How many samples are drawn.
        watch: Told how many rows are made, and how many there are.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
        OptionError: The confidence or the resamples cannot be.
    """
    check_resampling(confidence, resamples)
    results = as_results(results, experiment)
    names = metrics_of(results)
    settings = settings_of(results.cells)
    rows: list[CellSummary] = []
    for setting in settings:
        rows.append(_summary(setting, results, names, confidence=confidence, resamples=resamples))
        if watch is not None:
            watch(len(rows), len(settings))
    return rows


def check_resampling(confidence: Any, resamples: Any) -> None:
    """Refuse options with which no interval can be made.

    Raises:
        OptionError: The confidence is not between 0 and 1, or the resamples are no whole number from 100.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise OptionError(f"confidence must be between 0 and 1, such as 0.95, got {describe(confidence)}", confidence)
    # With fewer the ends of an interval are mere chance.
    check_count("resamples", resamples, optional=False, least=100)


def faults(rows: Collection[CellSummary]) -> str:
    """How many answers of settings are cut short or empty, in words; nothing where none is."""
    answered = sum(row.answered for row in rows)
    counts = {"cut short": sum(row.cut_short for row in rows), "empty": sum(row.empty for row in rows)}
    told = " and ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"of {answered:,} answers {told}" if told else ""


def metrics_of(results: Results) -> list[str]:
    """The metrics that some answer has a score of, in our sequence."""
    there = {name for cell in results.cells for answer in cell.answers.values() for name in answer.scores}
    return [*(name for name in METRICS if name in there), *sorted(there - METRICS.keys())]


def check_known_metric(metric: str, there: Collection[str]) -> None:
    """Refuse what is no metric.

    Args:
        metric: The name.
        there: The metrics that there are scores of, some of which may be the user's own.

    Raises:
        OptionError: There is no such metric.
    """
    if metric not in METRICS and metric not in there:
        raise OptionError(f"there is no metric {metric!r}; there are scores of {', '.join(there) or 'none'}", metric)


def check_metric(metric: str, results: Results) -> None:
    """Refuse a metric of which no value is the best.

    Raises:
        OptionError: There is no such metric, or more of it is not better.
    """
    check_better(metric)
    check_known_metric(metric, metrics_of(results))


def _summary(
    setting: Setting, results: Results, metrics: Iterable[str], *, confidence: float, resamples: int
) -> CellSummary:
    answers = [answer for cell in setting.cells for answer in cell.answers.values()]
    answered = [answer for answer in answers if not answer.failed]
    scores: dict[str, Summary] = {}
    for metric in metrics:
        values = setting.scores(metric)
        if values:
            (array,), clusters = as_arrays([values], results.clusters)
            scores[metric] = summarise(array, clusters, confidence=confidence, resamples=resamples)
    return CellSummary(
        values=setting.values,
        cells=len(setting.cells),
        asked=sum(cell.asked for cell in setting.cells),
        answered=len(answered),
        failed=len(answers) - len(answered),
        scores=scores,
        notes=dict(Counter(note for answer in answered for note in dict.fromkeys(answer.notes))),
        per_answer=_per_answer(answered, TAKEN if asks_model(setting) else _OF_ALL),
    )


def _per_answer(answers: list[KeptAnswer], names: Iterable[str]) -> dict[str, float]:
    means: dict[str, float] = {}
    for name in names:
        known = [value for answer in answers if (value := getattr(answer, name)) is not None]
        if known:
            means[name] = fsum(known) / len(known)
    return means
