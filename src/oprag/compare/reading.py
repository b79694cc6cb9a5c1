"""What a results file says about an experiment, as plain values."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from oprag.compare.axes import axes
from oprag.compare.results_file import ResultsFile
from oprag.compare.schema import CELL_COLUMNS, RESULTS
from oprag.compare.sequence import hashable, place_of, values_of
from oprag.database import Database
from oprag.errors import ExperimentError, ResultsFileError

__all__ = [
    "OF_EXPERIMENT",
    "CellAnswers",
    "Failure",
    "KeptAnswer",
    "Results",
    "as_results",
    "experiment_row",
    "opened_database",
    "read_failures",
    "read_results",
]

_DOCUMENTS = 10
"""An interval that is drawn from fewer is too narrow by far: two documents with like scores would settle everything."""

OF_EXPERIMENT = (
    "JOIN experiment_cells ON experiment_cells.cell = answers.cell AND experiment_cells.experiment = ? "
    "JOIN experiment_questions ON experiment_questions.question = answers.question "
    "AND experiment_questions.experiment = experiment_cells.experiment"
)
"""What leaves the answers of an experiment, by its number: others may have asked the same cells other questions."""


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
    listed = values_of(described)
    read = [_cell(row, asked, answers.get(row[0], {}), list(listed)) for row in cells]
    read.sort(key=lambda cell: place_of(cell.values, listed))
    return Results(name, described, read, _clusters([row[1:] for row in questions]))


def read_failures(file: ResultsFile | str | os.PathLike[str], experiment: str) -> list[Failure]:
    """Why questions of an experiment have no answer, the commonest cause first.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    database = opened_database(file)
    with database.reading() as connection:
        number, _, _ = experiment_row(connection, database.path, experiment)
        rows = connection.execute(
            f"SELECT error, message, count(*) FROM answers {OF_EXPERIMENT} WHERE status = 'failed' "
            "GROUP BY error, message ORDER BY count(*) DESC, error, message",
            [number],
        ).fetchall()
    counts: Counter[str] = Counter()
    messages: dict[str, str] = {}
    for error, message, count in rows:
        counts[error] += count
        messages.setdefault(error, message or "")
    return [Failure(error, messages[error], count) for error, count in counts.most_common()]


def opened_database(file: ResultsFile | str | os.PathLike[str]) -> Database:
    """The database of a results file, to read from; a `ResultsFileError` where there is none."""
    path = file.path if isinstance(file, ResultsFile) else Path(file)
    if not path.is_file():  # to open it would make it
        raise ResultsFileError(f"there is no results file {path}", path)
    if not path.stat().st_size:  # and to open it would make it one
        raise ResultsFileError(f"{path} is empty, and so no results file", path)
    return Database(path, RESULTS)


def experiment_row(connection: sqlite3.Connection, path: Path, name: str | None) -> tuple[int, str, Mapping[str, Any]]:
    """The number, the name and the description of an experiment in a results file.

    Raises:
        ExperimentError: There is no such experiment in it, or several where none is named.
    """
    rows = connection.execute("SELECT id, name, described FROM experiments ORDER BY id").fetchall()
    found = [row for row in rows if name is None or row[1] == name]
    if len(found) != 1:
        what = f"no experiment {name!r}" if name is not None else "no experiment" if not rows else "several experiments"
        known = f"; there are: {', '.join(row[1] for row in rows)}" if rows else ""
        raise ExperimentError(f"{path} has {what}{known}", name)
    number, name, described = found[0]
    return int(number), str(name), json.loads(described)


def _answers(
    connection: sqlite3.Connection, number: int, questions: Mapping[int, str]
) -> dict[int, dict[str, KeptAnswer]]:
    found: dict[int, dict[str, KeptAnswer]] = {}
    by_id: dict[int, KeptAnswer] = {}
    for row in connection.execute(
        "SELECT answers.id, answers.cell, answers.question, status = 'failed', calls, input_tokens, output_tokens, "
        f"cached_tokens, embedded_tokens, context_tokens, error FROM answers {OF_EXPERIMENT}",
        [number],
    ):
        by_id[row[0]] = KeptAnswer._make((bool(row[3]), *row[4:-1], {}, row[-1]))
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
