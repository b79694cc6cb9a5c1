"""Scores and costs: a matrix of cells × questions for each metric and each cost; and the fields of the questions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag._internal.masking import describe
from oprag.compare.analysis.differences import ComparisonFamily, family_of
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.summary import (
    ANSWERED,
    COSTS,
    COUNTS,
    FAILED,
    MEASURED,
    MODEL_COUNTS,
    NOT_ASKED,
    NOT_TRIED,
    SettingSummary,
    why_failed,
)
from oprag.compare.db.records import AnswerRecord, CellRecord, QuestionRecord
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.experiment_methods import kind_of
from oprag.compare.grid import AVERAGED, axes, check_axis, has_effect
from oprag.compare.meter import Measurement
from oprag.compare.metrics.registry import (
    DEFAULT_METRICS,
    METRICS,
    RESERVED,
    check_better,
    higher_is_better,
    usual_metric,
)
from oprag.compare.spending import Price
from oprag.compare.stats import RESAMPLES, FloatArray, IntArray, mean_over
from oprag.compare.validation import validated
from oprag.errors import OptionError
from oprag.methods.answer import Usage

__all__ = ["Fields", "ResultMatrix", "matrix_of", "question_fields"]

Fields = Mapping[str, str | int | float | bool]

_NOT_METRICS = {*COSTS, *MEASURED, "estimated"}
_SPREAD_DISTANCE = 2_000  # evidence counts as spread if more characters than this lie between two of its spans
_MAX_LENGTH = 200  # characters of a field
_MAX_LISTED = 8  # values in a message
_MIN_DOCUMENTS = 10  # for clustering by document: with fewer, intervals are far too narrow


@dataclass(frozen=True, eq=False, kw_only=True)
class ResultMatrix:
    """Scores and costs of an experiment: rows are cells, columns are questions."""

    experiment: str
    described: Mapping[str, Any] = field(repr=False)  # grid, models, embedders, metrics and prices
    grid: Mapping[str, list[Any]] = field(repr=False)  # values of each axis, grid axes first; none for defaults
    cells: Sequence[CellRecord] = field(repr=False)  # in the order of the current grid
    questions: Sequence[QuestionRecord] = field(repr=False)
    fields: Sequence[Fields] = field(repr=False)  # of each question, by name
    # Numbers of the questions: by document if the data set has ten or more documents and the question is about one of
    # them; else each question is its own cluster.
    clusters: IntArray = field(repr=False)
    # Of shape (cells, questions): answers and failures, None where a question was not tried; their status; and each
    # metric, cost and measurement that has a value anywhere, NaN where it is missing.
    answers: NDArray[np.object_] = field(repr=False)
    status: NDArray[np.int8] = field(repr=False)
    values: Mapping[str, FloatArray] = field(repr=False)
    cores: Sequence[str] = field(repr=False)  # that the runs which measured answers could use
    resamples: int = RESAMPLES  # for intervals and p-values
    _of_settings: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False)
    _families: dict[str, ComparisonFamily] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def settings(self) -> tuple[SettingSummary, ...]:
        """Settings, in the order of their first cells: cells that differ only in the seed or the repeat are one."""
        found: dict[frozenset[Any], tuple[Mapping[str, Any], list[int]]] = {}
        for row, cell in enumerate(self.cells):
            effective = _effective_values(cell.values)
            found.setdefault(frozenset(effective.items()), (effective, []))[1].append(row)
        return tuple(
            SettingSummary(self, number, values, tuple(rows)) for number, (values, rows) in enumerate(found.values())
        )

    @cached_property
    def axes_of_methods(self) -> dict[Any, list[str]]:
        """For each method, the method and the axes in which its settings differ."""
        methods: dict[Any, list[SettingSummary]] = {}
        for one in self.settings:
            methods.setdefault(one.values["method"], []).append(one)
        axes = varying_axes(self.settings)
        varied = {method: {"method", *varying_axes(some)} for method, some in methods.items()}
        return {method: [name for name in axes if name in some] for method, some in varied.items()}

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Metrics with scores, built-in ones first."""
        scored = self.values.keys() - _NOT_METRICS
        return (*(name for name in METRICS if name in scored), *sorted(scored - METRICS.keys()))

    @property
    def listed_metrics(self) -> tuple[str, ...]:
        """Metrics with scores: first those listed in the experiment, in that order."""
        listed = [name for name in self.described.get("metrics", ()) if name in self.metrics]
        return tuple(dict.fromkeys([*listed, *self.metrics]))

    @cached_property
    def ranking_metrics(self) -> tuple[str, ...]:
        """Metrics for which higher is better, so that settings can be ranked by them."""
        return tuple(name for name in self.listed_metrics if higher_is_better(name, self.described))

    def ranking_metric(self, metric: str | None = None) -> str:
        """The metric, or the default one, if settings can be ranked by it; raises an OptionError if not."""
        if metric is None and self.ranking_metrics:
            if tuple(self.described.get("metrics", ())) == DEFAULT_METRICS:
                usual = usual_metric(self.questions, answered=any(one.asks_model for one in self.settings))
                return usual if usual in self.ranking_metrics else self.ranking_metrics[0]
            return self.ranking_metrics[0]
        if metric is not None:
            check_better(metric, self.described)
        if metric in self.metrics:
            return metric
        if (why := why_failed(self.settings)) is not None:
            advice = "remove the cause, and run again with retry_failed=True (--retry-failed)"
            raise OptionError(f"there are no scores, since {why}; {advice}", why)
        problem = f"{'no scores of' if metric in METRICS else 'unknown metric'} {metric!r}"
        if metric is None:
            problem = "no metric for which higher is better has scores; add one, such as token_f1"
        raise OptionError(f"{problem}; metrics with scores: {', '.join(self.listed_metrics) or 'none'}", metric)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """Names of all question fields, in order of first use."""
        return tuple(dict.fromkeys(name for fields in self.fields for name in fields))

    def setting_values(self, name: str) -> FloatArray:
        """Values of a metric or a cost, of shape (settings, questions); NaN where any cell of a setting lacks one.

        Averaged over seeds first: five random orders of 100 questions are not 500 independent samples.
        """
        if name not in self._of_settings:
            known = self.values.get(name, np.full(self.status.shape, np.nan))
            rows = [mean_over(known[list(setting.rows)]) for setting in self.settings]
            self._of_settings[name] = np.array(rows).reshape(len(self.settings), len(self.questions))
        return self._of_settings[name]

    def family(self, metric: str) -> ComparisonFamily:
        """All comparisons of settings in a metric; their p-values are corrected together."""
        if metric not in self._families:
            self._families[metric] = family_of(self, metric)
        return self._families[metric]

    def where(self, **values: Any) -> ResultMatrix:
        """Restrict the matrix to the settings with these axis values, see `Results.where`."""
        kept = self.settings
        for axis, wanted in values.items():
            check_axis(axis)
            known = list(dict.fromkeys(one.values.get(axis) for one in self.settings))
            allowed = [*wanted] if isinstance(wanted, list | tuple | set | range) else [wanted]
            if unknown := [value for value in allowed if value not in known]:
                problem = f"no setting has {axis}={describe(unknown[0])}"
                raise OptionError(f"{problem}; the values are {known[:_MAX_LISTED]}", wanted)
            kept = tuple(one for one in kept if one.values.get(axis) in allowed)
        if not kept:
            raise OptionError(f"no setting has all of {values}; remove one of these conditions", values)
        rows = sorted(row for one in kept for row in one.rows)
        return replace(
            self,
            cells=[self.cells[row] for row in rows],
            answers=self.answers[rows],
            status=self.status[rows],
            values={name: some for name, all_of in self.values.items() if not np.isnan(some := all_of[rows]).all()},
        )


