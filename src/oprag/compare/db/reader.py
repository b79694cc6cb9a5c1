"""The only reader of whole experiments from a results file."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, Self

from pydantic import Json

from oprag._internal.files.database import Database
from oprag._internal.masking import describe, listed
from oprag.compare.db.records import (
    RESULTS,
    AnswerRecord,
    CellRecord,
    Described,
    ExperimentRecord,
    Failure,
    IndexRecord,
    Masked,
    QuestionRecord,
    Reply,
    RunRecord,
    Spent,
    checked,
    columns_of,
    records_of,
)
from oprag.errors import ExperimentError, ResultsFileError

__all__ = ["ResultsReader", "spending_of"]

_OF_KEYS = "(SELECT value FROM json_each(?))"


class ResultsReader:
    """A snapshot of one experiment in a results file, unaffected by a run in progress.

    The name of the experiment is optional if the file has only one. Raises an `ExperimentError` if there is no such
    experiment, and everywhere a `ResultsFileError` if the file or a row is invalid.
    """

    name: str
    described: Described  # grid, models, embedders and metrics

    def __init__(self, path: str | os.PathLike[str], experiment: str | None = None) -> None:
        self.path = Path(path)
        self._requested = experiment
        self._stack = ExitStack()
        self._database = Database(path, RESULTS)
        self._indexes: dict[str, IndexRecord] = {}

    def __enter__(self) -> Self:
        if not self.path.is_file():  # opening would create it
            raise ResultsFileError(f"no such results file: {self.path}", self.path)
        if not self.path.stat().st_size:  # opening would create the tables
            raise ResultsFileError(f"{self.path} is not a results file: it is empty", self.path)
        with ExitStack() as stack:
            self._connection = stack.enter_context(self._database.reading())
            self._experiment = self._found()
            self.name, self.described = self._experiment.name, self._experiment.described
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._stack.__exit__(*raised)

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
        return self._of_answers(AnswerRecord, columns_of(AnswerRecord))

    def replies(self, keys: Collection[str]) -> list[Reply]:
        """The replies with these keys."""
        return self._of_keys(Reply, keys)

    def index(self, key: str) -> IndexRecord:
        """The index with this key."""
        if key not in self._indexes:
            self._indexes |= {index.key: index for index in self._of_keys(IndexRecord, [key])}
        return self._indexes[key]

    def cores(self) -> tuple[str, ...]:
        """Cores that the runs which measured answers could use."""
        measured = "SELECT run FROM answers WHERE seconds IS NOT NULL"
        query = f"SELECT versions FROM runs WHERE experiment = ? AND id IN ({measured})"
        found = {versions.get("cores") for (versions,) in self._read(tuple[Json[dict[str, str]]], query, [self.name])}
        return tuple(sorted(cores for cores in found if cores))

    def failures(self) -> list[Failure]:
        """Errors of failed questions with their most frequent message, most frequent first."""
        found: dict[str, Counter[str]] = {}
        for error, message in self._of_answers(tuple[str | None, Masked | None], "error, message"):
            if error is not None:
                found.setdefault(error, Counter())[message or ""] += 1
        failures = [Failure(error, max(sorted(of), key=of.__getitem__), of.total()) for error, of in found.items()]
        return sorted(failures, key=lambda one: (-one.count, one.error))

    def spent(self) -> Spent:
        """Calls, tokens and money spent on models in all runs of the experiment."""
        return reduce(Spent.plus, self.spending().values(), Spent())

    def spending(self) -> dict[tuple[str, str], Spent]:
        """Calls, tokens and money by model identity and purpose: "answers", or the name of a metric."""
        return spending_of(self._connection, self.name)

    def runs(self) -> list[RunRecord]:
        """Runs, latest first."""
        query = f"SELECT {columns_of(RunRecord)} FROM runs WHERE experiment = ? ORDER BY id DESC"
        return [*self._read(RunRecord, query, [self.name])]

    def _found(self) -> ExperimentRecord:
        name = self._requested
        records = [*self._read(ExperimentRecord, f"SELECT {columns_of(ExperimentRecord)} FROM experiments")]
        found = [record for record in records if name is None or record.name == name]
        if len(found) != 1:
            what = "several experiments" if found else "no experiment" + ("" if name is None else f" {describe(name)}")
            known = f"specify one of: {listed(record.name for record in records)}"
            raise ExperimentError(f"{self.path} has {what}{'; ' + known if records else ''}", name)
        return found[0]  # type: ignore[no-any-return]

    def _of_answers(self, kind: Any, columns: str) -> Iterator[Any]:
        """Yield columns of the answers, checked as values of a type."""
        chosen = [self._experiment.cells, self._experiment.questions]
        query = f"SELECT {columns} FROM answers WHERE cell IN {_OF_KEYS} AND question IN {_OF_KEYS}"
        return self._read(kind, f"{query} ORDER BY cell, question", [json.dumps([*one]) for one in chosen])

    def _of_keys(self, kind: Any, keys: Iterable[str]) -> list[Any]:
        """The records with these keys, in their order."""
        keys = dict.fromkeys(keys)
        found = records_of(kind, self._connection, [*keys], self._database)
        if missing := keys.keys() - found.keys():
            raise self._database.damaged(f"the {kind.__name__} {min(missing)} is missing")
        return [found[key] for key in keys]

    def _read(self, kind: Any, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query, checked."""
        return checked(kind, self._connection.execute(query, values), self._database)


def spending_of(connection: sqlite3.Connection, experiment: str) -> dict[tuple[str, str], Spent]:
    """Spending of an experiment by model and purpose: "answers" or the name of a metric."""
    query = "SELECT model, purpose, calls, tokens, money FROM spending WHERE experiment = ? ORDER BY model, purpose"
    return {(model, purpose): Spent(*spent) for model, purpose, *spent in connection.execute(query, [experiment])}
