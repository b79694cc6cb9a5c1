"""Scores and costs: a matrix of cells × questions for each metric and each cost; and the fields of the questions."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.compare.analysis.settings import (
    Setting,
    effective_values,
    grid_values,
    group_cells,
    hashable,
    place_in_grid,
)
from oprag.compare.controls import kind_of
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import CELL_COLUMNS, AnswerRecord, CellRecord, QuestionRecord, Spent
from oprag.compare.meter import Measurement
from oprag.compare.metrics.registry import METRICS, RESERVED
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
    "MAX_FIELDS",
    "MEASURED",
    "NOT_ASKED",
    "NOT_TRIED",
    "BoolArray",
    "Fields",
    "ResultMatrix",
    "matrix_of",
    "mean_over",
    "question_fields",
    "read_matrix",
]

BoolArray = NDArray[np.bool_]
StatusArray = NDArray[np.int8]
ObjectArray = NDArray[np.object_]
Shape = tuple[int, int]
Fields = Mapping[str, str | int | float | bool]

NOT_ASKED, NOT_TRIED, ANSWERED, FAILED = range(4)
"""Status of a question in a cell; `NOT_ASKED` if the question belongs to another data set than the cell."""

_MODEL_COUNTS = ("calls", "input_tokens", "output_tokens", "cached_tokens")
COUNTS = (*_MODEL_COUNTS, "embedded_tokens", "context_tokens")
"""Counts stored with each answer."""
MEASURED = ("seconds", "cpu_seconds", "cpu_percent", "peak_memory_mib")
"""Measurements of an answer; CPU in percent is relative to one core."""
COSTS = ("tokens", *COUNTS, "money", "seconds")
"""Costs of an answer; "tokens" is the sum of input and output tokens."""
_NOT_METRICS = {*COSTS, *MEASURED, "estimated"}

MAX_FIELDS = 50
"""Maximum number of fields per question; further ones are dropped."""
_SPREAD_DISTANCE = 2_000
"""Evidence counts as spread if more than this many characters lie between two of its spans."""
_MAX_LENGTH = 200
_EVIDENCE_FIELDS = {"evidence_spans", "spread"}

_MIN_DOCUMENTS = 10
"""Minimum number of documents for clustering by document: with fewer, intervals are far too narrow."""
_MAX_PLACES, _MAX_PLACES_PER_ANSWER = 10**7, 100
"""Maximum matrix entries (cells × questions), in total and per answer; a file above both limits is rejected."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ResultMatrix:
    """Scores and costs of an experiment: rows are cells, columns are questions.

    Attributes:
        experiment: Name of the experiment.
        described: Description stored in the file: grid, models, embedders, metrics and prices.
        cells: Cells in the order of the current grid, with their value on every axis, grid axes first.
        questions: Questions in file order.
        fields: Fields of each question, by name.
        clusters: Cluster number of each question, of shape (questions,). Questions about a single document are
            clustered by document if their data set has ten or more documents. Otherwise each question is its own
            cluster (repeats of the same wording about the same documents share one), and results hold for these
            documents only.
        status: `NOT_ASKED`, `NOT_TRIED`, `ANSWERED` or `FAILED`, of shape (cells, questions).
        values: Each metric, cost and measurement that has a value anywhere, of shape (cells, questions); NaN where a
            value is missing. Model costs are NaN in a cell without a model. "estimated" is 1 where oprag counted the
            tokens of an answer.
        notes: Notes on each answer, such as an empty reply.
        errors: Error class of each failed question.
        routes: Route of each answer, for methods with several routes.
        cores: Cores that the runs which measured answers could use.
        spent: Calls, tokens and money spent on models in all runs.
        confidence: Confidence level of intervals.
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
    cores: Sequence[str] = field(repr=False)
    spent: Spent = field(default_factory=Spent, repr=False)
    confidence: float = 0.95
    resamples: int = RESAMPLES
    _of_settings: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def grid(self) -> dict[str, list[Any]]:
        """Values of each axis, grid axes first; empty for axes left at their default."""
        return grid_values(self.described)

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Settings, in the order of their first cells."""
        return group_cells([cell.values for cell in self.cells])

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Metrics with scores, built-in ones first."""
        scored = self.values.keys() - _NOT_METRICS
        return (*(name for name in METRICS if name in scored), *sorted(scored - METRICS.keys()))

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """Names of all question fields, in order of first use."""
        return tuple(dict.fromkeys(name for fields in self.fields for name in fields))[:MAX_FIELDS]

    def setting_values(self, name: str) -> FloatArray:
        """Values of a metric or a cost for each question in each setting, averaged over the cells of the setting.

        Five random orders of 100 questions are not 500 independent samples: scores of one question under several seeds
        are correlated. Resampling them as if they were independent makes the interval too narrow, and more so with more
        seeds. Averaging first makes each question one unit; more seeds then reduce the noise of the orders, but not
        that of the questions.

        Returns:
            An array of shape (settings, questions); NaN where any cell of the setting lacks a value.
        """
        if name not in self._of_settings:
            found = np.full((len(self.settings), len(self.questions)), np.nan)
            if name in self.values:
                for number, setting in enumerate(self.settings):
                    found[number] = mean_over(self.values[name][list(setting.cells)])
            found.flags.writeable = False
            self._of_settings[name] = found
        return self._of_settings[name]

    def select(self, settings: Sequence[int] | None = None, questions: BoolArray | None = None) -> ResultMatrix:
        """Restrict the matrix to some settings (by number) and questions; clusters keep their numbers."""
        numbers = range(len(self.settings)) if settings is None else settings
        cells = sorted(cell for number in numbers for cell in self.settings[number].cells)
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
        )


def mean_over(rows: FloatArray) -> FloatArray:
    """Mean of each column; NaN if any row has NaN there."""
    # Relative to the first row, so that the mean of equal scores is exactly that score.
    first, apart = rows[0], rows[1:] - rows[0]
    # A plain sum of three or more numbers depends on their order; fsum is exactly rounded.
    total = apart.sum(axis=0) if len(apart) < 3 else np.array([fsum(column) for column in apart.T.tolist()])
    mean: FloatArray = first + total / len(rows)
    return mean


def read_matrix(file: str | os.PathLike[str], experiment: str | None = None) -> ResultMatrix:
    """Read the scores and costs of an experiment; its name is required if the file has several.

    Raises:
        ExperimentError: The file has no such experiment, or has several and `experiment` is None.
        ResultsFileError: The file is missing, corrupt, not a results file, or has too few answers for its cells.
    """
    with ResultsReader(file, experiment) as reader:
        return matrix_of(reader)


def matrix_of(reader: ResultsReader) -> ResultMatrix:
    """Build the matrix of the reader's experiment; raises like `read_matrix`."""
    grid = grid_values(reader.described)
    on_axes = [{name: hashable(_value(cell, name, reader)) for name in grid} for cell in reader.cells]
    placed = [cell._replace(values=values) for cell, values in zip(reader.cells, on_axes, strict=True)]
    cells = sorted(placed, key=lambda cell: place_in_grid(cell.values, grid))
    row_of = {cell.key: row for row, cell in enumerate(cells)}
    column_of = {question.key: column for column, question in enumerate(reader.questions)}
    shape = len(cells), len(reader.questions)
    answers = {(row_of[answer.cell], column_of[answer.question]): answer for answer in reader.answers()}
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
    values = _costs(reader.described, cells, answered, shape) | _scores(reader, answers, shape)
    taken = {*COSTS, *METRICS, *values}
    return ResultMatrix(
        experiment=reader.name,
        described=reader.described,
        cells=cells,
        questions=reader.questions,
        fields=[question_fields(one, taken) for one in reader.questions],
        clusters=_clusters(reader.questions),
        status=status,
        values=values,
        notes=notes,
        errors=errors,
        routes=routes,
        cores=reader.cores(),
        spent=reader.spent(),
    )


