"""Reading an experiment from a results file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, reduce
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from oprag.compare.db.records import (
    JUDGED,
    CellRecord,
    ChunkRecord,
    ContextRecord,
    Failure,
    QuestionRecord,
    RunRecord,
    Spent,
    StoredAnswer,
)
from oprag.compare.db.schema import CELL_COLUMNS, RESULTS
from oprag.errors import ExperimentError, ResultsFileError
from oprag.files.database import Database
from oprag.masking import describe, shown, without_keys

__all__ = ["SPENDING", "ResultsReader"]

_NAMES, _MAX_NAME_LENGTH = 20, 80  # maximum number and length of names in a message

# Experiments share cells, but may have different questions.
_ANSWERS = (
    "FROM answers "
    "JOIN experiment_cells ON experiment_cells.cell = answers.cell AND experiment_cells.experiment = :experiment "
    "JOIN experiment_questions ON experiment_questions.question = answers.question "
    "AND experiment_questions.experiment = experiment_cells.experiment"
)
_OF_CELLS = "WHERE answers.cell IN (SELECT value FROM json_each(:cells))"

_JUDGED = f"calls.step LIKE '{JUDGED}%'"
_JUDGE = f"substr(calls.step, {len(JUDGED) + 1})"
_PURPOSE = f"CASE WHEN {_JUDGED} THEN {_JUDGE} ELSE 'answers' END"
_OF_RUNS = "JOIN runs ON runs.id = run JOIN experiments ON experiments.id = experiment WHERE experiments.name = :name"
SPENDING = (
    "SELECT model, purpose, sum(calls), sum(tokens), sum(money) FROM ("
    f"SELECT model, {_PURPOSE} AS purpose, 1 AS calls, input_tokens + output_tokens AS tokens, "
    f"coalesce(money, 0.0) AS money FROM replies AS calls {_OF_RUNS} "
    f"UNION ALL SELECT model, {_PURPOSE}, 1, 0, 0.0 FROM failed_calls AS calls {_OF_RUNS}"
    ") GROUP BY model, purpose ORDER BY model, purpose"
)
"""Model, purpose ("answers" or the name of a metric), calls, tokens and money of the experiment `:name`."""


class ResultsReader:
    """A snapshot of one experiment in a results file, unaffected by a run in progress.

    Answers, scores and contexts refer to their cell and question by position in `cells` and `questions`. The argument
    `cells` of methods takes such positions, and restricts reading to these cells.

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
        self._ends: dict[str, Mapping[tuple[str, int | None], int]] = {}

    def __enter__(self) -> Self:
        if not self.path.is_file():  # opening would create it
            raise ResultsFileError(f"no such results file: {self.path}", self.path)
        if not self.path.stat().st_size:  # opening would create the tables
            raise ResultsFileError(f"{self.path} is not a results file: it is empty", self.path)
        with ExitStack() as stack:
            self._connection = stack.enter_context(Database(self.path, RESULTS).reading())
            self._connection.execute("BEGIN")
            stack.callback(_end, self._connection)
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
        return [*self._cells.values()]

    @cached_property
    def questions(self) -> list[QuestionRecord]:
        """Questions, in the order in which they were stored."""
        return [*self._questions.values()]

    def answers(self, cells: Collection[int] | None = None, *, longest: int | None = 0) -> Iterator[StoredAnswer]:
        """Yield all answers and failures.

        Args:
            cells: Positions of the cells; all by default.
            longest: Maximum characters of each text; None for no limit.
        """
        most = 2**31 - 1 if longest is None else longest  # maximum of substr
        for cell, question, error, message, notes, route, context, text, length, estimated, *counts in self._of_answers(
            "error, message, notes, route, contexts.key, substr(text, 1, :longest), length(text), estimated, calls, "
            "input_tokens, output_tokens, cached_tokens, embedded_tokens, context_tokens, context_chunks, seconds, "
            "cpu_seconds, peak_memory_mib",
            cells,
            "LEFT JOIN contexts ON contexts.id = answers.context",
            longest=most,
        ):
            details = error, message and without_keys(message), _texts(notes), route, context
            more = max(0, (length or 0) - most)
            yield StoredAnswer(cell, question, *details, text or "", more, bool(estimated), *counts)

    def scores(self, cells: Collection[int] | None = None) -> Iterator[tuple[int, int, str, float]]:
        """Yield cell, question, metric and value of each score."""
        rows: Iterator[Any] = self._of_answers("metric, value", cells, "JOIN scores ON scores.answer = answers.id")
        return rows

    def judgements(self, longest: int) -> Iterator[tuple[int, int, str, str]]:
        """Yield cell, question, name of the judge, and the start of its reply."""
        columns = f"{_JUDGE}, substr(replies.text, 1, :longest)"
        rest = f"JOIN calls ON calls.answer = answers.id AND {_JUDGED} JOIN replies ON replies.key = calls.reply"
        rows: Iterator[Any] = self._of_answers(columns, None, rest, longest=longest)
        return rows

    def cores(self) -> tuple[str, ...]:
        """Cores that the runs which measured answers could use."""
        rows = self._of_answers(
            "json_extract(versions, '$.cores')", None, "JOIN runs ON runs.id = answers.run AND seconds NOT NULL"
        )
        return tuple(sorted({cores for _, _, cores in rows if cores}))

    def contexts(self, cells: Collection[int] | None = None) -> Iterator[tuple[int, int, ContextRecord, int]]:
        """Yield cell, question and context of each answer that has one, and the number of chunks in its index."""
        for cell, question, chunks, *context in self._of_answers(
            "indexes.chunks, contexts.key, indexes.key, kept, dropped",
            cells,
            'JOIN contexts ON contexts.id = answers.context JOIN indexes ON indexes.id = contexts."index"',
        ):
            yield cell, question, _context(*context), chunks

    def context(self, key: str) -> ContextRecord:
        """Read the context with this key (`StoredAnswer.context`)."""
        row = self._connection.execute(
            'SELECT contexts.key, indexes.key, kept, dropped FROM contexts JOIN indexes ON indexes.id = "index" '
            "WHERE contexts.key = ?",
            [key],
        ).fetchone()
        return _context(*row)

    def pieces(self, index: str, rows: Collection[int]) -> dict[int, ChunkRecord]:
        """Chunks of an index, by row."""
        found = self._connection.execute(
            'SELECT row, document, page, start, "end", chunks.tokens FROM json_each(?) JOIN chunks '
            'ON chunks."index" = (SELECT id FROM indexes WHERE key = ?) AND chunks.row = json_each.value',
            [json.dumps(sorted(set(rows))), index],
        )
        return {row: ChunkRecord(*piece) for row, *piece in found}

    def document_ends(self, index: str) -> Mapping[tuple[str, int | None], int]:
        """End offset of the last chunk of each document of an index, or of each page."""
        if index not in self._ends:
            rows = self._connection.execute(
                'SELECT document, page, max("end") FROM chunks WHERE "index" = (SELECT id FROM indexes WHERE key = ?) '
                "GROUP BY document, page",
                [index],
            )
            self._ends[index] = {(document, page): end for document, page, end in rows}
        return self._ends[index]

    def retrieved(self, index: str, question: str, search: str, store: str, depth: int | None) -> Sequence[int]:
        """Rows of the chunks that a search returned, best first; empty if the file has searches with several embedders.

        Args:
            index: Key of the index.
            question: Text of the question.
            search: How chunks were ranked.
            store: The store that found the nearest vectors.
            depth: Requested number of chunks; None for all.
        """
        # The exact index is searched once, at the largest depth of a grid; smaller contexts use the first of these
        # hits.
        matches = [
            (found, embedder, key)
            for key, embedder, found in self._retrievals.get((index, question, search, store), ())
            if found == depth or (store == "index" and depth is not None and found is not None and found > depth)
        ]
        if len({embedder for _, embedder, _ in matches}) != 1:
            return ()
        _, _, key = min(matches, key=lambda one: one[0] or 0)
        ((hits,),) = self._connection.execute("SELECT hits FROM retrievals WHERE key = ?", [key])
        return [row for row, _ in json.loads(hits)][:depth]

    def failures(self) -> list[Failure]:
        """Errors of failed questions, most frequent first."""
        return self._failures(f"{_ANSWERS} WHERE status = 'failed'")

    def notes(self) -> Counter[str]:
        """Number of answers with each note."""
        rows = self._connection.execute(
            f"SELECT notes {_ANSWERS} WHERE status = 'answered' AND notes <> '[]'", {"experiment": self._number}
        )
        return Counter(note for (notes,) in rows for note in set(_texts(notes)))

    def spent(self) -> Spent:
        """Calls, tokens and money spent on models in all runs of the experiment."""
        return reduce(Spent.plus, self.spending().values(), Spent())

    def spending(self) -> dict[tuple[str, str], Spent]:
        """Calls, tokens and money by model identity and purpose: "answers", or the name of a metric."""
        rows = self._connection.execute(SPENDING, {"name": self.name})
        return {(model, purpose): Spent(*spent) for model, purpose, *spent in rows}

    def runs(self) -> list[RunRecord]:
        """Runs, latest first."""
        rows = self._connection.execute(
            "SELECT started, ended, outcome, versions FROM runs WHERE experiment = ? ORDER BY id DESC", [self._number]
        )
        return [
            RunRecord(started, ended, outcome and without_keys(outcome), json.loads(versions))
            for started, ended, outcome, versions in rows
        ]

    def _failures(self, source: str) -> list[Failure]:
        """Failures by error class, each with its most frequent message."""
        counts: Counter[str] = Counter()
        messages: dict[str, str] = {}
        for error, message, count in self._connection.execute(
            f"SELECT error, message, count(*) {source} GROUP BY error, message ORDER BY count(*) DESC, error, message",
            {"experiment": self._number},
        ):
            counts[error] += count
            messages.setdefault(error, without_keys(message or ""))
        return [Failure(error, messages[error], count) for error, count in counts.most_common()]

    def _experiment(self) -> tuple[int, str, Mapping[str, Any]]:
        name = self._requested
        rows = self._connection.execute("SELECT id, name, described FROM experiments ORDER BY id").fetchall()
        found = [row for row in rows if name is None or row[1] == name]
        if len(found) != 1:
            what = "no experiment" if name is None else f"no experiment {describe(name)}"
            what = "several experiments" if found else what
            names = [shown(row[1], _MAX_NAME_LENGTH) for row in rows]
            hint = "specify one of" if found else "available experiments"
            known = f"; {hint}: {', '.join(names[:_NAMES])}{', …' if len(names) > _NAMES else ''}" if names else ""
            raise ExperimentError(f"{self.path} has {what}{known}", name)
        number, name, described = found[0]
        return int(number), str(name), json.loads(described)

    @cached_property
    def _cells(self) -> Mapping[int, CellRecord]:
        """Cells by database id."""
        columns = ", ".join(f'"{column}"' for column in CELL_COLUMNS)
        rows = self._connection.execute(
            f"SELECT cells.id, key, identity, options, {columns} FROM cells JOIN experiment_cells ON cell = cells.id "
            "WHERE experiment = ? ORDER BY cells.id",
            [self._number],
        )
        return {
            number: CellRecord(
                key, dict(zip(CELL_COLUMNS, values, strict=True)) | json.loads(options), json.loads(identity)
            )
            for number, key, identity, options, *values in rows
        }

    @cached_property
    def _questions(self) -> Mapping[int, QuestionRecord]:
        """Questions by database id."""
        rows = self._connection.execute(
            "SELECT id, key, data, name, questions.question, answers, choices, right_choice, evidence, documents, "
            "about FROM questions JOIN experiment_questions AS ours ON ours.question = questions.id "
            "WHERE ours.experiment = ? ORDER BY id",
            [self._number],
        )
        return {
            number: QuestionRecord._make((*texts, *map(json.loads, two), right, *map(json.loads, three)))
            for number, texts, two, right, three in ((row[0], row[1:5], row[5:7], row[7], row[8:]) for row in rows)
        }

    @cached_property
    def _places(self) -> tuple[Mapping[int, int], Mapping[int, int]]:
        """Positions of cells and of questions, by database id."""
        cells, questions = ({number: place for place, number in enumerate(of)} for of in (self._cells, self._questions))
        return cells, questions

    @cached_property
    def _retrievals(self) -> Mapping[tuple[str, ...], Sequence[tuple[str, str | None, int | None]]]:
        """Key, embedder and depth of each search, by index, question, kind of search and store."""
        found: dict[tuple[str, ...], list[tuple[str, str | None, int | None]]] = defaultdict(list)
        for key, embedder, depth, *place in self._connection.execute(
            "SELECT retrievals.key, embedder, depth, indexes.key, question, search, store FROM retrievals "
            'JOIN indexes ON indexes.id = "index"'
        ):
            found[tuple(place)].append((key, embedder, depth))
        return found

    def _of_answers(
        self, columns: str, cells: Collection[int] | None, rest: str = "", **values: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the positions of cell and question of each answer, and the given columns."""
        of_cells, of_questions = self._places
        values["experiment"] = self._number
        if cells is not None:
            numbers = [*of_cells]
            values["cells"] = json.dumps([numbers[place] for place in cells])
            rest = f"{rest} {_OF_CELLS}"
        order = "ORDER BY answers.cell, answers.question"
        query = f"SELECT answers.cell, answers.question, {columns} {_ANSWERS} {rest} {order}"
        for cell, question, *found in self._connection.execute(query, values):
            yield of_cells[cell], of_questions[question], *found


def _end(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _texts(notes: str) -> tuple[str, ...]:
    return tuple(map(without_keys, json.loads(notes))) if notes != "[]" else ()


def _context(key: str, index: str, kept: str, dropped: str) -> ContextRecord:
    return ContextRecord(key, index, [tuple(row) for row in json.loads(kept)], json.loads(dropped))