def matrix_of(reader: ResultsReader) -> ResultMatrix:
    """Read the scores and costs of the reader's experiment."""
    grid = _grid_values(reader.described)
    on_axes = [{name: cell.values.get(name, axes()[name].default) for name in grid} for cell in reader.cells]
    placed = [cell._replace(values=values) for cell, values in zip(reader.cells, on_axes, strict=True)]
    cells = sorted(placed, key=lambda cell: _place_in_grid(cell.values, grid))
    row_of = {cell.key: row for row, cell in enumerate(cells)}
    column_of = {question.key: column for column, question in enumerate(reader.questions)}
    shape = len(cells), len(reader.questions)
    found = {(row_of[answer.cell], column_of[answer.question]): answer for answer in reader.answers()}
    answers, status = np.full(shape, None, dtype=object), np.full(shape, NOT_ASKED, dtype=np.int8)
    data = np.array([question.data for question in reader.questions], dtype=object)
    for row, cell in enumerate(cells):
        status[row, data == cell.values["data"]] = NOT_TRIED
    for place, answer in found.items():
        answers[place], status[place] = answer, FAILED if answer.failed else ANSWERED
    answered = {place: answer for place, answer in found.items() if not answer.failed}
    values = _costs(reader.described, cells, answered, shape)
    for place, answer in found.items():
        for metric, value in answer.scores.items():
            values.setdefault(metric, np.full(shape, np.nan))[place] = value
    return ResultMatrix(
        experiment=reader.name,
        described=reader.described,
        grid=grid,
        cells=cells,
        questions=reader.questions,
        fields=[question_fields(one, {*COSTS, *METRICS, *values}) for one in reader.questions],
        clusters=_clusters(reader.questions),
        answers=answers,
        status=status,
        values=values,
        cores=reader.cores(),
    )


