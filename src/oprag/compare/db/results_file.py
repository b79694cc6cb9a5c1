"""The only writer of a results file, and the reader of cached work."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np

from oprag.compare.db.cache import Record
from oprag.compare.db.reader import SPENDING
from oprag.compare.db.records import (
    AnswerRecord,
    CellRecord,
    ChunkRecord,
    Done,
    FailedCall,
    IndexRecord,
    QuestionRecord,
    Reply,
    Retrieval,
    Spent,
    VectorRecord,
    checked,
    columns_of,
)
from oprag.compare.db.schema import CELL_COLUMNS, RESULTS
from oprag.compare.db.text import safe_text, storable
from oprag.embedding.cache_file import read_vectors, write_vectors
from oprag.errors import ResultsFileError
from oprag.files.database import Database
from oprag.methods.model_calls import Usage

__all__ = ["ResultsFile"]

_OF_KEYS = "IN (SELECT value FROM json_each(?))"
_READ: Mapping[type, str] = {
    Reply: f"SELECT key, model, step, text, json_array({', '.join(Usage._fields)}), finish_reason, seconds, money "
    "FROM replies",
    IndexRecord: "SELECT key, documents, splitter, chunk_size, chunk_overlap, tokenizer, '[]' FROM indexes",
    Retrieval: f"SELECT {columns_of(Retrieval)} FROM retrievals",
}
_CHUNKS = f'SELECT {columns_of(ChunkRecord)} FROM chunks WHERE "index" = ? ORDER BY row'


class ResultsFile:
    """A results file, an SQLite database that also serves as a `WorkCache`.

    Once a method returns, its writes survive a crash of the process. Threads may share the object, and processes the
    file. All methods raise `ResultsFileError` if the file cannot be read or written, or has an invalid row.

    Args:
        path: The file; created by the first write.

    Attributes:
        path: The file.
        run: Number of the run in progress; 0 between runs.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = Database(path, RESULTS)
        self.path = self._database.path
        self.run = 0

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
        with self._database.writing() as connection:
            rest = "ON CONFLICT (name) DO UPDATE SET described = excluded.described"
            _insert(connection, "experiments", [{"name": experiment, "described": described}], rest)
            (number,) = connection.execute("SELECT id FROM experiments WHERE name = ?", [experiment]).fetchone()
            _insert(connection, "cells", map(_cell_row, cells), "ON CONFLICT (key) DO NOTHING")
            # `about` does not affect answers, so it is not part of the key and can be updated.
            rest = "ON CONFLICT (key) DO UPDATE SET about = excluded.about"
            _insert(connection, "questions", (question._asdict() for question in questions), rest)
            records: Mapping[str, Sequence[CellRecord | QuestionRecord]] = {"cell": cells, "question": questions}
            for what, records_of in records.items():
                connection.execute(f"DELETE FROM experiment_{what}s WHERE experiment = ?", [number])
                connection.execute(
                    f"INSERT INTO experiment_{what}s SELECT ?, id FROM {what}s WHERE key {_OF_KEYS}",
                    [number, json.dumps([record.key for record in records_of])],
                )
            _insert(connection, "runs", [{"experiment": number, "started": _now(), "versions": versions}])
            self.run = _last_id(connection)

    def end(self, outcome: str) -> None:
        """Write how the run ended: "complete", "interrupted", or the reason why it stopped."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE runs SET ended = ?, outcome = ? WHERE id = ?", [_now(), safe_text(outcome), self.run]
            )

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one."""
        if not self.path.exists():
            return [None] * len(keys)
        with self._database.reading() as connection:
            found: Mapping[Any, Any] = {one.key: one for one in self._read(connection, kind, keys)}
        return [found.get(key) for key in keys]

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Write records of one kind, and vectors of one embedder.

        Args:
            records: The records. Records with the same key must be equal, except replies: the first one is kept.

        Returns:
            The stored records; they differ from `records` where another process wrote a reply first.

        Raises:
            ResultsFileError: The file cannot be written, or has vectors of this embedder with another dimension.
        """
        given: list[Any] = list(records)
        if not given:
            return []
        with self._writing() as connection:
            match given[0]:
                case Reply():
                    rows = (self._of_run({**reply._asdict(), **reply.usage._asdict()}) for reply in given)
                    _insert(connection, "replies", rows, "ON CONFLICT (key) DO NOTHING", without=("usage",))
                    stored = {reply.key: reply for reply in self._read(connection, Reply, [one.key for one in given])}
                    return [stored[reply.key] for reply in given]
                case FailedCall():
                    rows = (self._of_run({**one._asdict(), "message": safe_text(one.message)}) for one in given)
                    _insert(connection, "failed_calls", rows)
                case IndexRecord():
                    for index in given:
                        _write_index(connection, index)
                case Retrieval():
                    _insert(connection, "retrievals", (one._asdict() for one in given), "ON CONFLICT (key) DO NOTHING")
                case VectorRecord():
                    self._write_vectors(connection, given)
        return given

    def put_answers(self, answers: Sequence[AnswerRecord]) -> None:
        """Write answers with their contexts, calls and scores, replacing earlier answers and failures."""
        with self._writing() as connection:
            for answer in answers:
                self._write_answer(connection, answer)

    def done(self, experiment: str) -> Done:
        """The stored answers of an experiment."""
        query = (
            "SELECT cells.key, questions.key, error FROM answers JOIN cells ON cells.id = answers.cell "
            "JOIN questions ON questions.id = answers.question JOIN experiments ON experiments.name = ? "
            "JOIN experiment_cells AS c ON c.cell = cells.id AND c.experiment = experiments.id "
            "JOIN experiment_questions AS q ON q.question = questions.id AND q.experiment = experiments.id "
            "ORDER BY answers.id"
        )
        rows = self._rows(tuple[str, str, str | None], query, [experiment])
        return Done(
            {(cell, question) for cell, question, error in rows if error is None},
            {(cell, question): error for cell, question, error in rows if error is not None},
        )

    def spent(self, experiment: str) -> Spent:
        """Calls, tokens and money spent on models in all runs of an experiment."""
        rows = self._rows(tuple[str, str, int, int, float], SPENDING, [experiment])
        return reduce(Spent.plus, (Spent(*spent) for _, _, *spent in rows), Spent())

    def _rows(self, kind: Any, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows of a query; empty if the file is missing."""
        if not self.path.exists():
            return []
        with self._database.reading() as connection:
            return [*checked(kind, connection.execute(query, values), self._database)]

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction.

        Raises:
            ResultsFileError: The file no longer has the run in progress.
        """
        with self._database.writing() as connection:
            if self.run and not connection.execute("SELECT 1 FROM runs WHERE id = ?", [self.run]).fetchone():
                raise ResultsFileError(
                    f"the results file {self.path} was deleted or replaced during the run; start the run again",
                    self.path,
                )
            yield connection

    def _read(self, connection: sqlite3.Connection, kind: type, keys: Sequence[Any]) -> Iterator[Any]:
        """Yield the stored records of one kind."""
        if kind is VectorRecord:
            for name in dict.fromkeys(embedder for embedder, _ in keys):
                hashes = [hashed for embedder, hashed in keys if embedder == name]
                vectors = read_vectors(connection, name, hashes)
                for hashed, vector in zip(hashes, vectors, strict=True):
                    if vector is not None:
                        yield VectorRecord(name, hashed, vector)
            return
        for record in checked(
            kind, connection.execute(f"{_READ[kind]} WHERE key {_OF_KEYS}", [json.dumps(keys)]), self._database
        ):
            if kind is IndexRecord:
                chunks = connection.execute(_CHUNKS, [record.key])
                yield record._replace(pieces=[*checked(ChunkRecord, chunks, self._database)])
            else:
                yield record

    def _of_run(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "run": self.run, "at": _now()}

    def _write_vectors(self, connection: sqlite3.Connection, records: Sequence[VectorRecord]) -> None:
        name, vectors = records[0].embedder, np.stack([record.vector for record in records])
        known = write_vectors(connection, name, [record.hash for record in records], vectors)
        if known != vectors.shape[1]:
            raise ResultsFileError(
                f"{self.path} has vectors of dimension {known} for the embedder {name!r}, got dimension "
                f"{vectors.shape[1]}; give each embedding model its own name",
                self.path,
            )

    def _write_answer(self, connection: sqlite3.Connection, answer: AnswerRecord) -> None:
        if answer.context is not None:
            key, index, kept, dropped = answer.context
            context = {"key": key, "index": index, "kept": kept, "dropped": dropped}
            _insert(connection, "contexts", [context], "ON CONFLICT (key) DO NOTHING")
        place = connection.execute(
            "SELECT cells.id, questions.id FROM cells, questions WHERE cells.key = ? AND questions.key = ?",
            [answer.cell, answer.question],
        ).fetchone()
        connection.execute("DELETE FROM answers WHERE cell = ? AND question = ?", place)
        row: dict[str, Any] = {
            **vars(answer),
            "cell": place[0],
            "question": place[1],
            "status": "answered" if answer.error is None else "failed",
            "message": None if answer.message is None else safe_text(answer.message),
            # Mask texts one by one, so that masking cannot remove quotes between them.
            "notes": [safe_text(note) for note in answer.notes],
            "calls": len(answer.calls),
            **answer.usage._asdict(),
            **({} if answer.measurement is None else answer.measurement._asdict()),
            "context": None if answer.context is None else answer.context.key,
            "run": self.run,
        }
        _insert(connection, "answers", [row], without=("usage", "scores", "metric_calls", "measurement"))
        of = {"answer": _last_id(connection)}
        # Judge replies are stored with the answer, but are not part of its cost.
        calls = enumerate([*answer.calls, *answer.metric_calls])
        _insert(
            connection, "calls", (of | {"number": number, "step": step, "reply": key} for number, (step, key) in calls)
        )
        _insert(
            connection,
            "scores",
            (of | {"metric": name, "value": float(score)} for name, score in answer.scores.items()),
        )


def _write_index(connection: sqlite3.Connection, index: IndexRecord) -> None:
    _insert(connection, "indexes", [index._asdict()], "ON CONFLICT (key) DO NOTHING", without=("pieces",))
    rows = ({"index": index.key, "row": row, **piece._asdict()} for row, piece in enumerate(index.pieces))
    _insert(connection, "chunks", rows, 'ON CONFLICT ("index", row) DO NOTHING')


def _cell_row(cell: CellRecord) -> dict[str, Any]:
    columns = {name: cell.values[name] for name in CELL_COLUMNS}
    options = {name: value for name, value in cell.values.items() if name not in columns}
    return {"key": cell.key, **columns, "options": options, "identity": cell.identity}


def _insert(
    connection: sqlite3.Connection,
    table: str,
    rows: Iterable[Mapping[str, Any]],
    rest: str = "",
    without: Collection[str] = (),
) -> None:
    """Write rows, given as mappings of column names to values; lists and mappings are written as JSON."""
    rows = iter(rows)
    first = next(rows, None)
    if first is not None:
        names = [name for name in first if name not in without]
        columns = ", ".join(f'"{name}"' for name in names)
        statement = f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(names))}) {rest}"
        connection.executemany(statement, ([_stored(row[name]) for name in names] for row in chain([first], rows)))


def _stored(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return storable(value)
    return storable(json.dumps(value, ensure_ascii=False, default=dict))


def _last_id(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("SELECT last_insert_rowid()").fetchone()
    return int(number)


def _now() -> str:
    """Current time in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