def _value(cell: CellRecord, name: str, reader: ResultsReader) -> Any:
    """Value of a cell on an axis; defaults are stored only for axes with their own column.

    Raises:
        ResultsFileError: The value has the wrong type for the axis.
    """
    default = axes()[name].default
    value = cell.values.get(name, default)
    if name in CELL_COLUMNS or default is None:
        return value
    expected = bool if isinstance(default, bool) else int | float if isinstance(default, int | float) else str | list
    if not isinstance(value, expected) or isinstance(value, bool) is not (expected is bool):
        raise ResultsFileError(f"{reader.path} is corrupt: {name} = {value!r} in cells", reader.path)
    return value


def _check_size(reader: ResultsReader, shape: Shape, answers: int, arrays: int = 1) -> None:
    """Reject a file with few answers whose matrix would take an arbitrary amount of memory."""
    places = shape[0] * shape[1] * arrays
    if places > _MAX_PLACES and places > _MAX_PLACES_PER_ANSWER * answers:
        raise ResultsFileError(
            f"{reader.path} has only {answers:,} answers or scores for {places:,} matrix entries (cells × questions); "
            "refusing to allocate such a large matrix",
            reader.path,
        )


def _costs(
    described: Mapping[str, Any],
    cells: Sequence[CellRecord],
    answers: Mapping[tuple[int, int], AnswerRecord],
    shape: Shape,
) -> dict[str, FloatArray]:
    """Counts and measurements of the answers, and their price if the file has prices for the model."""
    written = described.get("prices")
    items = written.items() if isinstance(written, Mapping) else ()
    prices = {name: validated(Price, price, place=f"prices.{name}") for name, price in items}
    models = [effective_values(cell.values).get("model") for cell in cells]
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
    for name in (*_MODEL_COUNTS, "estimated"):
        found[name][[model is None and not mine for model, mine in zip(models, own, strict=True)]] = np.nan
        found[name][unknown if name != "calls" else own] = np.nan
    found["tokens"] = found["input_tokens"] + found["output_tokens"]
    seconds = np.where(found["seconds"] > 0, found["seconds"], np.nan)
    found["cpu_percent"] = 100 * found["cpu_seconds"] / seconds
    return {name: values for name, values in found.items() if not np.isnan(values).all()}