def _effective_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that have an effect, without the seed and the repeat."""
    return {name: value for name, value in values.items() if name not in AVERAGED and has_effect(name, values)}


def _grid_values(described: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Values of each axis in grid order, grid axes first; empty for axes left at their default."""
    listed: dict[str, list[Any]] = {}
    for grid in described.get("grid", ()):
        for name, values in grid.items():
            listed.setdefault(name, []).extend(values)
    for name, part in (("data", "data"), ("embedder", "embedders"), ("model", "models")):
        listed.setdefault(name, list(described.get(part, ())))
    # The seed and the repeat do not distinguish settings, so they come last.
    names = sorted(dict.fromkeys([*listed, *axes()]), key=lambda name: name in AVERAGED)
    return {name: listed.get(name, []) for name in names if name in axes()}


def _place_in_grid(values: Mapping[str, Any], grid: Mapping[str, list[Any]]) -> list[int]:
    """Sort key of a cell in grid order; a value that the grid does not list sorts last."""
    return [known.index(values[name]) if values[name] in known else len(known) for name, known in grid.items()]


def _costs(
    described: Mapping[str, Any],
    cells: Sequence[CellRecord],
    answers: Mapping[tuple[int, int], AnswerRecord],
    shape: tuple[int, int],
) -> dict[str, FloatArray]:
    """Counts and measurements of the answers, and their price if the file has prices for the model."""
    written = described.get("prices")
    items = written.items() if isinstance(written, Mapping) else ()
    prices = {name: validated(Price, price, place=f"prices.{name}") for name, price in items}
    models = [_effective_values(cell.values).get("model") for cell in cells]
    stored = (*COUNTS, *Measurement._fields, "estimated")
    found = {name: np.full(shape, np.nan) for name in (*stored, "money")}
    for place, one in answers.items():
        for name in stored:
            found[name][place] = getattr(one, name)
        if price := prices.get(models[place[0]]):
            found["money"][place] = price.of(Usage(one.input_tokens, one.output_tokens, one.cached_tokens))
    own = np.array([kind_of(str(cell.values.get("method"))).own for cell in cells], dtype=bool)
    # A pipeline whose tokens are unknown has none; the number of its model calls is never known.
    unknown = own[:, np.newaxis] & (found["input_tokens"] == 0)
    for name in (*MODEL_COUNTS, "estimated"):
        found[name][[model is None and not mine for model, mine in zip(models, own, strict=True)]] = np.nan
        found[name][unknown if name != "calls" else own] = np.nan
    found["tokens"] = found["input_tokens"] + found["output_tokens"]
    seconds = np.where(found["seconds"] > 0, found["seconds"], np.nan)
    found["cpu_percent"] = 100 * found["cpu_seconds"] / seconds
    return {name: values for name, values in found.items() if not np.isnan(values).all()}


def _clusters(questions: Sequence[QuestionRecord]) -> IntArray:
    """Cluster number of each question, see `ResultMatrix.clusters`."""
    documents: dict[str, set[tuple[str, ...]]] = {}
    for one in questions:
        documents.setdefault(one.data, set()).add(tuple(one.documents))
    names: list[Hashable] = [
        (one.data, tuple(one.documents))
        if len(documents[one.data]) >= _MIN_DOCUMENTS and len(one.documents) == 1
        # Not the key, which includes the id: a question listed twice under two ids must count once.
        else (one.data, tuple(one.documents), one.question)
        for one in questions
    ]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)


def question_fields(question: QuestionRecord, taken: Collection[str] = ()) -> Fields:
    """Fields of a question by name; one with the name of a result column is renamed to `question_NAME`.

    A question with evidence also has the number of spans, and whether they are in several documents, or far apart.
    """
    found: dict[str, Any] = {}
    if question.evidence:
        documents, starts, ends = zip(*question.evidence, strict=True)
        spread = len({*documents}) > 1 or max(starts) - min(ends) > _SPREAD_DISTANCE
        found = {"evidence_spans": len(question.evidence), "spread": spread}
    found |= {str(name): value for name, value in question.about.items() if _is_plain(value)}
    reserved = {*axes(), *RESERVED, *taken} - {"evidence_spans", "spread"}
    return {f"question_{name}" if name in reserved else name: value for name, value in found.items()}


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= _MAX_LENGTH
    return isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
