"""The only reader of whole experiments from a results file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property, reduce
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import Json

from oprag.compare.db.keys import JUDGED
from oprag.compare.db.records import (
    CellRecord,
    ChunkRecord,
    ContextRecord,
    Described,
    Failure,
    Masked,
    Number,
    QuestionRecord,
    RunRecord,
    Spent,
    StoredAnswer,
    checked,
    columns_of,
)
from oprag.compare.db.schema import CELL_COLUMNS, RESULTS
from oprag.errors import ExperimentError, ResultsFileError
from oprag.files.database import Database
from oprag.masking import describe, shown

__all__ = ["SPENDING", "ResultsReader"]

_NAMES, _MAX_NAME_LENGTH = 20, 80  # maximum number and length of names in a message

SPENDING = "SELECT model, purpose, calls, tokens, money FROM spending WHERE experiment = ? ORDER BY model, purpose"
"""Spending of an experiment by model and purpose: "answers" or the name of a metric."""

# Experiments share cells, but may have different questions. Places are positions in the reader's lists.
_ANSWERS = """
    FROM (SELECT cell AS id, row_number() OVER (ORDER BY cell) - 1 AS place
          FROM experiment_cells WHERE experiment = :experiment) AS cell
    JOIN answers ON answers.cell = cell.id
    JOIN (SELECT question AS id, row_number() OVER (ORDER BY question) - 1 AS place
          FROM experiment_questions WHERE experiment = :experiment) AS asked ON asked.id = answers.question
