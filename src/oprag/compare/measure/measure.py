"""Measuring cells: one at a time, each in a fresh process, without caches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from oprag.compare.db.records import FailedMeasurement
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import error_message
from oprag.compare.measure.cell import LONGEST, CellPart, Ended, measure_cell
from oprag.compare.measure.process import in_fresh_process
from oprag.compare.metrics.registry import DEFAULT_METRICS
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.recorder import Recorder
from oprag.compare.running.replay import Replay
from oprag.compare.running.report import RunReport, RunState, Watch
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.run import session
from oprag.compare.running.sendable import check_sendable
from oprag.compare.running.work_item import WorkItem
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cell
from oprag.errors import MeasuringError, MissingExtraError, OpragError
from oprag.options import check_count
from oprag.tokens import approximate_tokens

__all__ = ["measure_cells"]


def measure_cells(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    warmup: int = 1,
    repeats: int = 3,
    watch: Watch | None = None,
) -> RunReport:
    """Measure wall time, processor and memory of every question in every cell, and write them to the results file.

    Nothing is shared: each cell has a process of its own, makes its own indexes, and asks the model again for what was
    asked before. What was measured before, by this run or an earlier one, is not measured again. Each question is
    written down when it is measured, with the calls that it took, so a run can end in any way.

    The first reply to each prompt is kept, as a run keeps it. After each cell its answers are made from the replies
    that are kept, and scored, in this process: so `run` asks nothing again that was measured.

    What the figures are:

    - Processor time is a percentage of the cores that the process may use: those of its affinity, or the limit of its
      container (`cpu.max` of cgroup v2, of its own group) if that is lower. The results file has the number of them.
      Limits of outer groups and of cgroup v1 are not read.
    - Memory is the resident memory of the process and its descendants, sampled every 10 ms; descendants
      are looked for less often where that would take more than 1 % of the time. A shorter peak can be missed.
    - A process begins with imports, and with loading the embedder and the model of its cell: a second or more for each
      cell, which is in no figure. Nor is the work of the method itself between two requests, such as putting a prompt
      together.
    - What a model does on another machine, or in a process that was not started from here, is in the wall time alone,
      and what a GPU does and holds is not measured at all.

    Ctrl-C kills the process at once, and the next start goes on.

    Args:
        experiment: The experiment; its models, embedders and stores are given by their names, or can be pickled. Where
            it is opened already, nothing of it is opened again in this process.
        path: The results file; made where it is missing.
        warmup: How many times the first question of a cell is answered before anything is measured; unless it is 0,
            the embedder is loaded before an index is made.
        repeats: How many times each question is measured.
        watch: Told how far it is, after each cell.

    Returns:
        A question in a cell counts as answered when all its attempts are measured. One that failed, or whose process
        died, is tried again by the next start; the file says why, in `failed_measurements`.

    Raises:
        ExperimentError: The experiment cannot be run as it is described, or holds something that cannot be sent to
            another process.
        OptionError: `warmup` or `repeats` is out of range.
        ResultsFileError: The file is damaged, is another one, or cannot be written.
        MissingExtraError: The extra `measure`, or something that the experiment needs, is not installed.
    """
    check_count("warmup", warmup, optional=False, least=0)
    check_count("repeats", repeats, optional=False)
    if find_spec("psutil") is None:
        raise MissingExtraError("Measuring", "measure")
    resolved = ResolvedExperiment.of(experiment)
    check_sendable(resolved.experiment)
    with session(resolved, path) as going:
        measuring = _Measuring(resolved, going.file, warmup, repeats)
        try:
            going.outcome = measuring.run(watch)
        except KeyboardInterrupt:
            measuring.look()
        finally:
            measuring.close()
    return measuring.state.report(going.outcome, measuring.spent, going.seconds)


class _Measuring:
    """Cells, one after the other."""

    def __init__(self, resolved: ResolvedExperiment, file: ResultsFile, warmup: int, repeats: int) -> None:
        self._resolved = resolved
        self._experiment = resolved.experiment
        self._library = Library(resolved, file)
        self._recorder = Recorder(resolved, self._library, file)
        self._answered = file.done(self._experiment.name).answered
        self._file = file
        self._warmup = warmup
        self._repeats = repeats
        self._all = [*resolved.items()]
        self._items: dict[str, list[WorkItem]] = {}
        for item in self._all:
            self._items.setdefault(item.cell_key, []).append(item)
        self._deaths = 0
        self.look()

    def look(self) -> None:
        """Read how far it is."""
        self._known = self._file.measured()
        self.spent = self._file.spent(self._experiment.name)
        self.state = RunState(self._all, self._known.done(self._repeats))

    def run(self, watch: Watch | None) -> str:
        """Measure what is missing; how it ended."""
        failures = 0
        for key in self._items:
            missing = self._missing(key)
            if not missing:
                # Its process may have been the last thing that an earlier start did.
                stopped = self._answer(key)
                if stopped is not None:
                    return stopped
                continue
            stopped, failures = self._measure(key, missing, failures)
            stopped = self._answer(key) or stopped
            if watch is not None:
                watch(self.state.progress(self.spent, stopping=stopped))
            if stopped is not None:
                return stopped
        return "complete"

    def _measure(self, key: str, missing: Sequence[WorkItem], failures: int) -> Ended:
        """Measure a cell; the process writes down what it takes."""
        cell = missing[0].cell
        part = CellPart(
            path=str(self._file.path.absolute()),
            run=self._file.run,
            experiment=_narrowed(self._experiment, cell),
            cell=_sendable(cell),
            key=key,
            questions=[
                (item.question, item.question_key, self._known.missing(item.place, self._repeats)) for item in missing
            ],
            indexed={item.question.documents for item in self._items[key] if item.place in self._known.indexed},
            warmup=self._warmup,
            spent=self.spent,
            failures=failures,
        )
        try:
            ended = in_fresh_process(measure_cell, part)
        except MeasuringError as error:
            if isinstance(error.__cause__, OpragError):
                raise error.__cause__ from error
            return Ended(self._record_death(key, error), failures)
        self._deaths = 0
        self.look()
        return ended

    def _answer(self, key: str) -> str | None:
        """Make the answers of a cell that were measured from the replies that are kept, and score them, as a run would.

        Not in the process that measures, whose memory the embedder of the scores would fill.

        Returns:
            Why no judge may be asked any more; None where it may.
        """
        measured = {(cell, question) for cell, question, _ in self._known.attempts}
        items = [item for item in self._items[key] if item.place in measured and item.place not in self._answered]
        # Another one than the run's, which would not look again for replies that another process has written.
        ledger = Ledger(self._experiment.limits, self.spent)
        with closing(ResultsFile(self._file.path, self._file.run)) as replies:
            again = Replay(self._resolved, self._library, replies, ledger)
            with closing(again):
                outcomes = [*again.run(items)]
        self.spent = ledger.spent
        self._file.put_answers(self._recorder.records(outcomes))
        self._answered |= {outcome.item.place for outcome in outcomes}
        return again.stopped

    def close(self) -> None:
        """Give back what stores hold."""
        self._library.close()

    def _record_death(self, key: str, error: MeasuringError) -> str | None:
        """Write down that a process died, and say whether to go on: what killed it may kill the next one, or not."""
        self.look()
        message = error_message(error, LONGEST)
        self._file.put_failed_measurements(
            [FailedMeasurement(*item.place, "MeasuringError", message) for item in self._missing(key)]
        )
        self.look()
        self._deaths += 1
        if self._deaths < self._experiment.give_up_after:
            return None
        return f"the last {self._deaths} processes died, the last one thus: {message}"

    def _missing(self, key: str) -> list[WorkItem]:
        return [item for item in self._items[key] if self._known.missing(item.place, self._repeats)]


def _narrowed(experiment: Experiment, cell: Cell) -> Experiment:
    """The experiment with what a cell needs, so that no memory of its process is filled with more."""
    needed: dict[str, Any] = {
        "data": cell.data,
        "models": cell.model,
        "prices": cell.model,
        "stores": cell.store,
        **({"embedders": cell.embedder} if cell.embedder else {}),
        "judges": None,
    }
    parts: dict[str, Any] = {
        part: {name: one for name, one in getattr(experiment, part).items() if name == wanted}
        for part, wanted in needed.items()
    }
    # Answers are scored here.
    return experiment.replace(**parts, metrics=DEFAULT_METRICS)


def _sendable(cell: Cell) -> Cell:
    """A cell without its token counter, which may be no plain data; the experiment says which it is."""
    return replace(cell, context_options=replace(cell.context_options, count_tokens=approximate_tokens))
