"""Summaries of settings: scores with intervals, and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from statistics import fmean
from typing import Any

import numpy as np

from oprag.compare.analysis.matrix import ANSWERED, COUNTS, FAILED, NOT_ASKED, PHASES, SECONDS, ResultMatrix
from oprag.compare.analysis.settings import Setting
from oprag.compare.db.records import Phase
from oprag.compare.stats.resampling import FloatArray
from oprag.compare.stats.summary import Summary, summarise
from oprag.methods.answering import CUT_SHORT, EMPTY

__all__ = ["MANY", "PhaseSummary", "SettingSummary", "measured_how"]

MANY = 0.1
"""The share of answers that may be empty, or cut short, before a setting is marked."""


@dataclass(frozen=True, kw_only=True)
class PhaseSummary:
    """The resources that one phase of the answers of a setting used.

    Attributes:
        seconds: A summary of its wall time, over questions; attempts at a question are averaged first.
        cpu_percent: The mean share of the usable cores that it used, over questions.
        peak_memory_bytes: Maximum resident memory.
        memory_growth_bytes: Maximum growth of the resident memory.
    """

    seconds: Summary
    cpu_percent: float
    peak_memory_bytes: int
    memory_growth_bytes: int


@dataclass(frozen=True, eq=False)
class SettingSummary:
    """The scores and costs of one setting.

    Intervals are computed on first use.

    Attributes:
        matrix: The results that it is a setting of.
        number: Its number among the settings of the matrix.
    """

    matrix: ResultMatrix = field(repr=False)
    number: int

    @property
    def setting(self) -> Setting:
        """Its values, and the numbers of its cells."""
        return self.matrix.settings[self.number]

    @property
    def values(self) -> Mapping[str, Any]:
        """The values of the axes that have an effect, but for the seed and the repeat."""
        return self.setting.values

    @property
    def cells(self) -> int:
        """The number of its cells: one for each seed of a random order, and each repeat."""
        return len(self.setting.cells)

    @cached_property
    def asked(self) -> int:
        """The number of questions that its cells ask, together."""
        return int(np.sum(self._status != NOT_ASKED))

    @cached_property
    def answered(self) -> int:
        """The number of them that have an answer."""
        return int(np.sum(self._status == ANSWERED))

    @cached_property
    def failed(self) -> int:
        """The number of them that failed; they have no score, and no part in any mean."""
        return int(np.sum(self._status == FAILED))

    @property
    def left(self) -> int:
        """The number of questions that were not tried."""
        return self.asked - self.answered - self.failed

    @cached_property
    def scores(self) -> Mapping[str, Summary]:
        """A summary of the score of each metric, over questions.

        The score of a question is the mean over the cells; a question without a score in one of them is left out.
        """
        there = [name for name in self.matrix.metrics if self._has(name).any()]
        return _Scores(there, self._summary)

    @cached_property
    def per_answer(self) -> Mapping[str, float]:
        """The mean calls, tokens and money of an answer, as if each cell were alone.

        Costs of models are missing if no model is asked, and money if the model has no price.
        """
        return {name: fmean(known) for name in (*COUNTS, "money") if (known := self._all(name))}

    @cached_property
    def notes(self) -> Mapping[str, int]:
        """The number of answers with each note, such as that the reply was empty."""
        answered = self.matrix.notes[list(self.setting.cells)][self._status == ANSWERED]
        return dict(Counter(note for notes in answered for note in set(notes)))

    @cached_property
    def routes(self) -> Mapping[str, int]:
        """The number of answers that took each route, of a method that has several."""
        return dict(Counter(str(route) for route in self.matrix.routes[list(self.setting.cells)].flat if route))

    @cached_property
    def phases(self) -> Mapping[Phase, PhaseSummary]:
        """The measurements of each phase of its answers."""
        found: dict[Phase, PhaseSummary] = {}
        for phase in PHASES:
            seconds = self.by_question(f"{phase}_seconds")
            if not np.isnan(seconds).all():
                found[phase] = PhaseSummary(
                    seconds=self._summary(f"{phase}_seconds"),
                    cpu_percent=fmean(self._all(f"{phase}_cpu_percent")),
                    peak_memory_bytes=int(max(self._all(f"{phase}_peak_memory_bytes"))),
                    memory_growth_bytes=int(max(self._all(f"{phase}_memory_growth_bytes"))),
                )
        return found

    @property
    def cores(self) -> tuple[str, ...]:
        """The cores that were available to each run that measured it, such as "2 of 64 (limit of the container)"."""
        return tuple(sorted({told for cell in self.setting.cells for told in self.matrix.cores[cell]}))

    @property
    def cut_short(self) -> int:
        """The number of answers with a reply that was cut at the model's limit of output tokens."""
        return self.notes.get(CUT_SHORT, 0)

    @property
    def empty(self) -> int:
        """The number of answers that are empty since the model's reply was."""
        return self.notes.get(EMPTY, 0)

    @property
    def doubtful(self) -> bool:
        """Whether so many answers are empty or cut short that its scores say more about that."""
        return max(self.cut_short, self.empty) > MANY * self.answered

    def lacks(self, metric: str) -> bool:
        """Whether fewer questions have a score of a metric than have an answer.

        Args:
            metric: The name of the metric.
        """
        return metric in self.scores and int(self._has(metric).sum()) * self.cells < self.answered

    def by_question(self, name: str) -> FloatArray:
        """The value of each question of the matrix, averaged over the cells; NaN where it has none.

        Args:
            name: The name of a metric, or a cost such as "tokens" or "seconds".
        """
        return self.matrix.setting_values(name)[self.number]  # type: ignore[no-any-return]

    def cost(self, name: str) -> float | None:
        """The mean cost of an answer; None where it is not known.

        Args:
            name: One of `COSTS`: tokens (read and written), one kind of them, calls, money, or seconds.
        """
        known = self.by_question(name)[self._has(name)].tolist() if name in SECONDS else self._all(name)
        return fmean(known) if known else None

    def _summary(self, name: str) -> Summary:
        matrix = self.matrix
        # Seconds are summarised over questions, whatever their documents are.
        clusters = None if name in SECONDS else matrix.clusters
        return summarise(self.by_question(name), clusters, confidence=matrix.confidence, resamples=matrix.resamples)

    def _all(self, name: str) -> list[float]:
        """The values of all answers in all cells."""
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


def measured_how(settings: Collection[SettingSummary]) -> str:
    """How processor and memory were measured, in a sentence each."""
    cores = " or ".join(sorted({told for one in settings for told in one.cores}))
    return (
        f"CPU is the share of the usable cores{cores and f', {cores}'}. "
        "Memory was sampled every 10 ms; a shorter peak can be missed."
    )
