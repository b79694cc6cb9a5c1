"""The tables of experiments, cells, questions and answers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oprag.compare.db.checking import ANSWER, answer_digest
from oprag.compare.db.records import AnswerRecord, CellRecord, QuestionRecord, Spent
from oprag.compare.db.schema import CELL_COLUMNS
from oprag.compare.db.text import storable
from oprag.masking import without_keys

__all__ = ["begin_run", "spent", "write_answers", "write_experiment"]


def write_experiment(
    connection: sqlite3.Connection,
    name: str,
    described: Mapping[str, Any],
    cells: Iterable[CellRecord],
    questions: Iterable[QuestionRecord],
) -> int:
    """Write what an experiment is made of now, and give its number."""
    connection.execute(
        "INSERT INTO experiments (name, described) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET described = excluded.described",
        [name, _json(described)],
    )
    (number,) = connection.execute("SELECT id FROM experiments WHERE name = ?", [name]).fetchone()
    columns = ", ".join(f'"{column}"' for column in CELL_COLUMNS)
    marks = ", ".join("?" * (len(CELL_COLUMNS) + 3))
    connection.executemany(
        f"INSERT OR IGNORE INTO cells (key, {columns}, options, identity) VALUES ({marks})",
        (
            [cell.key, *(cell.values[column] for column in CELL_COLUMNS), _json(cell.options), _json(cell.identity)]
            for cell in cells
        ),
    )
    connection.executemany(
        # What else a set says of a question changes no answer, so it is not a part of the key.
        "INSERT INTO questions VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET about = excluded.about",
        (
            [storable(value) if isinstance(value, str | int | None) else _json(value) for value in one]
            for one in questions
        ),
    )
    for what, rows in (("cell", cells), ("question", questions)):
        connection.execute(f"DELETE FROM experiment_{what}s WHERE experiment = ?", [number])
        connection.executemany(
            f"INSERT OR IGNORE INTO experiment_{what}s SELECT ?, id FROM {what}s WHERE key = ?",
            ((number, row.key) for row in rows),
        )
    return int(number)


def begin_run(connection: sqlite3.Connection, experiment: int, versions: Mapping[str, str], now: str) -> int:
    """Begin a run of an experiment, and give its number."""
    cursor = connection.execute(
        "INSERT INTO runs (experiment, started, versions) VALUES (?, ?, ?)", [experiment, now, _json(versions)]
    )
    return int(cursor.lastrowid or 0)


def spent(connection: sqlite3.Connection, experiment: str) -> Spent:
    """What all runs of an experiment have spent."""
    runs = "SELECT runs.id FROM runs JOIN experiments ON experiments.id = runs.experiment WHERE experiments.name = ?"
    calls, tokens, money = connection.execute(
        "SELECT count(*), coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0), "
        f"coalesce(sum(money), 0) FROM replies WHERE run IN ({runs})",
        [experiment],
    ).fetchone()
    measured = connection.execute(
        f"SELECT coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(money), 0) FROM measured_calls "
        f"WHERE run IN ({runs})",
        [experiment],
    ).fetchone()
    (failed,) = connection.execute(
        f"SELECT count(*) FROM failed_calls WHERE run IN ({runs})",
        [experiment],
    ).fetchone()
    return Spent(calls + failed + measured[0], tokens + measured[1], money + measured[2])


def write_answers(connection: sqlite3.Connection, answers: Sequence[AnswerRecord], run: int) -> None:
    """Write answers with their contexts, calls and scores, in place of those that are there."""
    for answer in answers:
        context = None
        if answer.context is not None:
            key, index, kept, dropped = answer.context
            connection.execute(
                'INSERT OR IGNORE INTO contexts (key, "index", kept, dropped) '
                "SELECT ?, id, ?, ? FROM indexes WHERE key = ?",
                [key, _json(kept), _json(dropped), index],
            )
            row = connection.execute("SELECT id FROM contexts WHERE key = ?", [key]).fetchone()
            context = None if row is None else row[0]
        place = connection.execute(
            "SELECT cells.id, questions.id FROM cells, questions WHERE cells.key = ? AND questions.key = ?",
            [answer.cell, answer.question],
        ).fetchone()
        _forget(connection, place)
        usage = answer.usage
        values: dict[str, Any] = {
            "status": answer.status,
            "text": storable(answer.text),
            "error": answer.error,
            "message": answer.message and without_keys(storable(answer.message)),
            "notes": _json([without_keys(note) for note in answer.notes]),
            "route": answer.route,
            "calls": len(answer.calls),
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "estimated": int(usage.estimated),
            "embedded_tokens": answer.embedded_tokens,
            "context_tokens": answer.context_tokens,
            "context_embedder_tokens": answer.context_embedder_tokens,
            "context_chunks": answer.context_chunks,
            "context": context,
        }
        scores = sorted((metric, float(value)) for metric, value in answer.scores.items())
        check = answer_digest(values.values(), [key for _, key in answer.calls], scores)
        marks = ", ".join("?" * (len(values) + 4))
        cursor = connection.execute(
            f"INSERT INTO answers (cell, question, {ANSWER}, digest, run) VALUES ({marks})",
            [*place, *values.values(), check, run],
        )
        connection.executemany(
            "INSERT INTO calls VALUES (?, ?, ?, ?)",
            ((cursor.lastrowid, number, *call) for number, call in enumerate(answer.calls)),
        )
        connection.executemany("INSERT INTO scores VALUES (?, ?, ?)", ((cursor.lastrowid, *score) for score in scores))


def _forget(connection: sqlite3.Connection, place: Sequence[int]) -> None:
    row = connection.execute("SELECT id FROM answers WHERE cell = ? AND question = ?", place).fetchone()
    if row is None:
        return
    for table, column in (("calls", "answer"), ("scores", "answer"), ("answers", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", row)


def _json(value: Any) -> str:
    return storable(json.dumps(value, ensure_ascii=False, default=dict))
