"""Opening a results file to read from it, and finding what belongs to an experiment in it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

from oprag.compare.axes import axes
from oprag.compare.db.records import CellRecord, Measurement, QuestionRecord
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.schema import CELL_COLUMNS, RESULTS
from oprag.errors import ExperimentError, ResultsFileError
from oprag.files.database import Database
from oprag.masking import without_keys
from oprag.text_table import shortened

__all__ = [
    "OF_EXPERIMENT",
    "ResultsReader",
    "StoredAnswer",
    "experiment_row",
    "opened_database",
    "rows_of_answers",
]

_NAMES, _LONGEST_NAME = 20, 80  # in a message

OF_EXPERIMENT = (
    "JOIN experiment_cells ON experiment_cells.cell = answers.cell AND experiment_cells.experiment = ? "
    "JOIN experiment_questions ON experiment_questions.question = answers.question "
    "AND experiment_questions.experiment = experiment_cells.experiment"
)
"""What leaves the answers of an experiment, by its number: others may have asked the same cells other questions."""

_SCORES = "JOIN scores ON scores.answer = answers.id "


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
        names = [shortened(row[1], _LONGEST_NAME) for row in rows]
        known = f"; there are: {', '.join(names[:_NAMES])}{', …' if len(names) > _NAMES else ''}" if names else ""
        raise ExperimentError(f"{path} has {what}{known}", name)
    number, name, described = found[0]
    return int(number), str(name), json.loads(described)


def rows_of_answers(
    file: ResultsFile | str | os.PathLike[str], experiment: str, columns: str, rest: str, *values: Any
) -> list[tuple[Any, ...]]:
    """Rows about the answers of an experiment; those to the questions of others play no part.

    Args:
        file: The results file.
        experiment: The name of the experiment.
        columns: What is wanted, as SQL.
        rest: What stands behind the table of answers, as SQL.
        values: The values of its question marks.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    database = opened_database(file)
    with database.reading() as connection:
        number, _, _ = experiment_row(connection, database.path, experiment)
        query = f"SELECT {columns} FROM answers {OF_EXPERIMENT} {rest}"
        return connection.execute(query, [number, *values]).fetchall()


class StoredAnswer(NamedTuple):
    """An answer without its text; its cell and its question by their places in the lists of the reader.

    Attributes:
        cell: The place of the cell.
        question: The place of the question.
        failed: Whether there is no answer.
        calls: How many replies it is made of, as are the following as if its cell were alone.
        input_tokens: The tokens that models read.
        output_tokens: The tokens that models wrote.
        cached_tokens: Those of the tokens read that a model had read before.
        embedded_tokens: The tokens that were embedded, in the embedder's unit.
        context_tokens: The tokens of the context; None without one.
        error: The class of the error where it failed.
        notes: What a reader should know, such as that the reply was empty.
        route: Which way a method took that has several.
    """

    cell: int
    question: int
    failed: bool
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    embedded_tokens: int
    context_tokens: int | None
    error: str | None
    notes: tuple[str, ...]
    route: str | None


class ResultsReader:
    """What a results file has of one experiment, at one moment: nothing is seen of what a run writes meanwhile.

    Args:
        file: The results file.
        experiment: The name of the experiment; not needed where the file has one alone.

    Attributes:
        path: The file.
        name: The name of the experiment.
        described: What the file says about it: its grid, models, embedders, metrics and prices.
        cells: Its cells, in the sequence of the file.
        questions: Its questions, in the sequence of the file.

    Raises:
        ExperimentError: There is no such experiment in the file, or several where none is named.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """

    path: Path
    name: str
    described: Mapping[str, Any]
    cells: list[CellRecord]
    questions: list[QuestionRecord]

    def __init__(self, file: ResultsFile | str | os.PathLike[str], experiment: str | None = None) -> None:
        self._database = opened_database(file)
        self._wanted = experiment
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            self._connection = self._stack.enter_context(self._database.reading())
            self._connection.execute("BEGIN")
            self._stack.callback(self._connection.execute, "ROLLBACK")
            self._begin()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _begin(self) -> None:
        self.path = self._database.path
        self._number, self.name, self.described = experiment_row(self._connection, self.path, self._wanted)
        names = ", ".join(f'"{name}"' for name in CELL_COLUMNS)
        rows = self._connection.execute(
            f"SELECT cells.id, key, options, {names} FROM cells JOIN experiment_cells ON cell = cells.id "
            "WHERE experiment = ? ORDER BY cells.id",
            [self._number],
        ).fetchall()
        defaults = {name: axis.default for name, axis in axes().items()}
        self.cells = [
            CellRecord(key, defaults | dict(zip(CELL_COLUMNS, columns, strict=True)) | json.loads(options), {})
            for _, key, options, *columns in rows
        ]
        self._cells = {row[0]: place for place, row in enumerate(rows)}
        rows = self._connection.execute(
            "SELECT questions.id, key, data, name, questions.question, answers, choices, right_choice, evidence, "
            "documents, about FROM questions JOIN experiment_questions AS ours ON ours.question = questions.id "
            "WHERE ours.experiment = ? ORDER BY questions.id",
            [self._number],
        ).fetchall()
        self.questions = [
            QuestionRecord._make((*row[1:5], *map(json.loads, row[5:7]), row[7], *map(json.loads, row[8:])))
            for row in rows
        ]
        self._questions = {row[0]: place for place, row in enumerate(rows)}

    def answers(self) -> Iterator[StoredAnswer]:
        """The answers, by cell and then by question, as those of scores."""
        for cell, question, failed, *counts, error, notes, route in self._of_answers(
            "status = 'failed', calls, input_tokens, output_tokens, cached_tokens, embedded_tokens, context_tokens, "
            "error, notes, route"
        ):
            told = () if notes == "[]" else tuple(map(without_keys, json.loads(notes)))
            yield StoredAnswer._make((cell, question, bool(failed), *counts, error, told, route))

    def scores(self) -> Iterator[tuple[int, int, str, float]]:
        """The cell, the question, the metric and the value of each score."""
        for cell, question, metric, value in self._of_answers("metric, value", _SCORES):
            yield cell, question, str(metric), float(value)

    def _of_answers(self, columns: str, joined: str = "") -> Iterator[tuple[Any, ...]]:
        rows = self._connection.execute(
            f"SELECT answers.cell, answers.question, {columns} FROM answers {OF_EXPERIMENT} {joined}"
            "ORDER BY answers.cell, answers.question",
            [self._number],
        )
        return ((self._cells[cell], self._questions[question], *rest) for cell, question, *rest in rows)

    def measurements(self) -> list[Measurement]:
        """What was measured of the answers, in the sequence in which it was."""
        rows = self._connection.execute(
            "SELECT cell, question, attempt, phase, seconds, cpu_percent, peak_memory_bytes, memory_growth_bytes "
            "FROM measurements ORDER BY id"
        )
        # Experiments share cells, and ask them other questions.
        return [
            Measurement(self.cells[self._cells[cell]].key, self.questions[self._questions[question]].key, *taken)
            for cell, question, *taken in rows
            if cell in self._cells and question in self._questions
        ]
