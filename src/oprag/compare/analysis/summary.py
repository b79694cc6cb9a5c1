"""Summaries of settings: scores with intervals, and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from statistics import fmean
from typing import Any

import numpy as np

from oprag.compare.analysis.matrix import ANSWERED, COUNTS, FAILED, MEASURED, NOT_ASKED, ResultMatrix
from oprag.compare.analysis.settings import Setting, by_data
from oprag.compare.analysis.wording import amount, money_text
from oprag.compare.stats.resampling import FloatArray
from oprag.compare.stats.summary import Summary, summarise
from oprag.methods.answering import CUT_SHORT, EMPTY

__all__ = ["COUNTED", "MANY", "PROBLEMS", "SettingSummary", "ranked"]

COUNTED = "~ counted by oprag, since the model did not report the tokens of all answers."
"""The meaning of the mark of `SettingSummary.cost_text`."""

MANY = 0.1
"""Maximum share of empty or truncated answers before a setting is marked as doubtful."""
PROBLEMS = {"failed": "failed", "remaining": "not tried", "cut_short": "cut short", "empty": "empty"}
"""The counts of a setting's answers that have a problem, and their names."""


@dataclass(frozen=True, eq=False)
class SettingSummary:
    """Scores and costs of one setting.

    Intervals are computed on first use.

    Attributes:
        matrix: Results that contain the setting.
        number: Index of the setting in `matrix.settings`.
    """

    matrix: ResultMatrix = field(repr=False)
    number: int

    @property
    def setting(self) -> Setting:
        """Values of the setting, and the indices of its cells."""
        return self.matrix.settings[self.number]

    @property
    def values(self) -> Mapping[str, Any]:
        """Values of the axes that have an effect, except the seed and the repeat."""
        return self.setting.values

    @property
    def cells(self) -> int:
        """Number of cells: one for each seed of a random order and each repeat."""
        return len(self.setting.cells)

    @cached_property
    def asked(self) -> int:
        """Number of questions to answer, summed over the cells."""
        return int(np.sum(self._status != NOT_ASKED))

    @cached_property
    def answered(self) -> int:
        """Number of answered questions, summed over the cells."""
        return int(np.sum(self._status == ANSWERED))

    @cached_property
    def failed(self) -> int:
        """Number of failed questions, summed over the cells; they have no score and are not part of any mean."""
        return int(np.sum(self._status == FAILED))

    @property
    def remaining(self) -> int:
        """Number of questions not tried yet, summed over the cells."""
        return self.asked - self.answered - self.failed

    @cached_property
    def scores(self) -> Mapping[str, Summary]:
        """Summary of each metric over questions.

        The score of a question is its mean over the cells; questions without a score in one of them are left out.
        """
        names = [name for name in self.matrix.metrics if self._has(name).any()]
        return _Scores(names, self._summary)

    @cached_property
    def per_answer(self) -> Mapping[str, float]:
        """Mean calls, tokens and money per answer, as if no calls were shared with other cells.

        Model costs are missing if no model is used, and money if the model has no price.
        """
        return {name: fmean(known) for name in (*COUNTS, "money") if (known := self._all(name))}

    @cached_property
    def notes(self) -> Mapping[str, int]:
        """Number of answers with each note, such as an empty reply."""
        answered = self.matrix.notes[list(self.setting.cells)][self._status == ANSWERED]
        return dict(Counter(note for notes in answered for note in set(notes)))

    @cached_property
    def routes(self) -> Mapping[str, int]:
        """Number of answers by route, for methods with several routes."""
        return dict(Counter(str(route) for route in self.matrix.routes[list(self.setting.cells)].flat if route))

    @cached_property
    def measurements(self) -> Mapping[str, Summary]:
        """Summary of each of `MEASURED` over the measured answers in all cells, without intervals."""
        taken = {name: self._all(name) for name in MEASURED}
        return {name: summarise(np.array(values), resamples=0) for name, values in taken.items() if values}

    @property
    def measured(self) -> int:
        """Number of measured answers, summed over the cells."""
        return self.measurements["seconds"].n if self.measurements else 0

    @property
    def cut_short(self) -> int:
        """Number of answers with a reply that was truncated at the model's output token limit."""
        return self.notes.get(CUT_SHORT, 0)

    @property
    def empty(self) -> int:
        """Number of answers that are empty because the model's reply was empty."""
        return self.notes.get(EMPTY, 0)

    @property
    def doubtful(self) -> bool:
        """Whether more than 10 % of the answers are empty or truncated, so that scores mostly reflect that."""
        return max(self.cut_short, self.empty) > MANY * self.answered

    def lacks(self, metric: str) -> bool:
        """Whether some answered questions lack a score of a metric.

        Args:
            metric: Name of the metric.
        """
        return metric in self.scores and int(self._has(metric).sum()) * self.cells < self.answered

    def by_question(self, name: str) -> FloatArray:
        """Value of each question of the matrix, averaged over the cells; NaN where it is missing.

        Args:
            name: Name of a metric, or a cost such as "tokens" or "seconds".
        """
        return self.matrix.setting_values(name)[self.number]  # type: ignore[no-any-return]

    def cost(self, name: str) -> float | None:
        """Mean cost of an answer; None if unknown.

        Args:
            name: One of `COSTS`: "tokens" (input plus output), a single token count, "calls", "money" or "seconds", the
                mean over measured answers.
        """
        known = self._all(name)
        return fmean(known) if known else None

    def cost_text(self, name: str) -> str:
        """Mean cost of an answer as text; "~" marks tokens that the model did not report, so that oprag counted them.

        Args:
            name: As in `cost`.
        """
        value = self.cost(name)
        if name == "money":
            return money_text(value)
        counted = self.estimated and name in ("tokens", "input_tokens", "output_tokens")
        return f"{'~' if counted and value is not None else ''}{amount(value)}"

    @cached_property
    def estimated(self) -> bool:
        """Whether oprag counted the tokens of some answer, because the model did not report them."""
        return any(self._all("estimated"))

    def _summary(self, name: str) -> Summary:
        matrix = self.matrix
        values = self.by_question(name)
        return summarise(values, matrix.clusters, confidence=matrix.confidence, resamples=matrix.resamples)

    def _all(self, name: str) -> list[float]:
        """Values of all answers in all cells."""
        values = self.matrix.values[name][list(self.setting.cells)] if name in self.matrix.values else np.empty(0)
        return values[~np.isnan(values)].tolist()  # type: ignore[no-any-return]

    def _has(self, name: str) -> Any:
        return ~np.isnan(self.by_question(name))

    @property
    def _status(self) -> Any:
        return self.matrix.status[list(self.setting.cells)]


class _Scores(Mapping[str, Summary]):
    """Summaries that are computed on first use."""

    def __init__(self, metrics: Collection[str], summarised: Callable[[str], Summary]) -> None:
        self._metrics = metrics
        self._summarised = cache(summarised)

    def __getitem__(self, metric: str) -> Summary:
        if metric not in self._metrics:
            raise KeyError(metric)
        return self._summarised(metric)

    def __contains__(self, metric: object) -> bool:
        return metric in self._metrics

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)


def ranked(settings: Sequence[SettingSummary], metric: str) -> list[SettingSummary]:
    """Settings by data set, the highest mean of a metric first; those without a score last."""
    return [
        one
        for some in by_data(settings).values()
        for one in sorted(
            some, key=lambda one: -(one.scores[metric].mean or 0.0) if metric in one.scores else float("inf")
        )
    ]
