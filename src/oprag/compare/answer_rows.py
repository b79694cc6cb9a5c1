"""The answers of an experiment as rows of plain values."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from oprag.compare.analysis.settings import AVERAGED
from oprag.compare.db.reader import opened_database
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.reading import CellAnswers, Results
from oprag.compare.setting import settings_of
from oprag.compare.table import metrics_of
from oprag.masking import without_keys

__all__ = ["TEXTS", "answer_columns", "answer_rows"]

_QUESTION = ("question_id", "question", "gold_answers", "documents")
_ANSWER = ("status", "answer", "error", "message", "notes", "route", "calls")
_TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "tokens")
_CONTEXT = ("estimated", "embedded_tokens", "context_tokens", "context_chunks")
TEXTS = (*_QUESTION, "status", "answer", "error", "message", "route")
"""The columns that hold text; all others but axes hold numbers."""
_PHASES = ("indexing", "retrieval", "generation")
_MEASURED = ("seconds", "cpu_percent", "peak_memory_bytes")


def answer_columns(results: Results, axes: Sequence[str], *, measured: bool) -> list[str]:
    """The columns of answers.

    Args:
        results: The results.
        axes: The axes that are columns.
        measured: Whether something was measured.
    """
    taken = [f"{phase}_{what}" for phase in _PHASES for what in _MEASURED] if measured else []
    return [*axes, *_averaged(results), *_QUESTION, *_ANSWER, *_TOKENS, *_CONTEXT, *metrics_of(results), *taken]


def answer_rows(
    results: Results, file: ResultsFile | str | os.PathLike[str], axes: Sequence[str], *, measured: bool
) -> Iterator[dict[str, Any]]:
    """A row for each answer and each failure, cell by cell in the sequence of the grid.

    Args:
        results: The results.
        file: The results file; it is read while rows are taken.
        axes: The axes that are columns.
        measured: Whether what was measured has columns.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    database = opened_database(file)
    columns = answer_columns(results, axes, measured=measured)
    averaged = _averaged(results)
    effective = {cell.key: setting.values for setting in settings_of(results.cells) for cell in setting.cells}
    for cell in results.cells:
        fixed = {name: effective[cell.key].get(name) for name in axes}
        fixed |= {name: _averaged_value(cell, name) for name in averaged}
        with database.reading() as connection:
            rows = _read(connection, cell)
            scores = _scores(connection, cell)
            taken = _measured(connection, cell) if measured else {}
        for answer, question, row in rows:
            if row.pop("question_key") in results.clusters:
                known = {**row, **fixed, **scores.get(answer, {}), **taken.get(question, {})}
                yield {name: known.get(name) for name in columns}


def _averaged(results: Results) -> list[str]:
    """The seed and the repeat, where cells differ in them."""
    return [name for name in AVERAGED if len({_averaged_value(cell, name) for cell in results.cells} - {None}) > 1]


def _averaged_value(cell: CellAnswers, name: str) -> Any:
    return None if name == "seed" and cell.values["order"] != "random" else cell.values[name]


def _read(connection: sqlite3.Connection, cell: CellAnswers) -> list[tuple[int, int, dict[str, Any]]]:
    """The number of each answer, that of its question, and what is known of both."""
    cursor = connection.execute(
        "SELECT answers.id, questions.id, questions.key AS question_key, questions.name AS question_id, "
        "questions.question, questions.answers AS gold_answers, questions.documents, status, text AS answer, error, "
        "message, notes, route, calls, input_tokens, output_tokens, cached_tokens, "
        "input_tokens + output_tokens AS tokens, estimated, embedded_tokens, context_tokens, context_chunks "
        "FROM answers "
        "JOIN questions ON questions.id = answers.question "
        "WHERE cell = (SELECT id FROM cells WHERE key = ?) ORDER BY questions.id",
        [cell.key],
    )
    names = [column[0] for column in cursor.description][2:]
    found: list[tuple[int, int, dict[str, Any]]] = []
    for answer, question, *values in cursor:
        row = dict(zip(names, values, strict=True))
        row["gold_answers"] = json.loads(row["gold_answers"])
        row["documents"] = json.loads(row["documents"])
        row["message"] = row["message"] and without_keys(row["message"])
        row["notes"] = json.loads(row["notes"])
        row["estimated"] = bool(row["estimated"])
        found.append((answer, question, row))
    return found


def _scores(connection: sqlite3.Connection, cell: CellAnswers) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for answer, metric, value in connection.execute(
        "SELECT answer, metric, value FROM scores JOIN answers ON answers.id = answer "
        "WHERE cell = (SELECT id FROM cells WHERE key = ?)",
        [cell.key],
    ):
        found.setdefault(answer, {})[metric] = value
    return found


def _measured(connection: sqlite3.Connection, cell: CellAnswers) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for question, phase, *values in connection.execute(
        "SELECT question, phase, avg(seconds), avg(cpu_percent), max(peak_memory_bytes) FROM measurements "
        "WHERE cell = (SELECT id FROM cells WHERE key = ?) GROUP BY question, phase",
        [cell.key],
    ):
        taken = zip((f"{phase}_{what}" for what in _MEASURED), values, strict=True)
        found.setdefault(question, {}).update(taken)
    return found
