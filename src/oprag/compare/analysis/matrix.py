"""Scores and costs: a matrix of cells and questions for each metric and each cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.compare.analysis.fields import MOST_FIELDS, Fields, question_fields
from oprag.compare.analysis.settings import (
    Setting,
    effective_values,
    grid_values,
    group_cells,
    hashable,
    place_in_grid,
)
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import CellRecord, Measurement, Phase, QuestionRecord, Spent, StoredAnswer
from oprag.compare.db.schema import CELL_COLUMNS
from oprag.compare.metrics.registry import METRICS
from oprag.compare.spec.axes import axes
from oprag.compare.spec.money import Price
from oprag.compare.stats.resampling import RESAMPLES, FloatArray, IntArray
from oprag.compare.validation import validated
from oprag.errors import ResultsFileError
from oprag.methods.model_calls import Usage

__all__ = [
    "ANSWERED",
    "COSTS",
    "COUNTS",
    "FAILED",
    "NOT_ASKED",
    "NOT_TRIED",
    "PHASES",
    "SECONDS",
    "BoolArray",
    "ResultMatrix",
    "matrix_of",
    "mean_over",
    "read_matrix",
]

BoolArray = NDArray[np.bool_]
StatusArray = NDArray[np.int8]
ObjectArray = NDArray[np.object_]
Shape = tuple[int, int]

NOT_ASKED, NOT_TRIED, ANSWERED, FAILED = range(4)
"""The status of a question in a cell; it is not asked if the cell is about another data set."""

_OF_MODELS = ("calls", "input_tokens", "output_tokens", "cached_tokens")
COUNTS = (*_OF_MODELS, "embedded_tokens", "context_tokens")
"""The counts of an answer."""
PHASES: tuple[Phase, ...] = ("indexing", "retrieval", "generation")
SECONDS = ("seconds", *(f"{phase}_seconds" for phase in PHASES))
"""Wall times: of retrieval and generation together, and of each phase."""
COSTS = ("tokens", *COUNTS, "money", *SECONDS)
"""The costs of an answer; "tokens" are those that models read and wrote together."""
_ATTEMPTS: Mapping[str, Callable[[Iterable[float]], float]] = {
    "seconds": fmean,
    "cpu_percent": fmean,
    "peak_memory_bytes": max,
    "memory_growth_bytes": max,
}
"""The measurements of each phase, and how the attempts at a question become one value."""
_NOT_METRICS = {*COSTS, *(f"{phase}_{what}" for phase in PHASES for what in _ATTEMPTS)}

_DOCUMENTS = 10
"""Minimum number of documents to be clusters: an interval from fewer is far too narrow."""
_MOST_PLACES, _MOST_PLACES_AN_ANSWER = 10**7, 100
"""A file with more places (cells × questions) than both is refused."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResultMatrix:
    """The scores and costs of an experiment: rows are cells, columns are questions.

    Attributes:
        experiment: Its name.
        described: Its description in the file: grid, models, embedders, metrics and prices.
        cells: Its cells, in the sequence of its current grid, with their value on every axis, those of the grid first.
        questions: Its questions, in the sequence of the file.
        fields: The fields of each question, by name.
        clusters: The number of the cluster of each question: its document, if it has one and its data set has ten or
            more; else the question itself (one, however often it was asked in the same words about the same
            documents), and results hold for these documents alone.
        status: `NOT_ASKED`, `NOT_TRIED`, `ANSWERED` or `FAILED` for each question in each cell.
        values: Each metric and each of `COSTS` that has a value anywhere, and measured processor and memory; NaN where
            a question has none. Costs of models are NaN in a cell without a model.
        notes: The notes on each answer, such as that the reply was empty.
        errors: The class of the error of each question that failed.
        routes: The route of each answer of a method that has several.
        cores: The cores that were available to the runs that measured each cell.
        spent: Calls, tokens and money that all runs have spent on models.
        confidence: Confidence level of the intervals that are drawn from them.
        resamples: Number of samples for intervals and p-values.
    """

    experiment: str
    described: Mapping[str, Any] = field(repr=False)
    cells: Sequence[CellRecord] = field(repr=False)
    questions: Sequence[QuestionRecord] = field(repr=False)
    fields: Sequence[Fields] = field(repr=False)
    clusters: IntArray = field(repr=False)
    status: StatusArray = field(repr=False)
    values: Mapping[str, FloatArray] = field(repr=False)
    notes: ObjectArray = field(repr=False)
    errors: ObjectArray = field(repr=False)
    routes: ObjectArray = field(repr=False)
    cores: Sequence[Collection[str]] = field(repr=False)
    spent: Spent = field(default_factory=Spent, repr=False)
    confidence: float = 0.95
    resamples: int = RESAMPLES
    _of_settings: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def grid(self) -> dict[str, list[Any]]:
        """The values of each axis, its own axes first; empty for axes with their default."""
        return grid_values(self.described)

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """The settings, in the sequence of their first cells."""
        return group_cells([cell.values for cell in self.cells])

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics with scores, built-in ones first."""
        there = self.values.keys() - _NOT_METRICS
        return (*(name for name in METRICS if name in there), *sorted(there - METRICS.keys()))

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields of all questions, in the sequence of their first use."""
        return tuple(dict.fromkeys(name for fields in self.fields for name in fields))[:MOST_FIELDS]

    @cached_property
    def measured(self) -> BoolArray:
        """Whether each cell was measured."""
        found = np.zeros(len(self.cells), dtype=np.bool_)
        for name in SECONDS:
            if name in self.values:
                found |= ~np.isnan(self.values[name]).all(axis=1)
        return found

    def setting_values(self, name: str) -> FloatArray:
        """A metric or a cost of each question in each setting, averaged over the cells of the setting.

        Five random orders of 100 questions are not 500 questions: the scores of one question under several seeds are
        alike, and resampling them as if they were independent makes the interval too narrow, the more so the more seeds
        there are. Averaged first, each question is one unit; more seeds then take away the noise of the orders, and
        never that of the questions.

        Returns:
            An array of shape (settings, questions); NaN where a cell of the setting has no value, of seconds one of
            those that were measured.
        """
        if name not in self._of_settings:
            found = np.full((len(self.settings), len(self.questions)), np.nan)
            if name in self.values:
                for number, setting in enumerate(self.settings):
                    cells = [cell for cell in setting.cells if name not in SECONDS or self.measured[cell]]
                    if cells:
                        found[number] = mean_over(self.values[name][cells])
            found.flags.writeable = False
            self._of_settings[name] = found
        return self._of_settings[name]

    def select(self, settings: Sequence[int] | None = None, questions: BoolArray | None = None) -> ResultMatrix:
        """The part of some settings, by their numbers, and some questions; clusters are those of all questions."""
        wanted = range(len(self.settings)) if settings is None else settings
        cells = sorted(cell for number in wanted for cell in self.settings[number].cells)
        columns = range(len(self.questions)) if questions is None else np.flatnonzero(questions).tolist()
        part = np.ix_(np.array(cells, dtype=np.int64), np.array(columns, dtype=np.int64))
        return replace(
            self,
            cells=[self.cells[cell] for cell in cells],
            questions=[self.questions[column] for column in columns],
            fields=[self.fields[column] for column in columns],
            clusters=self.clusters[list(columns)],
            status=self.status[part],
            values={name: some for name, values in self.values.items() if not np.isnan(some := values[part]).all()},
            notes=self.notes[part],
            errors=self.errors[part],
            routes=self.routes[part],
            cores=[self.cores[cell] for cell in cells],
        )


