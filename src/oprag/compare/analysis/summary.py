"""Summaries of settings: scores with intervals, costs, and the profile with the same options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import chain
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from oprag.compare.analysis.settings import amount, by_data, money_text, named, value_text
from oprag.compare.experiment_methods import kind_of
from oprag.compare.stats import FloatArray, Summary, summarise
from oprag.errors import OptionError
from oprag.methods.options import MethodOptions
from oprag.methods.profile import Profile
from oprag.methods.run import CUT_SHORT, EMPTY
from oprag.options import OP_RAG_16K, ContextOptions

if TYPE_CHECKING:
    from oprag.compare.analysis.matrix import ResultMatrix
    from oprag.compare.db.records import AnswerRecord

__all__ = [
    "ANSWERED",
    "COSTS",
    "COUNTS",
    "FAILED",
    "MANY",
    "MEASURED",
    "MODEL_COUNTS",
    "NOT_ASKED",
    "NOT_TRIED",
    "PROBLEMS",
    "SettingSummary",
    "ranked",
    "why_failed",
]

NOT_ASKED, NOT_TRIED, ANSWERED, FAILED = range(4)
"""Status of a question in a cell; `NOT_ASKED` if the question belongs to another data set than the cell."""

MODEL_COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens")
COUNTS = (*MODEL_COUNTS, "embedded_tokens", "context_tokens")  # stored with each answer
MEASURED = ("seconds", "cpu_seconds", "cpu_percent", "peak_memory_mib")  # CPU in percent is relative to one core
COSTS = ("tokens", *COUNTS, "money", "seconds")  # "tokens" is the sum of input and output tokens
MANY = 0.1  # maximum share of empty or truncated answers before a setting is marked as doubtful
PROBLEMS = {"failed": "failed", "remaining": "not tried", "cut_short": "cut short", "empty": "empty"}
"""The counts of a setting's answers that have a problem, and their names."""
# Kept in a profile even with the default of `ContextOptions`: retrievers and commands have others.
_ALWAYS = {*OP_RAG_16K, "order", "method"}
_MAX_ERRORS = 3  # in a message
_INDEX_OPTIONS = ("splitter", "chunk_size", "chunk_overlap", "embedder", "search", "store")


