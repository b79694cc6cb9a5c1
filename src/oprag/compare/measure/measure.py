"""Measuring cells: one at a time, each in a fresh process, without caches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Any

from oprag.compare.db.records import FailedMeasurement
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
from oprag.compare.running.run import Session, session
from oprag.compare.running.sendable import check_sendable
from oprag.compare.running.work_item import WorkItem
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cell
from oprag.errors import MeasuringError, MissingExtraError, OpragError
from oprag.options import check_count

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

    Nothing is shared: each cell has its own process, makes its own indexes, and repeats calls that were made before.
    What was measured before, by this run or an earlier one, is not measured again. Each question is written when it is
    measured, with the calls that it took, so a run can end in any way.

    The first reply to each prompt is stored, as a run stores it. After each cell its answers are made from the stored
    replies, and scored, in this process: so `run` repeats none of these calls.

    The figures:

    - Processor time is a percentage of the cores that the process may use: those of its affinity, or the limit of its
      container (`cpu.max` of cgroup v2, of its own group) if that is lower. The results file has the number of them.
      Limits of outer groups and of cgroup v1 are not read.
    - Memory is the resident memory of the process and its descendants, sampled every 10 ms; descendants
      are looked for less often where that would take more than 1 % of the time. A shorter peak can be missed.
    - Imports, and loading the embedder and the model, take a second or more for each cell and are not measured. The
      work of the method itself between two requests, such as formatting a prompt, is not measured either.
    - Work of a model on another machine, or in a process that was not started from here, is in the wall time alone.
      The work and the memory of a GPU are not measured.

    Ctrl-C kills the process at once, and the next start continues.

    Args:
        experiment: The experiment; its models, embedders and stores are given by name, or can be pickled. One that is
            resolved already is not opened again in this process.
        path: The results file; created if missing.
        warmup: How many times the first question of a cell is answered before anything is measured; unless it is 0,
            the embedder is loaded before an index is made.
        repeats: How many times each question is measured.
        watch: Called with the progress, after each cell.

    Returns:
        A question in a cell counts as answered when all its attempts are measured. One that failed, or whose process
        died, is retried by the next start; the table `failed_measurements` of the file says why.

    Raises:
        ExperimentError: The experiment cannot be run as described, or part of it cannot be sent to another process.
        OptionError: `experiment` is not an `Experiment`, or `warmup` or `repeats` is out of range.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written.
        MissingExtraError: The extra `measure`, or a package that the experiment needs, is not installed.
    """
    check_count("warmup", warmup, optional=False, least=0)
    check_count("repeats", repeats, optional=False)
    if find_spec("psutil") is None:
        raise MissingExtraError("Measuring", "measure")
    resolved = ResolvedExperiment.of(experiment)
    check_sendable(resolved.experiment)
    with session(resolved, path) as going:
        measuring = _Measuring(resolved, going, warmup, repeats)
        try:
            going.outcome = measuring.run(watch)
        except KeyboardInterrupt:
            measuring.look()
        finally:
            measuring.close()
    return measuring.state.report(measuring.spent, going.since, going.outcome)


class _Measuring:
    """Cells, one after the other."""

    def __init__(self, resolved: ResolvedExperiment, going: Session, warmup: int, repeats: int) -> None:
        file = going.file
        self._resolved = resolved
        self._experiment = resolved.experiment
        self._library = Library(resolved, file)
        self._recorder = Recorder(resolved, self._library, file)
        self._answered = file.done(self._experiment.name).answered
        self._file = file
        self._since = going.since
        self._warmup = warmup
        self._repeats = repeats
        self._all = [*resolved.items()]
        self._items: dict[str, list[WorkItem]] = {}
        for item in self._all:
            self._items.setdefault(item.cell_key, []).append(item)
        self._deaths = 0
        self.look()

    def look(self) -> None:
        """Read the progress from the file."""
        self._known = self._file.measured()
        self.spent = self._file.spent(self._experiment.name)
        self.state = RunState(self._all, self._known.done(self._repeats))

    def run(self, watch: Watch | None) -> str:
        """Measure what is missing; return how it ended."""
        failures = 0
        for key in self._items:
            missing = self._missing(key)
            stopped = None
            if missing:
                stopped, failures = self._measure(key, missing, failures)
            # Those of an earlier start as well, which ended before it made them.
            stopped = self._answer(key) or stopped
            if missing and watch is not None:
                watch(self.state.report(self.spent, self._since, stopped or ""))
            if stopped is not None:
                return stopped
        return "complete"

    def _measure(self, key: str, missing: Sequence[WorkItem], failures: int) -> Ended:
        """Measure a cell in a process, which writes the measurements itself."""
        part = CellPart(
            path=str(self._file.path.absolute()),
            run=self._file.run,
            experiment=_narrowed(self._experiment, missing[0].cell),
            items=[(item, self._known.missing(item.place, self._repeats)) for item in missing],
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
        """Make the measured answers of a cell from the stored replies, and score them; return why judges must stop.

        Not in the process that measures, whose memory the embedder of the scores would fill.
        """
        measured = {(cell, question) for cell, question, _ in self._known.attempts}
        items = [item for item in self._items[key] if item.place in measured and item.place not in self._answered]
        ledger = Ledger(self._experiment.limits, self.spent)
        with closing(Replay(self._resolved, self._library, self._file, ledger)) as again:
            outcomes = [*again.run(items)]
        self.spent = ledger.spent
        self._file.put_answers(self._recorder.records(outcomes))
        self._answered |= {outcome.item.place for outcome in outcomes}
        return again.stopped

    def close(self) -> None:
        """Close the stores."""
        self._library.close()

    def _record_death(self, key: str, error: MeasuringError) -> str | None:
        """Record that a process died; return why to stop, if several in a row did."""
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
    """The part of an experiment that a cell needs, so that nothing else fills the memory of its process."""
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
    # Answers are scored in this process.
    return experiment.replace(**parts, metrics=DEFAULT_METRICS)