def mean_over(rows: FloatArray) -> FloatArray:
    """The mean of each column, NaN where a row has none."""
    # Relative to the first, so that the mean of equal scores is exactly their score.
    first, apart = rows[0], rows[1:] - rows[0]
    # The sum of three or more depends on their sequence, unless it is exactly rounded.
    total = apart.sum(axis=0) if len(apart) < 3 else np.array([fsum(column) for column in apart.T.tolist()])
    mean: FloatArray = first + total / len(rows)
    return mean


def read_matrix(file: str | os.PathLike[str], experiment: str | None = None) -> ResultMatrix:
    """Read the scores and costs of an experiment, which must be named if the file has several.

    Raises:
        ExperimentError: The file has no such experiment, or has several and `experiment` is None.
        ResultsFileError: The file is missing or damaged, is not a results file, or has too few answers for its cells.
    """
    with ResultsReader(file, experiment) as reader:
        return matrix_of(reader)


def matrix_of(reader: ResultsReader) -> ResultMatrix:
    """The matrix of the experiment of a reader; raises as `read_matrix`."""
    grid = grid_values(reader.described)
    on_axes = [{name: hashable(_value(cell, name, reader)) for name in grid} for cell in reader.cells]
    # A file has its cells as they came.
    sequence = sorted(range(len(on_axes)), key=lambda number: place_in_grid(on_axes[number], grid))
    row_of = sorted(range(len(sequence)), key=sequence.__getitem__)
    cells = [reader.cells[number]._replace(values=on_axes[number]) for number in sequence]
    shape = len(cells), len(reader.questions)
    answers = {(row_of[answer.cell], answer.question): answer for answer in reader.answers()}
    _check_size(reader, shape, len(answers))

    status = np.full(shape, NOT_ASKED, dtype=np.int8)
    data = np.array([question.data for question in reader.questions], dtype=object)
    for row, cell in enumerate(cells):
        status[row, data == cell.values["data"]] = NOT_TRIED
    notes, errors, routes = (np.full(shape, None, dtype=object) for _ in range(3))
    for place, answer in answers.items():
        status[place] = FAILED if answer.failed else ANSWERED
        notes[place], errors[place], routes[place] = answer.notes, answer.error, answer.route

    answered = {place: answer for place, answer in answers.items() if not answer.failed}
    values = _costs(reader.described, cells, answered, shape) | _scores(reader, row_of, shape)
    taken = {*COSTS, *METRICS, *values}
    cores = reader.measured_cores()
    return ResultMatrix(
        experiment=reader.name,
        described=reader.described,
        cells=cells,
        questions=reader.questions,
        fields=[question_fields(one, taken) for one in reader.questions],
        clusters=_clusters(reader.questions),
        status=status,
        values=values | _measured(reader, cells, shape),
        notes=notes,
        errors=errors,
        routes=routes,
        cores=[cores.get(cell.key, ()) for cell in cells],
        spent=reader.spent(),
    )


