"""The only writer of a results file, and the only reader of whole experiments and of cached work."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, cached_property, reduce
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from oprag._internal.files.database import Database
from oprag._internal.masking import describe, listed
from oprag.compare.db.records import (
    RESULTS,
    AnswerRecord,
    CellRecord,
    ExperimentRecord,
    FailedCall,
    Failure,
    Masked,
    QuestionRecord,
    Reply,
    RunRecord,
    Spent,
    Vector,
    safe_text,
    storable,
)
from oprag.embedding.cache_file import read_vectors, write_vectors
from oprag.errors import ExperimentError, ResultsFileError
from oprag.methods.answer import Usage

__all__ = ["ResultsFile", "ResultsReader"]

_adapter = cache(TypeAdapter)
_OF_KEYS = "(SELECT value FROM json_each(?))"
_TABLES: Mapping[type, str] = {Reply: "replies", CellRecord: "cells", QuestionRecord: "questions"}


class ResultsFile:
    """A results file, an SQLite database that also serves as a `WorkCache`.

    Threads may share the object, and processes the file, which the first write creates. Once a method returns, its
    writes survive a crash. All methods raise `ResultsFileError` if the file cannot be used, or has an invalid row.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = Database(path, RESULTS)
        self.path = self._database.path
        self.run = 0  # number of the run in progress; 0 between runs

    def close(self) -> None:
        """Close the file; the next use reopens it."""
        self._database.close()

    def begin(
        self,
        experiment: str,
        described: Mapping[str, Any],
        cells: Sequence[CellRecord],
        questions: Sequence[QuestionRecord],
        versions: Mapping[str, str],
    ) -> None:
        """Start a run: write its experiment, cells and questions, and the versions of the software."""
        keys = {"cells": [cell.key for cell in cells], "questions": [question.key for question in questions]}
        row = {"name": experiment, "described": described, **keys}
        with self._database.writing() as connection:
            rest = "ON CONFLICT (name) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in row)
            _insert(connection, "experiments", [row], rest)
            _insert(connection, "cells", (cell._asdict() for cell in cells), "ON CONFLICT (key) DO NOTHING")
            # `about` does not affect answers, so it is not part of the key and can be updated.
            rest = "ON CONFLICT (key) DO UPDATE SET about = excluded.about"
            _insert(connection, "questions", (question._asdict() for question in questions), rest)
            _insert(connection, "runs", [{"experiment": experiment, "started": _now(), "versions": versions}])
            (self.run,) = connection.execute("SELECT last_insert_rowid()").fetchone()

    def end(self, outcome: str) -> None:
        """Write how the run ended: "complete", "interrupted", or the reason why it stopped."""
        with self._writing() as connection:
            values = [_now(), safe_text(outcome), self.run]
            connection.execute("UPDATE runs SET ended = ?, outcome = ? WHERE id = ?", values)

    def reply(self, key: str) -> Reply | None:
        """The reply with this key; None if it is missing."""
        if not self.path.exists():
            return None
        with self._database.reading() as connection:
            return _records_of(Reply, connection, [key], self._database).get(key)

    def put_reply(self, reply: Reply) -> Reply:
        """Write a reply; return the stored one, which another process may have written first."""
        row = {**reply._asdict(), **reply.usage._asdict(), "run": self.run, "at": _now()}
        with self._writing() as connection:
            _insert(connection, "replies", [row], "ON CONFLICT DO NOTHING")
            stored: Reply = _records_of(Reply, connection, [reply.key], self._database)[reply.key]
        return stored

    def put_failure(self, call: FailedCall) -> None:
        """Write a failed call."""
        row = {**call._asdict(), "message": safe_text(call.message), "run": self.run, "at": _now()}
        with self._writing() as connection:
            _insert(connection, "failed_calls", [row])

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[Vector | None]:
        """The unit vector of each text hash by an embedder; None for a missing one."""
        if not hashes or not self.path.exists():
            return [None] * len(hashes)
        with self._database.reading() as connection:
            return read_vectors(connection, embedder, hashes)

    def put_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: Vector) -> None:
        """Write unit vectors, of shape (number of hashes, dimension)."""
        with self._writing() as connection:
            known = write_vectors(connection, embedder, hashes, vectors)
        if known != vectors.shape[1]:
            problem = f"{self.path} has vectors of dimension {known} for the embedder {embedder!r}, got dimension"
            hint = "give each embedding model its own name"
            raise ResultsFileError(f"{problem} {vectors.shape[1]}; {hint}", self.path)

    def put_answers(self, answers: Sequence[AnswerRecord]) -> None:
        """Write answers with their contexts and scores, replacing earlier answers and failures."""
        with self._writing() as connection:
            for answer in answers:
                # Mask texts one by one, so that masking cannot remove quotes between them.
                message = None if answer.message is None else safe_text(answer.message)
                safe = answer._replace(message=message, notes=[safe_text(note) for note in answer.notes])
                _insert(connection, "answers", [{**safe._asdict(), "run": self.run}], replace="OR REPLACE")

    def outcomes(self, experiment: str) -> dict[tuple[str, str], str | None]:
        """The error class of each stored answer, None if it did not fail, by the keys of its cell and question.

        It has the answers of all experiments in the file, but is empty if this one was not run before.
        """
        if not self.path.exists():
            return {}
        query = "SELECT cell, question, error FROM answers WHERE ? IN (SELECT name FROM experiments)"
        with self._database.reading() as connection:
            rows = _checked(tuple[str, str, str | None], connection.execute(query, [experiment]), self._database)
            return {(cell, question): error for cell, question, error in rows}

    def spent(self, experiment: str) -> Spent:
        """Calls, tokens and money spent on models in all runs of an experiment."""
        if not self.path.exists():
            return Spent()
        with self._database.reading() as connection:
            return reduce(Spent.plus, _spending(connection, experiment).values(), Spent())

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction, if the file still has the run in progress."""
        with self._database.writing() as connection:
            if self.run and not connection.execute("SELECT 1 FROM runs WHERE id = ?", [self.run]).fetchone():
                problem = "was deleted or replaced during the run; start the run again"
                raise ResultsFileError(f"the results file {self.path} {problem}", self.path)
            yield connection


class ResultsReader:
    """A snapshot of one experiment in a results file, unaffected by a run in progress; made by `open`.

    All methods raise a `ResultsFileError` if the file or a row is invalid.
    """

    def __init__(self, database: Database, connection: sqlite3.Connection, experiment: ExperimentRecord) -> None:
        self._database = database
        self._connection = connection
        self._experiment = experiment
        self.name, self.described = experiment.name, experiment.described

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str], experiment: str | None = None) -> Iterator[Self]:
        """Yield the reader of an experiment, whose name is optional if the file has only one.

        Raises an `ExperimentError` if there is no such experiment.
        """
        path = Path(path)
        if not path.is_file():  # opening would create it
            raise ResultsFileError(f"no such results file: {path}", path)
        if not path.stat().st_size:  # opening would create the tables
            raise ResultsFileError(f"{path} is not a results file: it is empty", path)
        database = Database(path, RESULTS)
        with database.reading() as connection:
            rows = connection.execute(f"SELECT {_columns_of(ExperimentRecord)} FROM experiments")
            records = [*_checked(ExperimentRecord, rows, database)]
            found = [record for record in records if experiment in (None, record.name)]
            if len(found) != 1:
                what = "several experiments" if found else "no experiment"
                name = "" if experiment is None else f" {describe(experiment)}"
                known = f"; specify one of: {listed(record.name for record in records)}" if records else ""
                raise ExperimentError(f"{path} has {what}{name}{known}", experiment)
            yield cls(database, connection, found[0])

    @cached_property
    def cells(self) -> list[CellRecord]:
        """Cells, in the order of the experiment."""
        return self._of_keys(CellRecord, self._experiment.cells)

    @cached_property
    def questions(self) -> list[QuestionRecord]:
        """Questions, in the order of the experiment."""
        return self._of_keys(QuestionRecord, self._experiment.questions)

    def answers(self) -> Iterator[AnswerRecord]:
        """Yield answers and failures, by cell and question."""
        return self._of_answers(AnswerRecord, _columns_of(AnswerRecord))

    def replies(self, keys: Collection[str]) -> list[Reply]:
        """The replies with these keys."""
        return self._of_keys(Reply, keys)

    def cores(self) -> tuple[str, ...]:
        """Cores that the runs which measured answers could use."""
        return tuple(sorted({cores for run in self.runs() if (cores := run.versions.get("cores"))}))

    def failures(self) -> list[Failure]:
        """Errors of failed questions with their most frequent message, most frequent first."""
        found: dict[str, Counter[str]] = {}
        for error, message in self._of_answers(tuple[str | None, Masked | None], "error, message"):
            if error is not None:
                found.setdefault(error, Counter())[message or ""] += 1
        usual = {error: max(sorted(of), key=of.__getitem__) for error, of in found.items()}
        failures = [Failure(error, usual[error], of.total(), of[usual[error]]) for error, of in found.items()]
        return sorted(failures, key=lambda one: (-one.count, one.error))

    def spending(self) -> dict[tuple[str, str], Spent]:
        """Calls, tokens and money by model identity and purpose: "answers", or the name of a metric."""
        return _spending(self._connection, self.name)

    def runs(self) -> list[RunRecord]:
        """Runs, latest first."""
        query = f"SELECT {_columns_of(RunRecord)} FROM runs WHERE experiment = ? ORDER BY id DESC"
        return [*_checked(RunRecord, self._connection.execute(query, [self.name]), self._database)]

    def _of_answers(self, kind: Any, columns: str) -> Iterator[Any]:
        """Yield columns of the answers, checked as values of a type."""
        chosen = [self._experiment.cells, self._experiment.questions]
        query = f"SELECT {columns} FROM answers WHERE cell IN {_OF_KEYS} AND question IN {_OF_KEYS}"
        rows = self._connection.execute(f"{query} ORDER BY cell, question", [json.dumps([*one]) for one in chosen])
        return _checked(kind, rows, self._database)

    def _of_keys(self, kind: Any, keys: Iterable[str]) -> list[Any]:
        """The records with these keys, in their order."""
        keys = dict.fromkeys(keys)
        found = _records_of(kind, self._connection, [*keys], self._database)
        if missing := keys.keys() - found.keys():
            raise self._database.damaged(f"the {kind.__name__} {min(missing)} is missing")
        return [found[key] for key in keys]


def _spending(connection: sqlite3.Connection, experiment: str) -> dict[tuple[str, str], Spent]:
    """Spending of an experiment by model and purpose: "answers" or the name of a metric."""
    query = "SELECT model, purpose, calls, tokens, money FROM spending WHERE experiment = ? ORDER BY model, purpose"
    return {(model, purpose): Spent(*spent) for model, purpose, *spent in connection.execute(query, [experiment])}


def _checked(kind: Any, rows: Iterable[Any], database: Database) -> Iterator[Any]:
    """Yield rows as values of a type; raises a ResultsFileError if a value does not have the type of its field."""
    validate = _adapter(kind).validate_python
    try:
        for row in rows:
            yield validate(row)
    except ValidationError as error:
        # The error itself quotes values, which may be long or secret.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place, fields = first["loc"][0], getattr(kind, "_fields", ())
        name = fields[place] if isinstance(place, int) and fields else "value"
        raise database.damaged(f"invalid {name}: {first['msg']}") from None


def _columns_of(kind: Any) -> str:
    """Columns of a record, as SQL; its fields are named like them."""
    usage = f"json_array({', '.join(Usage._fields)})"
    return ", ".join(usage if name == "usage" else f'"{name}"' for name in kind._fields)


def _records_of(kind: Any, connection: sqlite3.Connection, keys: Sequence[str], database: Database) -> dict[str, Any]:
    """Stored records by key, without missing ones."""
    query = f"SELECT {_columns_of(kind)} FROM {_TABLES[kind]} WHERE key IN {_OF_KEYS}"
    return {record.key: record for record in _checked(kind, connection.execute(query, [json.dumps(keys)]), database)}


def _insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, Any]], rest: str = "", replace: str = ""
) -> None:
    """Write rows, given as mappings of column names to values; lists and mappings are written as JSON."""
    for row in rows:
        values = {f'"{name}"': _stored(value) for name, value in row.items() if not isinstance(value, Usage)}
        given = f"({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        connection.execute(f"INSERT {replace} INTO {table} {given} {rest}", [*values.values()])


def _stored(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return storable(value)


def _now() -> str:
    """Current time in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
