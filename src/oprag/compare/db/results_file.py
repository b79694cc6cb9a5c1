"""The one file of results: work that is done once, and the answers that came of it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.compare.db import answer_tables, measurement_tables, work_tables
from oprag.compare.db.checking import found as answers_found
from oprag.compare.db.records import (
    AnswerRecord,
    CellRecord,
    Done,
    FailedCall,
    FailedMeasurement,
    Hit,
    IndexRecord,
    MeasuredSoFar,
    Measurement,
    Piece,
    QuestionRecord,
    Reply,
    Retrieval,
    Spent,
)
from oprag.compare.db.schema import RESULTS
from oprag.embedding.cache_file import read_vectors, write_vectors
from oprag.errors import ResultsFileError
from oprag.files.database import Database
from oprag.masking import without_keys
from oprag.methods.model_calls import Completion

__all__ = ["ResultsFile"]


class ResultsFile:
    """A results file, which any tool that reads SQLite can open.

    What one of its methods has written outlives the process, however that ends. Threads may share it, and processes the
    file. It is a `WorkCache`.

    Args:
        path: The file; it is made when it is first written to.
        run: The number of a run that goes on; `begin` begins another one.
    """

    def __init__(self, path: str | os.PathLike[str], run: int = 0) -> None:
        self._database = Database(path, RESULTS)
        self._run = run
        self._keys: set[str] | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    @property
    def run(self) -> int:
        """The number of the run that is going on; 0 without one."""
        return self._run

    def check(self) -> None:
        """Read all of it, as the database engine stores it.

        Raises:
            ResultsFileError: It is damaged, or is no results file.
        """
        if not self.path.exists():
            return
        with self._database.reading() as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._database.damaged(str(found))

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection to read with statements of one's own; `oprag.compare.db.schema` has the tables.

        Raises:
            ResultsFileError: The file is damaged, is another one, or cannot be read.
        """
        return self._database.reading()

    def close(self) -> None:
        """Close it; the next use opens it again."""
        self._database.close()

    def begin(
        self,
        experiment: str,
        described: Mapping[str, Any],
        cells: Sequence[CellRecord],
        questions: Sequence[QuestionRecord],
        versions: Mapping[str, str],
    ) -> None:
        """Begin a run: write down what it is about.

        Args:
            experiment: The name of the experiment.
            described: Its description, as values that JSON can hold.
            cells: Its cells.
            questions: Its questions.
            versions: What it runs on.

        Raises:
            ResultsFileError: The file cannot be written.
        """
        with self._database.writing() as connection:
            number = answer_tables.write_experiment(connection, experiment, described, cells, questions)
            self._run = answer_tables.begin_run(connection, number, versions, work_tables.now())

    def end(self, outcome: str) -> None:
        """Write down how the run ended.

        Args:
            outcome: How it ended, in words.
        """
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE runs SET ended = ?, outcome = ? WHERE id = ?",
                [work_tables.now(), without_keys(outcome), self._run],
            )

    def spent(self, experiment: str) -> Spent:
        """What all runs of an experiment have spent on models.

        Args:
            experiment: The name of the experiment.
        """
        if not self.path.exists():
            return Spent()
        with self._database.reading() as connection:
            return answer_tables.spent(connection, experiment)

    def found(self, experiment: str) -> Done:
        """The answers of an experiment that are there, each held against the replies that it was made of.

        Args:
            experiment: The name of the experiment.
        """
        if not self.path.exists():
            return Done(set(), {}, 0)
        with self._database.reading() as connection:
            return answers_found(connection, experiment)

    def identities(self) -> dict[str, str]:
        """The identity of each model and embedder that runs have opened, by what was said about it."""
        if not self.path.exists():
            return {}
        with self._database.reading() as connection:
            rows = connection.execute("SELECT described FROM experiments ORDER BY id").fetchall()
        return {told: one for (text,) in rows for told, one in json.loads(text).get("identities", {}).items()}

    def keep_answers(self, answers: Sequence[AnswerRecord]) -> None:
        """Write answers; one that is there, such as a failed one, is replaced.

        Args:
            answers: The answers.

        Raises:
            ResultsFileError: The file is not the one that the run began with, or cannot be written.
        """
        if answers:
            with self._database.writing() as connection:
                self._check_run(connection)
                answer_tables.write_answers(connection, answers, self._run)

    def measured(self) -> MeasuredSoFar:
        """What was measured to its end, and what could not be in this run."""
        if not self.path.exists():
            return MeasuredSoFar(set(), set(), {})
        with self._database.reading() as connection:
            return measurement_tables.found_measurements(connection, self._run)

    def keep_measurements(
        self, cell: str, measurements: Sequence[Measurement], spent: Spent, replies: Sequence[Reply] = ()
    ) -> None:
        """Write what answers of a cell took, what measuring them has spent on models, and the replies.

        A reply that is there stays, so that answers that were made of it hold.

        Args:
            cell: The key of the cell.
            measurements: One for each phase of an attempt.
            spent: The calls, tokens and money of all models.
            replies: The replies to keep.
        """
        with self._database.writing() as connection:
            self._check_run(connection)
            measurement_tables.write_measurements(connection, measurements, self._run)
            new = work_tables.unknown_replies(connection, replies)
            work_tables.write_replies(connection, new, self._run)
            measurement_tables.write_measured_calls(connection, cell, spent, new, self._run)

    def keep_failed_measurements(self, failures: Sequence[FailedMeasurement]) -> None:
        """Write what could not be measured, and why.

        Args:
            failures: The questions and errors.
        """
        with self._database.writing() as connection:
            self._check_run(connection)
            measurement_tables.write_failed_measurements(connection, failures, self._run)

    def reply(self, key: str) -> Completion | None:
        """The reply with this address, if it is there and is what was written.

        Args:
            key: The address.
        """
        # Most replies that are asked for are not there, and a look into the file takes much longer.
        if key not in self._known_keys():
            return None
        with self._database.reading() as connection:
            return work_tables.read_reply(connection, key)

    def keep_replies(self, replies: Sequence[Reply]) -> list[Completion]:
        """Write replies, but for those where another process was faster; give those that are there.

        Args:
            replies: The replies, with their addresses.
        """
        if not replies:
            return []
        with self._database.writing() as connection:
            kept = work_tables.write_replies(connection, replies, self._run)
        self._known_keys().update(reply.key for reply in replies)
        return kept

    def keep_failed_call(self, call: FailedCall) -> None:
        """Write why a call failed.

        Args:
            call: The call and its error.
        """
        with self._database.writing() as connection:
            work_tables.write_failed_call(connection, call, self._run)

    def index(self, key: str) -> Sequence[Piece] | None:
        """The chunks of an index, if it is there.

        Args:
            key: The address of the index.
        """
        if not self.path.exists():
            return None
        with self._database.reading() as connection:
            return work_tables.read_index(connection, key)

    def keep_index(self, index: IndexRecord) -> None:
        """Write how documents were split.

        Args:
            index: The chunks, with the address of the index.
        """
        with self._database.writing() as connection:
            work_tables.write_index(connection, index)

    def hits(self, key: str) -> Sequence[Hit] | None:
        """What was found for a question, if it is there.

        Args:
            key: The address of the question and its search.
        """
        if not self.path.exists():
            return None
        with self._database.reading() as connection:
            try:
                return work_tables.read_hits(connection, key)
            except ValueError as error:
                raise self._database.damaged(str(error)) from error

    def keep_hits(self, found: Sequence[Retrieval]) -> None:
        """Write what was found for questions.

        Args:
            found: The hits of each question, with their address.
        """
        with self._database.writing() as connection:
            work_tables.write_hits(connection, found)

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        """The vector of each hash, None where there is none that can be used.

        Args:
            embedder: The name of the embedder.
            hashes: The hashes of the texts.
        """
        if not self.path.exists():
            return [None] * len(hashes)
        with self._database.reading() as connection:
            return read_vectors(connection, embedder, hashes)

    def keep_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Write vectors, of shape (number of hashes, dimension).

        Args:
            embedder: The name of the embedder.
            hashes: The hashes of the texts.
            vectors: The vectors, one for each hash.

        Raises:
            ResultsFileError: There are vectors of this embedder with another dimension, or the file cannot be written.
        """
        with self._database.writing() as connection:
            known = write_vectors(connection, embedder, hashes, vectors)
            if known != vectors.shape[1]:
                raise ResultsFileError(
                    f"{self.path} has vectors of dimension {known} for the embedder {embedder!r}, got dimension "
                    f"{vectors.shape[1]}; give another model another name",
                    self.path,
                )

    def _known_keys(self) -> set[str]:
        """The addresses of the replies that were there at first, and of those that were written since."""
        if self._keys is None:
            if not self.path.exists():
                return set()
            with self._database.reading() as connection:
                self._keys = work_tables.reply_keys(connection)
        return self._keys

    def _check_run(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that the run did not begin with.

        Raises:
            ResultsFileError: It was deleted or replaced.
        """
        if not connection.execute("SELECT 1 FROM runs WHERE id = ?", [self._run]).fetchone():
            raise ResultsFileError(
                f"the results file {self.path} was deleted or replaced while the run went on; start it again", self.path
            )