"""
_CHUNK = columns_of(ChunkRecord)
_CONTEXT = 'key, "index", kept, dropped'


class ResultsReader:
    """A snapshot of one experiment in a results file, unaffected by a run in progress.

    Answers, scores and contexts refer to their cell and question by position in `cells` and `questions`. The argument
    `cells` of methods takes such positions, and restricts reading to these cells. All methods raise `ResultsFileError`
    if a row is invalid.

    Args:
        path: The results file.
        experiment: Name of the experiment; optional if the file has only one.

    Attributes:
        path: The results file.
        name: Name of the experiment.
        described: Description of the experiment: grid, models, embedders and metrics.

    Raises:
        ExperimentError: The file has no such experiment, or several and none was specified.
        ResultsFileError: The file is missing, corrupt, or not a results file.

    Example:
        ```python
        with ResultsReader("results.db") as reader:
            failed = sum(answer.failed for answer in reader.answers())
        ```
    """

    name: str
    described: Mapping[str, Any]

    def __init__(self, path: str | os.PathLike[str], experiment: str | None = None) -> None:
        self.path = Path(path)
        self._requested = experiment
        self._stack = ExitStack()
        self._database = Database(path, RESULTS)
        self._ends: dict[str, Mapping[tuple[str, int | None], int]] = {}

    def __enter__(self) -> Self:
        if not self.path.is_file():  # opening would create it
            raise ResultsFileError(f"no such results file: {self.path}", self.path)
        if not self.path.stat().st_size:  # opening would create the tables
            raise ResultsFileError(f"{self.path} is not a results file: it is empty", self.path)
        with ExitStack() as stack:
            self._connection = stack.enter_context(self._database.reading())
            self._number, self.name, self.described = self._experiment()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, traceback)

    @cached_property
    def cells(self) -> list[CellRecord]:
        """Cells, in the order in which they were stored."""
        axes = ", ".join(f'"{axis}"' for axis in CELL_COLUMNS)
        rows = self._connection.execute(
            f"SELECT key, options, identity, {axes} FROM cells JOIN experiment_cells ON cell = id "
            "WHERE experiment = ? ORDER BY id",
            [self._number],
        ).fetchall()
        records = checked(CellRecord, (row[:3] for row in rows), self._database)
        return [
            cell._replace(values={**dict(zip(CELL_COLUMNS, row[3:], strict=True)), **cell.values})
            for cell, row in zip(records, rows, strict=True)
        ]

    @cached_property
    def questions(self) -> list[QuestionRecord]:
        """Questions, in the order in which they were stored."""
        ours = "SELECT question FROM experiment_questions WHERE experiment = :experiment"
        query = f"SELECT {columns_of(QuestionRecord)} FROM questions WHERE id IN ({ours}) ORDER BY id"
        return [*self._read(QuestionRecord, query)]

    def answers(self, cells: Collection[int] | None = None, *, longest: int | None = 0) -> Iterator[StoredAnswer]:
        """Yield all answers and failures.

        Args:
            cells: Positions of the cells; all by default.
            longest: Maximum characters of each text; None for no limit.
        """
        columns = (
            "error, message, notes, route, context, coalesce(substr(text, 1, :longest), ''), "
            "max(0, coalesce(length(text), 0) - :longest), estimated, calls, input_tokens, output_tokens, "
            "cached_tokens, embedded_tokens, context_tokens, context_chunks, seconds, cpu_seconds, peak_memory_mib"
        )
        most = 2**31 - 1 if longest is None else longest  # maximum of substr
        return checked(StoredAnswer, self._answer_rows(columns, "", cells, longest=most), self._database)

    def scores(self, cells: Collection[int] | None = None) -> Iterator[tuple[int, int, str, float]]:
        """Yield cell, question, metric and value of each score."""
        rest = "JOIN scores ON scores.answer = answers.id"
        return checked(tuple[int, int, str, Number], self._answer_rows("metric, value", rest, cells), self._database)

    def judgements(self, longest: int) -> Iterator[tuple[int, int, str, str]]:
        """Yield cell, question, name of the judge, and the start of its reply."""
        rest = f"JOIN calls ON calls.answer = answers.id AND calls.step LIKE '{JUDGED}%' JOIN replies ON key = reply"
        columns = f"substr(calls.step, {len(JUDGED) + 1}), substr(replies.text, 1, :longest)"
        return checked(tuple[int, int, str, str], self._answer_rows(columns, rest, longest=longest), self._database)

    def cores(self) -> tuple[str, ...]:
        """Cores that the runs which measured answers could use."""
        measured = f"SELECT answers.run {_ANSWERS} WHERE seconds NOT NULL"
        query = f"SELECT versions FROM runs WHERE id IN ({measured})"
        found = {versions.get("cores") for (versions,) in self._read(tuple[Json[dict[str, str]]], query)}
        return tuple(sorted(cores for cores in found if cores))

    def contexts(self, cells: Collection[int] | None = None) -> Iterator[tuple[int, int, ContextRecord, int]]:
        """Yield cell, question and context of each answer that has one, and the number of chunks in its index."""
        chunks = '(SELECT count(*) FROM chunks WHERE chunks."index" = contexts."index")'
        rest = "JOIN contexts ON key = context"
        for cell, question, count, *context in self._answer_rows(f"{chunks}, {_CONTEXT}", rest, cells):
            (record,) = checked(ContextRecord, [context], self._database)
            yield cell, question, record, count

    def context(self, key: str) -> ContextRecord:
        """Read the context with this key (`StoredAnswer.context`)."""
        (context,) = self._read(ContextRecord, f"SELECT {_CONTEXT} FROM contexts WHERE key = :key", key=key)
        return context  # type: ignore[no-any-return]

    def pieces(self, index: str, rows: Collection[int]) -> dict[int, ChunkRecord]:
        """Chunks of an index, by row."""
        source = 'chunks JOIN json_each(:rows) ON row = value WHERE "index" = :index ORDER BY row'
        values = {"rows": json.dumps(sorted(set(rows))), "index": index}
        numbers = [row for (row,) in self._connection.execute(f"SELECT row FROM {source}", values)]
        return dict(zip(numbers, self._read(ChunkRecord, f"SELECT {_CHUNK} FROM {source}", **values), strict=True))

    def document_ends(self, index: str) -> Mapping[tuple[str, int | None], int]:
        """End offset of the last chunk of each document of an index, or of each page."""
        if index not in self._ends:
            last = f'SELECT {_CHUNK}, max("end") FROM chunks WHERE "index" = ? GROUP BY document, page'
            rows = (row[:-1] for row in self._connection.execute(last, [index]))
            found = checked(ChunkRecord, rows, self._database)
            self._ends[index] = {(chunk.document, chunk.page): chunk.end for chunk in found}
        return self._ends[index]

    def failures(self) -> list[Failure]:
        """Errors of failed questions with their most frequent message, most frequent first."""
        query = (
            f"SELECT error, coalesce(message, ''), count(*) {_ANSWERS} WHERE status = 'failed' "
            "GROUP BY error, message ORDER BY count(*) DESC, error, message"
        )
        found: dict[str, Failure] = {}
        for one in self._read(Failure, query):
            known = found.get(one.error)
            found[one.error] = one if known is None else known._replace(count=known.count + one.count)
        return sorted(found.values(), key=lambda one: -one.count)

    def notes(self) -> Counter[str]:
        """Number of answers with each note."""
        query = f"SELECT notes {_ANSWERS} WHERE status = 'answered' AND notes <> '[]'"
        return Counter(note for (notes,) in self._read(tuple[Json[frozenset[Masked]]], query) for note in notes)

    def spent(self) -> Spent:
        """Calls, tokens and money spent on models in all runs of the experiment."""
        return reduce(Spent.plus, self.spending().values(), Spent())

    def spending(self) -> dict[tuple[str, str], Spent]:
        """Calls, tokens and money by model identity and purpose: "answers", or the name of a metric."""
        rows = self._connection.execute(SPENDING, [self.name])
        return {(model, purpose): Spent(*spent) for model, purpose, *spent in rows}

    def runs(self) -> list[RunRecord]:
        """Runs, latest first."""
        query = f"SELECT {columns_of(RunRecord)} FROM runs WHERE experiment = :experiment ORDER BY id DESC"
        return [*self._read(RunRecord, query)]

    def _experiment(self) -> tuple[int, str, Mapping[str, Any]]:
        name = self._requested
        query = "SELECT id, name, described FROM experiments ORDER BY id"
        rows = [*checked(tuple[int, str, Json[Described]], self._connection.execute(query), self._database)]
        found = [row for row in rows if name is None or row[1] == name]
        if len(found) != 1:
            what = "no experiment" if name is None else f"no experiment {describe(name)}"
            what = "several experiments" if found else what
            names = [shown(row[1], _MAX_NAME_LENGTH) for row in rows]
            hint = "specify one of" if found else "available experiments"
            known = f"; {hint}: {', '.join(names[:_NAMES])}{', …' if len(names) > _NAMES else ''}" if names else ""
            raise ExperimentError(f"{self.path} has {what}{known}", name)
        return found[0]  # type: ignore[no-any-return]

    def _read(self, kind: Any, query: str, **values: Any) -> Iterator[Any]:
        """Yield the rows of a query, checked."""
        rows = self._connection.execute(query, {"experiment": self._number, **values})
        return checked(kind, rows, self._database)

    def _answer_rows(
        self, columns: str, rest: str, cells: Collection[int] | None = None, **values: Any
    ) -> sqlite3.Cursor:
        """Rows with the positions of cell and question of each answer, and the given columns."""
        if cells is not None:
            values["cells"] = json.dumps([*cells])
            rest = f"{rest} WHERE cell.place IN (SELECT value FROM json_each(:cells))"
        query = f"SELECT cell.place, asked.place, {columns} {_ANSWERS} {rest} ORDER BY cell.place, asked.place"
        return self._connection.execute(query, {"experiment": self._number, **values})
