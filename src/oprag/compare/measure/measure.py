"""Measuring cells one at a time, each in a fresh process and without caches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from typing import Any

from oprag.compare.db.records import FailedMeasurement
from oprag.compare.db.text import error_message
from oprag.compare.measure.cell import MAX_MESSAGE_LENGTH, CellPart, Ended, measure_cell
from oprag.compare.measure.process import check_sendable, in_fresh_process
from oprag.compare.metrics.registry import DEFAULT_METRICS
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.recorder import Recorder
from oprag.compare.running.replay import Replay
from oprag.compare.running.report import ProgressCallback, RunReport, RunState
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.run import Session, session
from oprag.compare.running.work_item import WorkItem
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cell
from oprag.errors import MeasurementError, MissingExtraError, OpragError
from oprag.options import check_count

__all__ = ["measure_cells"]


def measure_cells(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    warmup: int = 1,
    repeats: int = 3,
    on_progress: ProgressCallback | None = None,
) -> RunReport:
    """Measure wall time, CPU and memory of every question in every cell, and write them to the results file.

    Cells share nothing: each has its own process, builds its own indexes, and repeats calls that were made before.
    Existing measurements, from this run or an earlier one, are not repeated. Each question is written with its calls
    as soon as it is measured, so an interrupted run loses at most one question.

    The first reply to each prompt is stored, as in a normal run. After each cell, its answers are built from the stored
    replies and scored in this process, so `run` repeats none of these calls.

    Interpretation:

    - CPU time is a percentage of the cores that the process may use: those of its affinity, or the limit of its
      container (`cpu.max` of its own cgroup v2) if that is lower. The results file has their number. Limits of parent
      cgroups and of cgroup v1 are ignored.
    - Memory is the resident memory of the process and its descendants, sampled every 10 ms; the list of descendants is
      refreshed less often if that would take more than 1 % of the time. Shorter peaks can be missed.
    - Imports, and loading the embedder and the model, take a second or more per cell and are not measured. Neither is
      the work of the method itself between two requests, such as formatting a prompt.
    - Work of a model on another machine, or in a process not started by this one, only counts as wall time. GPU work
      and GPU memory are not measured.

    Ctrl-C kills the process immediately; the next call continues where it stopped.

    Args:
        experiment: The experiment. Its models, embedders and stores must be given by name or be picklable. If it is
            already resolved, it is not resolved again in this process.
        path: The results file; created if missing.
        warmup: Number of unmeasured answers to the first question of each cell; unless it is 0, the embedder is also
            loaded before indexing is measured.
        repeats: Number of measurements of each question.
        on_progress: Called with the progress, after each cell.

    Returns:
        A report in which a question of a cell counts as answered when all its attempts are measured. Failed questions,
        and those whose process died, are retried by the next call; the table `failed_measurements` of the file has the
        errors.

    Raises:
        ExperimentError: The experiment cannot be run as described, or part of it cannot be sent to another process.
        OptionError: `experiment` is not an `Experiment`, or `warmup` or `repeats` is out of range.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written.
        MissingExtraError: The extra `compare`, or a package that the experiment needs, is not installed.
    """
    check_count("warmup", warmup, optional=False, minimum=0)
    check_count("repeats", repeats, optional=False)
    if find_spec("psutil") is None:
        raise MissingExtraError("Measuring", "compare")
    resolved = ResolvedExperiment.of(experiment)
    check_sendable(resolved.experiment)
    with session(resolved, path) as active:
        measuring = _Measuring(resolved, active, warmup, repeats)
        try:
            active.outcome = measuring.run(on_progress)
        except KeyboardInterrupt:
            measuring.refresh()
        finally:
            measuring.close()
    return measuring.state.report(measuring.spent, active.since, active.outcome)


class _Measuring:
    """Measures cells one after another."""

    def __init__(self, resolved: ResolvedExperiment, active: Session, warmup: int, repeats: int) -> None:
        file = active.file
        self._resolved = resolved
        self._experiment = resolved.experiment
        self._library = Library(resolved, file)
        self._recorder = Recorder(resolved, self._library, file)
        self._answered = file.done(self._experiment.name).answered
        self._file = file
        self._since = active.since
        self._warmup = warmup
        self._repeats = repeats
        self._all = [*resolved.items()]
        self._items: dict[str, list[WorkItem]] = {}
        for item in self._all:
            self._items.setdefault(item.cell_key, []).append(item)
        self._deaths = 0
        self.refresh()

    def refresh(self) -> None:
        """Read the progress from the file."""
        self._known = self._file.measured()
        self.spent = self._file.spent(self._experiment.name)
        self.state = RunState(self._all, self._known.done(self._repeats))

    def run(self, on_progress: ProgressCallback | None) -> str:
        """Run the missing measurements; return the outcome."""
        failures = 0
        for key in self._items:
            missing = self._missing(key)
            stopped = None
            if missing:
                stopped, failures = self._measure(key, missing, failures)
            # This includes answers that an earlier, interrupted call measured but did not build.
            stopped = self._answer(key) or stopped
            if missing and on_progress is not None:
                on_progress(self.state.report(self.spent, self._since, stopped or ""))
            if stopped is not None:
                return stopped
        return "complete"

    def _measure(self, key: str, missing: Sequence[WorkItem], failures: int) -> Ended:
        """Measure a cell in a new process, which writes the measurements."""
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
        except MeasurementError as error:
            if isinstance(error.__cause__, OpragError):
                raise error.__cause__ from error
            return Ended(self._record_death(key, error), failures)
        self._deaths = 0
        self.refresh()
        return ended

    def _answer(self, key: str) -> str | None:
        """Build the measured answers of a cell from stored replies and score them; return why judges must stop, if so.

        This runs outside the measured process, whose memory the scoring embedder would fill.
        """
        measured = {(cell, question) for cell, question, _ in self._known.attempts}
        items = [item for item in self._items[key] if item.place in measured and item.place not in self._answered]
        ledger = Ledger(self._experiment.limits, self.spent)
        with closing(Replay(self._resolved, self._library, self._file, ledger)) as replay:
            outcomes = [*replay.run(items)]
        self.spent = ledger.spent
        self._file.put_answers(self._recorder.records(outcomes))
        self._answered |= {outcome.item.place for outcome in outcomes}
        return replay.stopped

    def close(self) -> None:
        """Close the stores."""
        self._library.close()

    def _record_death(self, key: str, error: MeasurementError) -> str | None:
        """Record that a process died; return the reason to stop if several consecutive ones did."""
        self.refresh()
        message = error_message(error, MAX_MESSAGE_LENGTH)
        self._file.put_failed_measurements(
            [FailedMeasurement(*item.place, "MeasurementError", message) for item in self._missing(key)]
        )
        self.refresh()
        self._deaths += 1
        if self._deaths < self._experiment.give_up_after:
            return None
        return f"the last {self._deaths} processes died; the last error: {message}"

    def _missing(self, key: str) -> list[WorkItem]:
        return [item for item in self._items[key] if self._known.missing(item.place, self._repeats)]


def _narrowed(experiment: Experiment, cell: Cell) -> Experiment:
    """Restrict an experiment to what a cell needs, so that nothing else uses memory in its process."""
    needed: dict[str, Any] = {
        "data": cell.data,
        "models": cell.model,
        "prices": cell.model,
        "stores": cell.store,
        **({"embedders": cell.embedder} if cell.embedder else {}),
        "judges": None,
    }
    parts: dict[str, Any] = {
        part: {name: one for name, one in getattr(experiment, part).items() if name == used}
        for part, used in needed.items()
    }
    # Answers are scored in the parent process.
    return experiment.replace(**parts, metrics=DEFAULT_METRICS)
