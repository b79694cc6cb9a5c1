"""Scores and costs: a matrix of cells × questions for each metric and each cost; and the fields of the questions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.compare.analysis.differences import ComparisonFamily, family_of
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
)
from oprag.compare.db.records import AnswerRecord, CellRecord, QuestionRecord
from oprag.compare.db.results_file import ResultsReader
from oprag.compare.experiment_methods import kind_of
from oprag.compare.grid import AVERAGED, axes, has_effect
from oprag.compare.meter import Measurement
from oprag.compare.metrics.registry import METRICS, RESERVED
from oprag.compare.spending import Price
from oprag.compare.stats import RESAMPLES, FloatArray, IntArray, mean_over
from oprag.compare.validation import validated
from oprag.methods.answer import Usage

__all__ = ["Fields", "ResultMatrix", "matrix_of", "question_fields"]

Fields = Mapping[str, str | int | float | bool]

_NOT_METRICS = {*COSTS, *MEASURED, "estimated"}
_SPREAD_DISTANCE = 2_000
"""Evidence counts as spread if more than this many characters lie between two of its spans."""
_MAX_LENGTH = 200  # characters of a field
_MIN_DOCUMENTS = 10
"""Minimum number of documents for clustering by document: with fewer, intervals are far too narrow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResultMatrix:
    """Scores and costs of an experiment: rows are cells, columns are questions.

    Attributes:
        experiment: Name of the experiment.
        described: Description stored in the file: grid, models, embedders, metrics and prices.
        grid: Values of each axis in grid order, grid axes first; empty for axes left at their default.
        cells: Cells in the order of the current grid, with their value on every axis, grid axes first.
        questions: Questions in file order.
        fields: Fields of each question, by name.
        clusters: Cluster number of each question, of shape (questions,): by document if the data set has ten or more
            documents and the question is about one of them; else each question is its own.
        answers: Answers and failures, of shape (cells, questions); None where a question was not tried.
        status: `NOT_ASKED`, `NOT_TRIED`, `ANSWERED` or `FAILED`, of shape (cells, questions).
        values: Each metric, cost and measurement that has a value anywhere, of shape (cells, questions); NaN where a
            value is missing. "estimated" is 1 where oprag counted the tokens of an answer.
        cores: Cores that the runs which measured answers could use.
        resamples: Number of samples for intervals and p-values.
    """

    experiment: str
    described: Mapping[str, Any] = field(repr=False)
    grid: Mapping[str, list[Any]] = field(repr=False)
    cells: Sequence[CellRecord] = field(repr=False)
    questions: Sequence[QuestionRecord] = field(repr=False)
    fields: Sequence[Fields] = field(repr=False)
    clusters: IntArray = field(repr=False)
    answers: NDArray[np.object_] = field(repr=False)
    status: NDArray[np.int8] = field(repr=False)
    values: Mapping[str, FloatArray] = field(repr=False)
    cores: Sequence[str] = field(repr=False)
    resamples: int = RESAMPLES
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
    def metrics(self) -> tuple[str, ...]:
        """Metrics with scores, built-in ones first."""
        scored = self.values.keys() - _NOT_METRICS
        return (*(name for name in METRICS if name in scored), *sorted(scored - METRICS.keys()))

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """Names of all question fields, in order of first use."""
        return tuple(dict.fromkeys(name for fields in self.fields for name in fields))

    def setting_values(self, name: str) -> FloatArray:
        """Values of a metric or a cost of each question, averaged over the cells, of shape (settings, questions).

        NaN where any cell lacks a value. Scores of one question under several seeds are correlated, so they are
        averaged first: five random orders of 100 questions are not 500 independent samples.
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

    def select(self, settings: Iterable[SettingSummary]) -> ResultMatrix:
        """Restrict the matrix to some settings."""
        rows = sorted(row for one in settings for row in one.rows)
        return replace(
            self,
            cells=[self.cells[row] for row in rows],
            answers=self.answers[rows],
            status=self.status[rows],
            values={name: some for name, values in self.values.items() if not np.isnan(some := values[rows]).all()},
        )


def matrix_of(reader: ResultsReader) -> ResultMatrix:
    """Read the scores and costs of the reader's experiment."""
    grid = _grid_values(reader.described)
    on_axes = [{name: _hashable(cell.values.get(name, axes()[name].default)) for name in grid} for cell in reader.cells]
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
            listed.setdefault(name, []).extend(map(_hashable, values))
    for name, part in (("data", "data"), ("embedder", "embedders"), ("model", "models")):
        listed.setdefault(name, list(described.get(part, ())))
    # The seed and the repeat do not distinguish settings, so they come last.
    names = sorted(dict.fromkeys([*listed, *axes()]), key=lambda name: name in AVERAGED)
    return {name: listed.get(name, []) for name in names if name in axes()}


def _hashable(value: Any) -> Any:
    """A hashable form of a value: tuples, such as several metadata keys, come back from JSON as lists."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _place_in_grid(values: Mapping[str, Any], grid: Mapping[str, list[Any]]) -> list[int]:
    """Sort key of a cell in grid order; the first axis varies slowest.

    A value that the grid does not list, since its axis has no effect in the cell, sorts last.
    """
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

    A question with evidence also has `evidence_spans`, the number of spans, and `spread`: whether the spans are in
    several documents, or more than 2,000 characters lie between two of them. `taken` lists the columns of metrics and
    costs.
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