class SettingSummary:
    """Scores and costs of one setting: the cells that differ only in the seed of the random order or in the repeat.

    Attributes:
        matrix: The results.
        number: Index of the setting in `matrix.settings`.
        values: Values of the axes that have an effect, except the seed and the repeat.
        rows: Indices of its cells in the matrix.
        cells: Number of cells. The following numbers are sums over them.
        asked: Number of questions to answer.
        answered: Number of answered questions.
        failed: Number of failed questions; they have no score and are not part of any mean.
        remaining: Number of questions not tried yet.
        cut_short: Number of answers with a reply that was truncated at the model's output token limit.
        empty: Number of answers that are empty because the model's reply was empty.
        measured: Number of measured answers.
        notes: Number of answers with each note, such as an empty reply.
        per_answer: Mean calls, tokens and money per answer, as if no calls were shared with other cells. Model costs
            are missing if no model is used, and money if the model has no price.
        measurements: Summary of each of `MEASURED` over the measured answers, without intervals.
        estimated: Whether oprag counted the tokens of some answer, because the model did not report them.
        doubtful: Whether more than 10 % of the answers are empty or truncated, so that scores mostly reflect that.
        own: Whether it is an own pipeline.
        asks_model: Whether its answers come from a model; otherwise model costs are missing rather than 0.
    """

    def __init__(self, matrix: ResultMatrix, number: int, values: Mapping[str, Any], rows: Sequence[int]) -> None:
        self.matrix, self.number, self.values, self.rows = matrix, number, values, rows
        self.cells = len(rows)
        status = matrix.status[list(rows)]
        counts = (int(np.sum(status == kind)) for kind in (NOT_TRIED, ANSWERED, FAILED))
        self.remaining, self.answered, self.failed = counts
        self.asked = self.remaining + self.answered + self.failed
        answers: list[AnswerRecord] = [one for one in matrix.answers[list(rows)].ravel().tolist() if one is not None]
        self.notes = dict(Counter(note for one in answers if not one.failed for note in set(one.notes)))
        self.cut_short, self.empty = self.notes.get(CUT_SHORT, 0), self.notes.get(EMPTY, 0)
        self.doubtful = max(self.cut_short, self.empty) > MANY * self.answered
        self.own = kind_of(str(values["method"])).own
        self.asks_model = "model" in values or self.own
        self.per_answer = {name: cost for name in (*COUNTS, "money") if (cost := self.cost(name)) is not None}
        self.estimated = any(self._all("estimated"))
        taken = {name: self._all(name) for name in MEASURED}
        self.measurements = {name: summarise(np.array(some), resamples=0) for name, some in taken.items() if some}
        self.measured = len(taken["seconds"])

    @property
    def label(self) -> str:
        """A short name that no other setting has, such as "stuff, source, k=8": only what was varied."""
        method = self.values["method"]
        return named(self.values, self.matrix.axes_of_methods[method]) or value_text(method)

    @cached_property
    def scores(self) -> Mapping[str, Summary]:
        """Summary of each metric over questions.

        The score of a question is its mean over the cells; questions without a score in one of them are left out.
        """
        scores = {name: self.by_question(name) for name in self.matrix.metrics}
        return {
            name: summarise(some, self.matrix.clusters, resamples=self.matrix.resamples)
            for name, some in scores.items()
            if not np.isnan(some).all()
        }

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

    def profile(self, about: Mapping[str, Any] | None = None) -> Profile:
        """The profile of the setting, with which retrievers and chains get the same options.

        Args:
            about: What is known of it, for readers of the profile; the options of the index are added as "retrieval".

        Raises:
            OptionError: The setting is an own pipeline or reads no context, so there are no options to store.
        """
        values = dict(self.values)
        kind = kind_of(str(values["method"]))
        if kind.reads != "context":
            raise OptionError(f"method={values['method']} has no context options that a profile could store", values)
        if values["order"] == "random":
            values["seed"] = self.matrix.cells[self.rows[0]].values["seed"]
        index = [f"{name}={values[name]}" for name in _INDEX_OPTIONS if values.get(name) is not None]
        options = _options(MethodOptions, values) if kind.writes else {}
        about = {**(about or {}), "retrieval": ", ".join(index)}
        prompts: Mapping[str, str | None] = self.matrix.described.get("prompts", {}) if kind.writes else {}
        if texts := {name: text for name, text in prompts.items() if text is not None}:
            options["prompts"] = texts
        if others := [name for name in prompts if name not in texts]:
            about["prompts"] = f"{', '.join(others)}, which cannot be stored in a profile; set prompts in addition"
        profile = Profile(context=_options(ContextOptions, values), method=options, about=about)
        counter = self.matrix.described.get("count_tokens")
        try:
            context = Profile(context={**profile.context, "count_tokens": counter}).context
            return profile.model_copy(update={"context": context})
        except ValueError:
            # A custom function, or a tokenizer that would be downloaded.
            note = f"{counter}, which cannot be stored in a profile; set count_tokens in addition"
            return profile.model_copy(update={"about": {**about, "count_tokens": note}})

    def _all(self, name: str) -> list[float]:
        """Values of all answers in all cells."""
        values = self.matrix.values[name][list(self.rows)] if name in self.matrix.values else np.empty(0)
        return values[~np.isnan(values)].tolist()  # type: ignore[no-any-return]


def ranked(settings: Iterable[SettingSummary], metric: str) -> list[SettingSummary]:
    """Settings by data set, the highest mean of a metric first; those without a score last."""
    sets = by_data(settings).values()
    means = {one.number: one.scores[metric].mean or 0.0 for one in chain(*sets) if metric in one.scores}
    return [one for some in sets for one in sorted(some, key=lambda one: -means.get(one.number, -inf))]


def why_failed(settings: Iterable[SettingSummary]) -> str | None:
    """The most frequent errors if all answers failed, else None."""
    answers: list[AnswerRecord | None] = [
        answer for one in settings for answer in one.matrix.answers[list(one.rows)].ravel().tolist()
    ]
    tried = [answer for answer in answers if answer is not None]
    errors = Counter(f"{answer.error}: {answer.message}" for answer in tried if answer.failed)
    if not tried or errors.total() < len(tried):
        return None
    named = ", ".join(f"{count:,} × {error}" for error, count in errors.most_common(_MAX_ERRORS))
    return f"all answers failed: {named}"


def _options(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a setting that differ from their defaults, and those whose defaults differ between classes."""
    return {
        one.name: value
        for one in fields(kind)
        if (value := values.get(one.name, one.default)) != one.default or one.name in _ALWAYS
    }
