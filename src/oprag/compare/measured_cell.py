"""Measuring one cell, in a process that does nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from oprag.compare.calling import Tariff
from oprag.compare.cell import Cell
from oprag.compare.context_library import Library, search_of
from oprag.compare.data.data_set import Question
from oprag.compare.db.cache import NoCache
from oprag.compare.db.records import FailedMeasurement, Measurement, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import error_message, named_error
from oprag.compare.experiment import Experiment
from oprag.compare.grid import Cells
from oprag.compare.measured_answers import MeasuredAnswers, Stopped, row_of
from oprag.compare.measuring import measure
from oprag.compare.money import Meter
from oprag.compare.opened import Opened
from oprag.compare.work import Unit
from oprag.compare.workshop import longest_replies, make_library
from oprag.errors import MissingExtraError, ResultsFileError
from oprag.steps import Limit
from oprag.tokens import approximate_tokens

__all__ = ["CellPart", "Ended", "measure_cell", "sent"]

_LONGEST = 2_000  # characters of an error message


class CellPart(NamedTuple):
    """What a process is told to measure.

    Attributes:
        path: The results file.
        run: The number of the run.
        experiment: The experiment, with what the cell needs.
        cell: The cell, as `sent` gives it.
        key: The key of the cell.
        questions: The questions with their keys, and the attempts that are missing.
        indexed: The documents whose index was measured before.
        warmup: How many times the first question is answered before anything is measured.
        spent: What was spent before.
        failures: How many calls in a row have failed.
    """

    path: str
    run: int
    experiment: Experiment
    cell: Cell
    key: str
    questions: Sequence[tuple[Question, str, Sequence[int]]]
    indexed: AbstractSet[tuple[str, ...]]
    warmup: int
    spent: Spent
    failures: int


class Ended(NamedTuple):
    """How measuring a cell ended.

    Attributes:
        stopped: Why nothing more may be measured; None where it may.
        failures: How many calls in a row have failed.
    """

    stopped: str | None
    failures: int


def sent(cell: Cell) -> Cell:
    """A cell without its token counter, which may be no plain data; the experiment says which it is."""
    return replace(cell, context_options=replace(cell.context_options, count_tokens=approximate_tokens))


def measure_cell(part: CellPart) -> Ended:
    """Measure all that is missing of a cell, and write down each question when it is done.

    Raises:
        ExperimentError: Something that the experiment names is not here.
        ResultsFileError: The file cannot be written.
        MissingExtraError: Something that the experiment needs is not installed here.
    """
    measuring = _MeasuringCell(part)
    try:
        measuring.warm_embedder()
        # Garbage is collected before each phase; what is loaded by now stays, and need not be searched each time.
        gc.freeze()
        for question, key, attempts in part.questions:
            measuring.measure(Unit(measuring.cell, question, part.key, key), attempts)
    except Stopped as stopped:
        return Ended(stopped.args[0], measuring.failures)
    finally:
        measuring.close()
    return Ended(None, measuring.failures)


class _MeasuringCell:
    """One cell at work."""

    def __init__(self, part: CellPart) -> None:
        experiment = part.experiment
        counter = experiment.fixed.count_tokens
        self.cell = replace(part.cell, context_options=replace(part.cell.context_options, count_tokens=counter))
        self._part = part
        self._file = ResultsFile(part.path, part.run)
        opened = Opened(experiment)
        # It is the only one here, and its grid may be large.
        opened.cells = Cells((self.cell,), 1, {}, 0)
        self._library: Library = make_library(opened, NoCache(), together=False)
        self._embedders = opened.embedders
        name = self.cell.model or ""
        self._meter = Meter(experiment.limits, part.spent)
        self._answers = MeasuredAnswers(
            self._library,
            None if self.cell.model is None else opened.models[self.cell.model],
            Tariff(experiment.prices.get(name), longest_replies(experiment).get(name), counter),
            self._meter,
            limit=Limit(experiment.max_concurrency),
            failures=part.failures,
        )
        self._indexed: set[tuple[str, ...]] = set()
        self._warm = False

    @property
    def failures(self) -> int:
        """How many calls in a row have failed."""
        return self._answers.failures

    def warm_embedder(self) -> None:
        """Load the tokenizer and the embedder, so that the first index is not charged with that."""
        if not self._part.warmup or not self.cell.embedder:
            return
        embedder = self._embedders[self.cell.embedder]
        with self._recorded(None):
            embedder.count_tokens("warm-up")
            if self.cell.search != "bm25" or self.cell.context_options.needs_vectors:
                embedder.embed_documents(["warm-up"])

    def measure(self, unit: Unit, attempts: Sequence[int]) -> None:
        """Measure a question, and write down what it takes; or why it cannot be answered.

        Raises:
            Stopped: No more calls may be made.
        """
        with self._recorded(unit) as taken:
            if self.cell.embedder and unit.question.documents not in self._indexed:
                taken.extend(self._make_index(unit))
            if not self._warm:
                for _ in range(self._part.warmup):
                    self._answers.answer(unit)
                self._warm = True
            for attempt in attempts:
                taken.extend(row_of(unit, attempt, *phase) for phase in self._answers.answer(unit).items())

    def close(self) -> None:
        """Give back what stores hold."""
        self._library.close()
        self._file.close()

    @contextmanager
    def _recorded(self, unit: Unit | None) -> Iterator[list[Measurement]]:
        """Write down what comes of a question, and what that has spent, however it ends."""
        measurements: list[Measurement] = []
        before = self._meter.spent
        try:
            yield measurements
        except (Stopped, MissingExtraError, ResultsFileError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to this question, and is written down
            # The error of the model's client says more than that of the method which it ended.
            kind = type(error.__cause__ or error).__name__
            if unit is not None:
                failure = FailedMeasurement(unit.cell_key, unit.question_key, kind, error_message(error, _LONGEST))
                self._file.put_failed_measurements([failure])
        finally:
            spent = self._meter.spent.minus(before)
            self._file.put_measurements(self._part.key, measurements, spent, self._answers.take_replies())
        if self.failures >= self._part.experiment.give_up_after:
            told = named_error(self._answers.last_error, _LONGEST)
            raise Stopped(f"the last {self.failures} calls failed, the last one with {told}")

    def _make_index(self, unit: Unit) -> list[Measurement]:
        """Make the index that the question is searched for in; what that took, unless it was measured before."""
        documents = unit.question.documents
        try:
            taken = measure(lambda: self._library.index(self.cell, documents).make_ready(search_of(self.cell)))
        except Exception:
            # Half of an index would make the next try look cheap.
            self._library.close()
            raise
        self._indexed.add(documents)
        return [] if documents in self._part.indexed else [row_of(unit, 1, "indexing", [taken])]
