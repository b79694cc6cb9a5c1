"""Run an experiment, or continue an earlier run."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec

from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import named_error
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.measured import MeasuredLibrary
from oprag.compare.running.model_caller import ModelCaller
from oprag.compare.running.recorder import Recorder
from oprag.compare.running.report import ProgressCallback, RunReport, RunState, versions
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import Outcome
from oprag.compare.spec.experiment import Experiment
from oprag.errors import ExperimentError, MissingExtraError, ResultsFileError

__all__ = ["Session", "execute", "run", "session"]

# Answers can be rebuilt from stored replies, so they are written in batches.
_FLUSH_SECONDS = 0.5
_FLUSH_ANSWERS = 256
_FLUSH_CHARACTERS = 20_000_000  # of the prompts of unwritten answers, which are in memory


def run(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    retry_failed: bool = False,
    measure: bool = False,
    on_progress: ProgressCallback | None = None,
) -> RunReport:
    """Answer every question in every cell that has no answer in the results file.

    Identical model calls are made once, across cells and runs. Every reply is stored in the file before it is used, so
    the next run can continue after any interruption. The first Ctrl-C waits for calls in flight; a second one exits at
    once.

    With `measure`, questions are answered one at a time, by one model call after another, and the wall time, the CPU
    time (user and system) and the peak resident memory of this process and its children are stored with each answer:

    - Only new answers whose calls were all made for them are measured, so calls are still made once. An answer that
      was stored before, or that uses a stored reply (of another cell or an interrupted run), has no measurement.
    - Each question is embedded and searched for again. Splitting, embedding and indexing the documents, judging and
      scoring are not measured.
    - Memory is sampled every 10 ms, so shorter peaks can be missed. It includes what this process had allocated before,
      such as loaded models and the indexes of earlier cells.
    - A model on another machine, or in a process that this one did not start, only counts as wall time. GPUs are not
      measured.

    Args:
        experiment: The experiment; if it is already resolved, its models are not opened again.
        path: The results file; created if missing.
        retry_failed: Whether to retry questions that failed in earlier runs.
        measure: Whether to measure time, CPU and memory of each answer; `max_concurrency` has no effect then.
        on_progress: Called with the report so far, several times a second.

    Returns:
        The report of the run: its outcome, and the number of answers and failures.

    Raises:
        OptionError: `experiment` is not an `Experiment`.
        ExperimentError: The experiment cannot be run as described.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written; rows already written are
            kept.
        MissingExtraError: A package that the experiment or measuring needs is not installed.
    """
    if measure and find_spec("psutil") is None:
        raise MissingExtraError("Measuring", "compare")
    resolved = ResolvedExperiment.of(experiment)
    return execute(resolved, path, retry_failed=retry_failed, measure=measure, on_progress=on_progress)


def execute(
    resolved: ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    retry_failed: bool = False,
    measure: bool = False,
    on_progress: ProgressCallback | None = None,
    around: AbstractContextManager[Prepare | None] | None = None,
) -> RunReport:
    """Run a resolved experiment; `around` is only entered if there is work left."""
    with session(resolved, path) as current:
        ledger = Ledger(resolved.experiment.limits, current.file.spent(resolved.experiment.name))
        state = RunState([*resolved.items()], current.file.done(resolved.experiment.name), retry_failed=retry_failed)
        if state.waiting:
            with around or nullcontext() as prepare:
                _work(resolved, current, ledger, state, measure=measure, on_progress=on_progress, prepare=prepare)
        else:
            current.outcome = "complete"
    return state.report(ledger.spent, current.since, current.outcome)


Prepare = Callable[[Library, RunState], None]
"""A function that prepares shared work, such as vectors, before the engine starts."""


@dataclass
class Session:
    """A run in progress; the code inside the context manager sets `outcome`."""

    file: ResultsFile
    since: float = field(default_factory=time.perf_counter)
    outcome: str = "interrupted"


@contextmanager
def session(resolved: ResolvedExperiment, path: str | os.PathLike[str]) -> Iterator[Session]:
    """Start a run in its results file, and always record how it ended."""
    current = Session(ResultsFile(path))
    file = current.file
    if resolved.unscored is not None:
        raise ExperimentError(resolved.unscored, resolved.experiment.metrics)
    described = resolved.described()
    file.begin(resolved.experiment.name, described, resolved.cell_records, resolved.question_records, versions())
    try:
        yield current
    except Exception as error:
        current.outcome = named_error(error)
        raise
    finally:
        # If the file cannot be written, for example on a full disk, the first failed write has raised the error.
        with suppress(ResultsFileError):
            file.end(current.outcome)
        file.close()


def _work(
    resolved: ResolvedExperiment,
    current: Session,
    ledger: Ledger,
    state: RunState,
    *,
    measure: bool,
    on_progress: ProgressCallback | None,
    prepare: Prepare | None,
) -> None:
    """Process the waiting items."""
    last_report = time.monotonic()

    def report(*, now: bool = False) -> None:
        nonlocal last_report
        if on_progress is not None and (now or time.monotonic() - last_report > _FLUSH_SECONDS):
            on_progress(state.report(ledger.spent, current.since, engine.stopped or "", caller.running))
            last_report = time.monotonic()

    file = current.file
    library = MeasuredLibrary(resolved, file) if measure else Library(resolved, file)
    caller = ModelCaller(resolved, file, tell=report)
    measured = library.measured if isinstance(library, MeasuredLibrary) else None
    engine = Engine(resolved, library, caller, file, ledger, measured=measured)
    recorder = Recorder(resolved, library, file)
    try:
        with _stopped_by_signals(engine, resolved.stop):
            if prepare is not None:
                prepare(library, state)
            # A measurement cannot be rebuilt from stored replies, so each is written at once.
            for outcomes in _batches(engine.run(state.waiting), size=1 if measure else _FLUSH_ANSWERS):
                records = recorder.records(outcomes)
                file.put_answers(records)
                state.add(records)
                report(now=True)
    finally:
        resolved.stop.set()
        caller.close()
        library.close()
    current.outcome = engine.stopped or "complete"


@contextmanager
def _stopped_by_signals(engine: Engine, stop: threading.Event) -> Iterator[None]:
    """Stop the engine cleanly on Ctrl-C or SIGTERM; a second signal raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(*_: object) -> None:
        if engine.stopped is not None:
            raise KeyboardInterrupt
        engine.stop("interrupted")
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # A handler that was not installed from Python is None and cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _batches(outcomes: Iterable[Outcome], size: int) -> Iterator[list[Outcome]]:
    """Batch outcomes for writing: twice a second, or earlier if there are many."""
    batch: list[Outcome] = []
    characters = 0
    since = time.monotonic()
    for outcome in outcomes:
        batch.append(outcome)
        if outcome.answer is not None:
            characters += sum(call.prompt.length for call in outcome.answer.calls)
        if len(batch) >= size or characters >= _FLUSH_CHARACTERS or time.monotonic() - since > _FLUSH_SECONDS:
            yield batch
            batch, characters, since = [], 0, time.monotonic()
    yield batch