def _scores(
    reader: ResultsReader, answers: Mapping[tuple[int, int], AnswerRecord], shape: Shape
) -> dict[str, FloatArray]:
    # A score named like a cost is dropped: costs come from the answers.
    metrics = dict.fromkeys(name for one in answers.values() for name in one.scores if name not in _NOT_METRICS)
    _check_size(reader, shape, sum(len(one.scores) for one in answers.values()), len(metrics))
    found = {metric: np.full(shape, np.nan) for metric in metrics}
    for place, one in answers.items():
        for metric in one.scores.keys() & metrics.keys():
            found[metric][place] = one.scores[metric]
    return found


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
    """Fields of a question by name.

    A question with evidence also has `evidence_spans`, the number of spans, and `spread`: whether the spans are in
    several documents, or more than 2,000 characters lie between two of them. A field of the data set with one of these
    names takes precedence. A field with the name of a result column is renamed to `question_NAME`; `taken` lists the
    columns of metrics and costs.
    """
    found: dict[str, Any] = {}
    if question.evidence:
        found = {"evidence_spans": len(question.evidence), "spread": _is_spread(question.evidence)}
    found |= {str(name): value for name, value in question.about.items() if _is_plain(value)}
    reserved = {*axes(), *RESERVED, *taken} - _EVIDENCE_FIELDS
    named = {f"question_{name}" if name in reserved else name: value for name, value in found.items()}
    return dict(list(named.items())[:MAX_FIELDS])


def _is_spread(evidence: Collection[tuple[str, int, int]]) -> bool:
    several = len({document for document, _, _ in evidence}) > 1
    return several or max(start for _, start, _ in evidence) - min(end for _, _, end in evidence) > _SPREAD_DISTANCE


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= _MAX_LENGTH
    return isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