def _value(cell: CellRecord, name: str, reader: ResultsReader) -> Any:
    """The value of a cell on an axis; it is stored only where it is not the default, or the axis has a column.

    Raises:
        ResultsFileError: It is of another type than values of the axis.
    """
    default = axes()[name].default
    value = cell.values.get(name, default)
    if name in CELL_COLUMNS or default is None:
        return value
    wanted = bool if isinstance(default, bool) else int | float if isinstance(default, int | float) else str | list
    if not isinstance(value, wanted) or isinstance(value, bool) is not (wanted is bool):
        raise ResultsFileError(f"{reader.path} is damaged: {name} = {value!r} in cells.options", reader.path)
    return value


def _check_size(reader: ResultsReader, shape: Shape, answers: int, arrays: int = 1) -> None:
    """Refuse a file with few answers whose matrix would take any amount of memory."""
    places = shape[0] * shape[1] * arrays
    if places > _MOST_PLACES and places > _MOST_PLACES_AN_ANSWER * answers:
        raise ResultsFileError(
            f"{reader.path} has {answers:,} answers or scores for {places:,} places in its tables (cells × questions): "
            "too few to be read",
            reader.path,
        )


def _costs(
    described: Mapping[str, Any],
    cells: Sequence[CellRecord],
    answers: Mapping[tuple[int, int], StoredAnswer],
    shape: Shape,
) -> dict[str, FloatArray]:
    """The counts of the answers, and their price if the file has the prices of the model."""
    written = described.get("prices")
    there = written.items() if isinstance(written, Mapping) else ()
    prices = {name: validated(Price, price, place=f"prices.{name}") for name, price in there}
    models = [effective_values(cell.values).get("model") for cell in cells]
    found = {name: np.full(shape, np.nan) for name in (*COUNTS, "money")}
    for place, one in answers.items():
        for name in COUNTS:
            found[name][place] = getattr(one, name)
        if price := prices.get(models[place[0]]):
            found["money"][place] = price.of(Usage(one.input_tokens, one.output_tokens, one.cached_tokens))
    for name in _OF_MODELS:
        found[name][[model is None for model in models]] = np.nan
    found["tokens"] = found["input_tokens"] + found["output_tokens"]
    return {name: values for name, values in found.items() if not np.isnan(values).all()}


def _scores(reader: ResultsReader, row_of: Sequence[int], shape: Shape) -> dict[str, FloatArray]:
    # A score that has the name of a cost is left out: costs come from the answers.
    scores = [score for score in reader.scores() if score[2] not in _NOT_METRICS]
    metrics = dict.fromkeys(metric for *_, metric, _ in scores)
    _check_size(reader, shape, len(scores), len(metrics))
    found = {metric: np.full(shape, np.nan) for metric in metrics}
    for cell, question, metric, value in scores:
        found[metric][row_of[cell], question] = value
    return found


def _measured(reader: ResultsReader, cells: Sequence[CellRecord], shape: Shape) -> dict[str, FloatArray]:
    """The measurements of each question, of all attempts together."""
    row_of = {cell.key: row for row, cell in enumerate(cells)}
    column_of = {question.key: column for column, question in enumerate(reader.questions)}
    attempts: dict[Phase, dict[tuple[int, int], list[Measurement]]] = {}
    for one in reader.measurements():
        place = row_of[one.cell], column_of[one.question]
        attempts.setdefault(one.phase, {}).setdefault(place, []).append(one)
    found: dict[str, FloatArray] = {}
    for phase, of_places in attempts.items():
        for what, together in _ATTEMPTS.items():
            values = found[f"{phase}_{what}"] = np.full(shape, np.nan)
            for place, some in of_places.items():
                values[place] = together(getattr(one, what) for one in some)
    if parts := [found[name] for name in ("retrieval_seconds", "generation_seconds") if name in found]:
        both = np.array(parts)
        found["seconds"] = np.where(np.isnan(both).all(axis=0), np.nan, np.nansum(both, axis=0))
    return found


def _clusters(questions: Sequence[QuestionRecord]) -> IntArray:
    """The number of the cluster of each question, see `ResultMatrix.clusters`."""
    documents: dict[str, set[tuple[str, ...]]] = {}
    for one in questions:
        documents.setdefault(one.data, set()).add(tuple(one.documents))
    names: list[Hashable] = [
        (one.data, tuple(one.documents))
        if len(documents[one.data]) >= _DOCUMENTS and len(one.documents) == 1
        # Not its key: asked twice it has another id, and would count as two.
        else (one.data, tuple(one.documents), one.question)
        for one in questions
    ]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], dtype=np.int64)
