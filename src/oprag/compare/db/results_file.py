"""Writing a results file, and reading cached work from it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np

from oprag.compare.db.cache import Record
from oprag.compare.db.keys import answer_digest, digest
from oprag.compare.db.reader import SPENDING
from oprag.compare.db.records import (
    AnswerRecord,
    CellRecord,
    ChunkRecord,
    Done,
    FailedCall,
    Hit,
    IndexRecord,
    QuestionRecord,
    Reply,
    Retrieval,
    Spent,
    VectorRecord,
)
from oprag.compare.db.schema import CELL_COLUMNS, RESULTS, TABLES
from oprag.compare.db.text import safe_text, storable
from oprag.embedding.cache_file import read_vectors, write_vectors
from oprag.errors import ResultsFileError
from oprag.files.database import Database
from oprag.methods.model_calls import Usage

__all__ = ["ResultsFile"]

_MASKED = {name: {column.name for column in table.columns if column.masked} for name, table in TABLES.items()}
_NUMBERS = frozenset((int, float, type(None)))
# Columns covered by a digest, in this order; the digest of an answer also covers its replies and scores.
_REPLY = ("key", "text", *Usage._fields, "finish_reason")
_ANSWER = (
    *("status", "text", "error", "message", "notes", "route", "calls"),
    *Usage._fields,
    *("embedded_tokens", "context_tokens", "context_embedder_tokens", "context_chunks", "context"),
)
_OF_KEYS = "IN (SELECT value FROM json_each(?))"


class ResultsFile:
    """A results file, an SQLite database that also serves as a `WorkCache`.

    Once a method returns, its writes survive a crash of the process. Threads may share the object, and processes the
    file.

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

    def check(self) -> None:
        """Check the integrity of the whole file.

        Raises:
            ResultsFileError: It is corrupt, or is not a results file.
        """
        if not self.path.exists():
            return
        with self._database.reading() as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._database.damaged(str(found))

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
        """Start a run: write its experiment, cells and questions.

        Args:
            experiment: Name of the experiment.
            described: Description of the experiment, as JSON values.
            cells: Cells of the experiment.
            questions: Questions of the experiment.
            versions: Versions of the software.

        Raises:
            ResultsFileError: The file cannot be written.
        """
        with self._database.writing() as connection:
            _insert(
                connection,
                "experiments",
                [{"name": experiment, "described": described}],
                rest="ON CONFLICT (name) DO UPDATE SET described = excluded.described",
            )
            (number,) = connection.execute("SELECT id FROM experiments WHERE name = ?", [experiment]).fetchone()
            _insert(connection, "cells", map(_cell_row, cells), verb="INSERT OR IGNORE")
            # `about` does not affect answers, so it is not part of the key and can be updated.
            _insert(
                connection,
                "questions",
                (question._asdict() for question in questions),
                rest="ON CONFLICT (key) DO UPDATE SET about = excluded.about",
            )
            records: Mapping[str, Sequence[CellRecord | QuestionRecord]] = {"cell": cells, "question": questions}
            for what, records_of in records.items():
                connection.execute(f"DELETE FROM experiment_{what}s WHERE experiment = ?", [number])
                rows = ({"experiment": number, what: record.key} for record in records_of)
                _insert(connection, f"experiment_{what}s", rows, found={what: f"{what}s"}, verb="INSERT OR IGNORE")
            _insert(connection, "runs", [{"experiment": number, "started": _now(), "versions": versions}])
            self.run = _last_id(connection)

    def end(self, outcome: str) -> None:
        """Write how the run ended.

        Args:
            outcome: "complete", "interrupted", or the reason why it stopped.
        """
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE runs SET ended = ?, outcome = ? WHERE id = ?", [_now(), safe_text(outcome), self.run]
            )

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """Read stored records that are unchanged.

        Args:
            kind: The class of the records.
            keys: Keys of the records.

        Returns:
            The record of each key; None for a missing one.
        """
        if not self.path.exists():
            return [None] * len(keys)
        with self._database.reading() as connection:
            read: Any = _READERS[kind]
            found: Mapping[Any, Any] = {one.key: one for one in read(connection, keys)}
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
        with self._database.writing() as connection:
            match given[0]:
                case Reply():
                    return self._write_replies(connection, given)
                case FailedCall():
                    calls = (call._asdict() | {"run": self.run, "at": _now()} for call in given)
                    _insert(connection, "failed_calls", calls)
                case IndexRecord():
                    for index in given:
                        _write_index(connection, index)
                case Retrieval():
                    found = {"index": "indexes"}
                    _insert(connection, "retrievals", map(vars, given), found=found, verb="INSERT OR REPLACE")
                case VectorRecord():
                    self._write_vectors(connection, given)
        return given

    def put_answers(self, answers: Sequence[AnswerRecord]) -> None:
        """Write answers with their contexts, calls and scores, replacing earlier answers and failures.

        Args:
            answers: The answers.

        Raises:
            ResultsFileError: The file was replaced since the run started, or cannot be written.
        """
        if answers:
            with self._database.writing() as connection:
                self._check_run(connection)
                for answer in answers:
                    self._write_answer(connection, answer)

    def done(self, experiment: str) -> Done:
        """Find the stored answers of an experiment, each verified against its replies.

        Args:
            experiment: Name of the experiment.
        """
        result, broken = Done(set(), {}, 0), 0
        if not self.path.exists():
            return result
        columns = ", ".join(f"answers.{column}" for column in _ANSWER)
        with self._database.reading() as connection:
            answers = connection.execute(
                f"SELECT answers.id, cells.key, questions.key, answers.digest, {columns} "
                "FROM answers JOIN cells ON cells.id = answers.cell JOIN questions ON questions.id = answers.question "
                "JOIN experiment_cells ON experiment_cells.cell = cells.id "
                "JOIN experiment_questions ON experiment_questions.question = questions.id "
                "AND experiment_questions.experiment = experiment_cells.experiment "
                "JOIN experiments ON experiments.id = experiment_cells.experiment WHERE experiments.name = ? "
                "ORDER BY answers.id",
                [experiment],
            )
            good = {
                checked[0]
                for *checked, check in connection.execute(f"SELECT {', '.join(_REPLY)}, digest FROM replies")
                if digest(*checked) == check
            }
            for number, cell, question, check, *values in answers:
                replies = [
                    reply
                    for (reply,) in connection.execute(
                        "SELECT reply FROM calls WHERE answer = ? ORDER BY number", [number]
                    )
                ]
                scores = connection.execute(
                    "SELECT metric, value FROM scores WHERE answer = ? ORDER BY metric", [number]
                )
                if check != answer_digest(values, replies, scores):
                    broken += 1
                elif values[0] == "failed":
                    result.failed[cell, question] = values[2]
                elif good.issuperset(replies):
                    result.answered.add((cell, question))
                else:
                    broken += 1
        return result._replace(broken=broken)

    def spent(self, experiment: str) -> Spent:
        """Calls, tokens and money spent on models in all runs of an experiment.

        Args:
            experiment: Name of the experiment.
        """
        rows = self._rows(SPENDING, {"name": experiment})
        return reduce(Spent.plus, (Spent(*spent) for _, _, *spent in rows), Spent())

    def identities(self) -> dict[str, str]:
        """Identity of each model and embedder that was opened in any run, by the hash of its specification."""
        rows = self._rows("SELECT described FROM experiments ORDER BY id")
        return {
            spec_hash: identity
            for (text,) in rows
            for spec_hash, identity in json.loads(text).get("identities", {}).items()
        }

    def _rows(self, query: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        """Rows of a query; empty if the file is missing."""
        if not self.path.exists():
            return []
        with self._database.reading() as connection:
            return connection.execute(query, values or {}).fetchall()

    def _write_vectors(self, connection: sqlite3.Connection, records: Sequence[VectorRecord]) -> None:
        name, vectors = records[0].embedder, np.stack([record.vector for record in records])
        known = write_vectors(connection, name, [record.hash for record in records], vectors)
        if known != vectors.shape[1]:
            raise ResultsFileError(
                f"{self.path} has vectors of dimension {known} for the embedder {name!r}, got dimension "
                f"{vectors.shape[1]}; give each embedding model its own name",
                self.path,
            )

    def _write_replies(self, connection: sqlite3.Connection, replies: Sequence[Reply]) -> list[Any]:
        """Write replies unless another process wrote them first; return the stored replies."""
        rows = {reply.key: self._reply_row(reply) for reply in replies}
        written = _insert(connection, "replies", rows.values(), rest="ON CONFLICT (key) DO NOTHING")
        if written == len(replies):
            return list(replies)
        stored = {reply.key: reply for reply in _read_replies(connection, list(rows))}
        # A stored reply that was not returned fails its digest, so replace it.
        _insert(connection, "replies", (rows[key] for key in rows.keys() - stored.keys()), verb="REPLACE")
        return [stored.get(reply.key, reply) for reply in replies]

    def _reply_row(self, reply: Reply) -> dict[str, Any]:
        row = reply._asdict() | reply.usage._asdict() | {"run": self.run, "at": _now()}
        del row["usage"]
        stored = _stored("replies", row)
        return row | {"digest": digest(*(stored[name] for name in _REPLY))}

    def _write_answer(self, connection: sqlite3.Connection, answer: AnswerRecord) -> None:
        context = None
        if answer.context is not None:
            key, index, kept, dropped = answer.context
            chunks = {"key": key, "index": index, "kept": kept, "dropped": dropped}
            _insert(connection, "contexts", [chunks], found={"index": "indexes"}, verb="INSERT OR IGNORE")
            found = connection.execute("SELECT id FROM contexts WHERE key = ?", [key]).fetchone()
            context = None if found is None else found[0]
        place = connection.execute(
            "SELECT cells.id, questions.id FROM cells, questions WHERE cells.key = ? AND questions.key = ?",
            [answer.cell, answer.question],
        ).fetchone()
        _delete_answer(connection, place)
        given = {
            **vars(answer),
            **answer.usage._asdict(),
            "status": "answered" if answer.error is None else "failed",
            "calls": len(answer.calls),
            "context": context,
        }
        values = {name: given[name] for name in _ANSWER}
        scores = sorted((metric, float(value)) for metric, value in answer.scores.items())
        # Judge replies are covered by the digest of the answer, but are not part of its cost.
        replies = (*answer.calls, *answer.metric_calls)
        check = answer_digest(_stored("answers", values).values(), [key for _, key in replies], scores)
        row = {"cell": place[0], "question": place[1], **values, "digest": check, "run": self.run}
        measured = answer.measurement._asdict() if answer.measurement is not None else {}
        _insert(connection, "answers", [row | measured])
        of = {"answer": _last_id(connection)}
        calls = (of | {"number": number, "step": step, "reply": key} for number, (step, key) in enumerate(replies))
        _insert(connection, "calls", calls)
        _insert(connection, "scores", (of | {"metric": metric, "value": value} for metric, value in scores))

    def _check_run(self, connection: sqlite3.Connection) -> None:
        """Check that the file still has this run.

        Raises:
            ResultsFileError: The file was deleted or replaced.
        """
        if not connection.execute("SELECT 1 FROM runs WHERE id = ?", [self.run]).fetchone():
            raise ResultsFileError(
                f"the results file {self.path} was deleted or replaced during the run; start the run again", self.path
            )


def _read_replies(connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[Reply]:
    """Yield stored replies that match their digest."""
    query = f"SELECT {', '.join(_REPLY)}, digest, model, step, seconds, money FROM replies WHERE key {_OF_KEYS}"
    for *checked, check, model, step, seconds, money in connection.execute(query, [json.dumps(keys)]):
        if digest(*checked) == check:
            key, text, read, written, cached, estimated, reason = checked
            usage = Usage(read, written, cached, bool(estimated))
            yield Reply(key, model, step, text, usage, reason, seconds, money)


def _read_indexes(connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[IndexRecord]:
    """Yield stored indexes that have all their chunks."""
    for number, count, key, documents, splitter, size, overlap, tokenizer in connection.execute(
        "SELECT id, chunks, key, documents, splitter, chunk_size, chunk_overlap, tokenizer FROM indexes "
        f"WHERE key {_OF_KEYS}",
        [json.dumps(keys)],
    ):
        rows = connection.execute(
            'SELECT document, page, start, "end", tokens FROM chunks WHERE "index" = ? ORDER BY row', [number]
        ).fetchall()
        if len(rows) == count:
            pieces = [ChunkRecord(*row) for row in rows]
            yield IndexRecord(key, json.loads(documents), splitter, size, overlap, tokenizer, pieces)


def _read_retrievals(connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[Retrieval]:
    for key, index, embedder, search, store, question, depth, hits in connection.execute(
        "SELECT retrievals.key, indexes.key, embedder, search, store, question, depth, hits FROM retrievals "
        f'JOIN indexes ON indexes.id = "index" WHERE retrievals.key {_OF_KEYS}',
        [json.dumps(keys)],
    ):
        found = [Hit(*hit) for hit in json.loads(hits)]
        yield Retrieval(key, index, embedder, search, store, question, depth, found)


def _read_vectors(connection: sqlite3.Connection, keys: Sequence[tuple[str, bytes]]) -> Iterator[VectorRecord]:
    for name in dict.fromkeys(embedder for embedder, _ in keys):
        hashes = [hashed for embedder, hashed in keys if embedder == name]
        for hashed, vector in zip(hashes, read_vectors(connection, name, hashes), strict=True):
            if vector is not None:
                yield VectorRecord(name, hashed, vector)


_READERS = {
    Reply: _read_replies,
    IndexRecord: _read_indexes,
    Retrieval: _read_retrievals,
    VectorRecord: _read_vectors,
}


def _write_index(connection: sqlite3.Connection, index: IndexRecord) -> None:
    row = {**vars(index), "chunks": len(index.pieces), "tokens": sum(piece.tokens for piece in index.pieces)}
    del row["pieces"]
    _insert(connection, "indexes", [row], verb="INSERT OR IGNORE")
    (number,) = connection.execute("SELECT id FROM indexes WHERE key = ?", [index.key]).fetchone()
    rows = ({"index": number, "row": row, **piece._asdict()} for row, piece in enumerate(index.pieces))
    _insert(connection, "chunks", rows, verb="INSERT OR REPLACE")


def _cell_row(cell: CellRecord) -> dict[str, Any]:
    columns = {name: cell.values[name] for name in CELL_COLUMNS}
    options = {name: value for name, value in cell.values.items() if name not in columns}
    return {"key": cell.key, **columns, "options": options, "identity": cell.identity}


def _delete_answer(connection: sqlite3.Connection, place: Sequence[int]) -> None:
    row = connection.execute("SELECT id FROM answers WHERE cell = ? AND question = ?", place).fetchone()
    if row is not None:
        for table, column in (("calls", "answer"), ("scores", "answer"), ("answers", "id")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", row)


def _insert(
    connection: sqlite3.Connection,
    table: str,
    rows: Iterable[Mapping[str, Any]],
    *,
    found: Mapping[str, str] | None = None,
    verb: str = "INSERT",
    rest: str = "",
) -> int:
    """Write rows, given as mappings of column names to values, and return the number of rows written.

    For columns in `found`, rows have the key of a row in that table; a row is skipped if the key is missing there.
    """
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return 0
    found = found or {}
    columns = ", ".join(f'"{name}"' for name in first)
    values = ", ".join(f"{found[name]}.id" if name in found else f":{name}" for name in first)
    matching = " AND ".join(f"{other}.key = :{name}" for name, other in found.items())
    source = f"SELECT {values} FROM {', '.join(found.values())} WHERE {matching}" if found else f"VALUES ({values})"
    statement = f"{verb} INTO {table} ({columns}) {source} {rest}"
    return connection.executemany(statement, (_stored(table, row) for row in chain([first], rows))).rowcount


def _stored(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row for storage: storable text, with secrets masked in messages, or JSON."""
    masked = _MASKED[table]
    return {name: _value(value, safe_text if name in masked else storable) for name, value in row.items()}


def _value(value: Any, clean: Any) -> Any:
    # Fast path for most values.
    if type(value) in _NUMBERS:
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, bool) else value
    # Mask texts one by one, so that masking cannot remove quotes between them.
    value = [clean(one) for one in value] if clean is safe_text else value
    return storable(json.dumps(value, ensure_ascii=False, default=dict))


def _last_id(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("SELECT last_insert_rowid()").fetchone()
    return int(number)


def _now() -> str:
    """Current time in UTC, with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
