"""What a results file says about an experiment, as plain values."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oprag.compare.analysis.settings import grid_values, hashable, place_in_grid
from oprag.compare.axes import axes
from oprag.compare.db.reader import OF_EXPERIMENT, experiment_row, opened_database, rows_of_answers
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.schema import CELL_COLUMNS
from oprag.masking import without_keys

__all__ = [
    "CellAnswers",
    "Failure",
    "KeptAnswer",
    "Results",
    "as_results",
    "merged_failures",
    "read_failures",
    "read_notes",
    "read_results",
]

_DOCUMENTS = 10
"""An interval that is drawn from fewer is too narrow by far: two documents with like scores would settle everything."""


class KeptAnswer(NamedTuple):
    """An answer as it is in the file, without its text.

    Attributes:
        failed: Whether there is none.
        calls: How many replies it is made of, as are the following as if its cell were alone.
        input_tokens: The tokens that models read.
        output_tokens: The tokens that models wrote.
        cached_tokens: Those of the tokens read that a model had read before.
        embedded_tokens: The tokens that were embedded, in the embedder's unit.
        context_tokens: The tokens of the context; None without one.
        scores: The value of each metric that applies.
        error: The class of the error where it failed.
        notes: What a reader should know, such as that the reply was empty.
    """

    failed: bool
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    embedded_tokens: int
    context_tokens: int | None
    scores: dict[str, float]
    error: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CellAnswers:
    """A cell and its answers.

    Attributes:
        key: Its content address.
        values: Its value on every axis, those of the grid first.
        asked: How many questions it is about.
        answers: The answers that there are, by the key of the question.
    """

    key: str
    values: Mapping[str, Any]
    asked: int
    answers: Mapping[str, KeptAnswer] = field(repr=False)


@dataclass(frozen=True)
class Results:
    """What there is of an experiment.

    Attributes:
        experiment: Its name.
        described: What the file says about it: its grid, models, embedders and metrics.
        cells: Its cells, in the sequence of its grid as it is now; a file has them as they came.
        clusters: What each question belongs to, by its key: its document, where it has one and its data set has ten
            or more; else the question stands for itself (in the same words about the same documents it is one, however
            often it was asked), and what follows holds for these documents alone.
    """

    experiment: str
    described: Mapping[str, Any]
    cells: Sequence[CellAnswers] = field(repr=False)
    clusters: Mapping[str, Hashable] = field(repr=False)


@dataclass(frozen=True)
class Failure:
    """Why questions have no answer.

    Attributes:
        error: The class of the error.
        message: What it says most often.
        count: How many questions in cells it cost.
    """

    error: str
    message: str
    count: int


def as_results(given: Results | ResultsFile | str | os.PathLike[str], experiment: str | None = None) -> Results:
    """Results as they are, or read from a file; raises what `read_results` raises."""
    return given if isinstance(given, Results) else read_results(given, experiment)


def read_results(file: ResultsFile | str | os.PathLike[str], experiment: str | None = None) -> Results:
    """Read what there is of an experiment.

    Args:
        file: The results file.
        experiment: The name of the experiment; not needed where the file has one alone.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    database = opened_database(file)
    with database.reading() as connection:
        number, name, described = experiment_row(connection, database.path, experiment)
        questions = connection.execute(
            "SELECT id, key, data, documents, questions.question FROM questions JOIN experiment_questions AS ours "
            "ON ours.question = questions.id WHERE ours.experiment = ?",
            [number],
        ).fetchall()
        columns = ", ".join(f'"{column}"' for column in CELL_COLUMNS)
        cells = connection.execute(
            f"SELECT cells.id, key, options, {columns} FROM cells JOIN experiment_cells ON cell = cells.id "
            "WHERE experiment = ? ORDER BY cells.id",
            [number],
        ).fetchall()
        answers = _answers(connection, number, {row[0]: row[1] for row in questions})
    asked = Counter(row[2] for row in questions)
    listed = grid_values(described)
    read = [_cell(row, asked, answers.get(row[0], {}), list(listed)) for row in cells]
    read.sort(key=lambda cell: place_in_grid(cell.values, listed))
    return Results(name, described, read, _clusters([row[1:] for row in questions]))


def read_failures(file: ResultsFile | str | os.PathLike[str], experiment: str) -> list[Failure]:
    """Why questions of an experiment have no answer, the commonest cause first.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    rows = rows_of_answers(
        file,
        experiment,
        "error, message, count(*)",
        "WHERE status = 'failed' GROUP BY error, message ORDER BY count(*) DESC, error, message",
    )
    return merged_failures(rows)


def merged_failures(rows: Iterable[tuple[str, str | None, int]]) -> list[Failure]:
    """Failures by the class of the error, the commonest first.

    Args:
        rows: The class, the message and how often, the commonest message of a class before its others.
    """
    counts: Counter[str] = Counter()
    messages: dict[str, str] = {}
    for error, message, count in rows:
        counts[error] += count
        messages.setdefault(error, message or "")
    return [Failure(error, without_keys(messages[error]), count) for error, count in counts.most_common()]


def read_notes(file: ResultsFile | str | os.PathLike[str], experiment: str) -> Counter[str]:
    """How many answers of an experiment have each note.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    rows = rows_of_answers(file, experiment, "notes", "WHERE status = 'answered' AND notes <> '[]'")
    return Counter(note for (notes,) in rows for note in set(json.loads(notes)))


def _answers(
    connection: sqlite3.Connection, number: int, questions: Mapping[int, str]
) -> dict[int, dict[str, KeptAnswer]]:
    found: dict[int, dict[str, KeptAnswer]] = {}
    by_id: dict[int, KeptAnswer] = {}
    for row in connection.execute(
        "SELECT answers.id, answers.cell, answers.question, status = 'failed', calls, input_tokens, output_tokens, "
        f"cached_tokens, embedded_tokens, context_tokens, error, notes FROM answers {OF_EXPERIMENT}",
        [number],
    ):
        by_id[row[0]] = KeptAnswer._make((bool(row[3]), *row[4:-2], {}, row[-2], tuple(json.loads(row[-1]))))
        found.setdefault(row[1], {})[questions[row[2]]] = by_id[row[0]]
    for answer, metric, value in connection.execute(
        f"SELECT scores.answer, metric, value FROM answers {OF_EXPERIMENT} JOIN scores ON answer = answers.id",
        [number],
    ):
        by_id[answer].scores[metric] = value
    return found


def _cell(
    row: Sequence[Any], asked: Mapping[str, int], answers: Mapping[str, KeptAnswer], names: Sequence[str]
) -> CellAnswers:
    _, key, options, *columns = row
    known = dict(zip(CELL_COLUMNS, columns, strict=True)) | json.loads(options)
    values = {name: hashable(known.get(name, axes()[name].default)) for name in names}
    return CellAnswers(key, values, asked[values["data"]], answers)


def _clusters(questions: Sequence[Sequence[Any]]) -> dict[str, Hashable]:
    """What each question belongs to."""
    documents: dict[str, set[str]] = {}
    for _, data, names, _ in questions:
        documents.setdefault(data, set()).add(names)
    return {
        key: (data, names)
        if len(documents[data]) >= _DOCUMENTS and len(json.loads(names)) == 1
        # Not its key: asked twice it has another id, and would count as two.
        else (data, names, text)
        for key, data, names, text in questions
    }
