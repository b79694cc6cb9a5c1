"""The only writer of a results file, and the reader of cached work."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import numpy as np

from oprag._internal.files.database import Database
from oprag.compare.db.reader import spending_of
from oprag.compare.db.records import (
    RESULTS,
    TABLES,
    AnswerRecord,
    CellRecord,
    Done,
    FailedCall,
    IndexRecord,
    QuestionRecord,
    Record,
    Reply,
    Spent,
    VectorRecord,
    checked,
    records_of,
)
from oprag.compare.db.values import safe_text, storable
from oprag.embedding.cache_file import read_vectors, write_vectors
from oprag.errors import ResultsFileError
from oprag.methods.answer import Usage

__all__ = ["ResultsFile"]


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

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one. Vectors are those of one embedder."""
        if not keys or not self.path.exists():
            return [None] * len(keys)
        with self._database.reading() as connection:
            if kind is VectorRecord:
                vectors = read_vectors(connection, keys[0][0], [hashed for _, hashed in keys])
                pairs = zip(keys, vectors, strict=True)
                found: Any = {key: VectorRecord(key[0], key[1], one) for key, one in pairs if one is not None}
            else:
                found = records_of(kind, connection, keys, self._database)
        return [found.get(key) for key in keys]

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Write records of one kind, and vectors of one embedder; return the stored ones.

        They differ from the given ones where another process wrote a reply first.
        """
        given: list[Any] = list(records)
        if not given:
            return []
        of_run = {"run": self.run, "at": _now()}
        known = "ON CONFLICT DO NOTHING"
        with self._writing() as connection:
            match given[0]:
                case VectorRecord():
                    self._write_vectors(connection, given)
                case FailedCall():
                    rows = ({**one._asdict(), "message": safe_text(one.message), **of_run} for one in given)
                    _insert(connection, "failed_calls", rows)
                case Reply():
                    rows = ({**one._asdict(), **one.usage._asdict(), **of_run} for one in given)
                    _insert(connection, "replies", rows, known)
                    stored = records_of(Reply, connection, [one.key for one in given], self._database)
                    return [stored[one.key] for one in given]
                case IndexRecord():
                    pieces = ((one.key, row, piece) for one in given for row, piece in enumerate(one.pieces))
                    rows = ({"index": key, "row": row, **piece._asdict()} for key, row, piece in pieces)
                    _insert(connection, "chunks", rows, known)
                case one:
                    _insert(connection, TABLES[type(one)], (one._asdict() for one in given), known)
        return given

    def put_answers(self, answers: Sequence[AnswerRecord]) -> None:
        """Write answers with their contexts and scores, replacing earlier answers and failures."""
        with self._writing() as connection:
            for answer in answers:
                # Mask texts one by one, so that masking cannot remove quotes between them.
                message = None if answer.message is None else safe_text(answer.message)
                safe = answer._replace(message=message, notes=[safe_text(note) for note in answer.notes])
                _insert(connection, "answers", [{**safe._asdict(), "run": self.run}], replace="OR REPLACE")

    def done(self, experiment: str) -> Done:
        """The stored answers of all experiments in the file; none if this one was not run before."""
        done = Done(set(), {})
        if not self.path.exists():
            return done
        query = "SELECT cell, question, error FROM answers WHERE ? IN (SELECT name FROM experiments)"
        with self._database.reading() as connection:
            rows = connection.execute(query, [experiment])
            for cell, question, error in checked(tuple[str, str, str | None], rows, self._database):
                if error is None:
                    done.answered.add((cell, question))
                else:
                    done.failed[cell, question] = error
        return done

    def spent(self, experiment: str) -> Spent:
        """Calls, tokens and money spent on models in all runs of an experiment."""
        if not self.path.exists():
            return Spent()
        with self._database.reading() as connection:
            return reduce(Spent.plus, spending_of(connection, experiment).values(), Spent())

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction, if the file still has the run in progress."""
        with self._database.writing() as connection:
            if self.run and not connection.execute("SELECT 1 FROM runs WHERE id = ?", [self.run]).fetchone():
                problem = "was deleted or replaced during the run; start the run again"
                raise ResultsFileError(f"the results file {self.path} {problem}", self.path)
            yield connection

    def _write_vectors(self, connection: sqlite3.Connection, records: Sequence[VectorRecord]) -> None:
        name, vectors = records[0].embedder, np.stack([record.vector for record in records])
        known = write_vectors(connection, name, [record.hash for record in records], vectors)
        if known != vectors.shape[1]:
            problem = f"{self.path} has vectors of dimension {known} for the embedder {name!r}, got dimension"
            hint = "give each embedding model its own name"
            raise ResultsFileError(f"{problem} {vectors.shape[1]}; {hint}", self.path)


def _insert(
    connection: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, Any]], rest: str = "", replace: str = ""
) -> None:
    """Write rows, given as mappings of column names to values; lists and mappings are written as JSON."""
    for row in rows:
        values = {f'"{name}"': _stored(value) for name, value in row.items() if not isinstance(value, Usage)}
        given = f"({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"
        connection.execute(f"INSERT {replace} INTO {table} {given} {rest}", [*values.values()])


def _stored(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return storable(value)
    return storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict))


def _now() -> str:
    """Current time in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
