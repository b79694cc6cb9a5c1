"""Running an experiment, from where earlier runs left it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import named_error
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import ModelCaller
from oprag.compare.running.recorder import Recorder
from oprag.compare.running.report import RunReport, RunState, Watch, versions
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import Outcome
from oprag.compare.spec.experiment import Experiment
from oprag.errors import ExperimentError, ResultsFileError

__all__ = ["Session", "execute", "run", "session"]

# Answers can be made again from the stored replies, so writing them may wait a little.
_FLUSH_SECONDS = 0.5
_FLUSH_ANSWERS = 256
_FLUSH_CHARACTERS = 20_000_000  # of the prompts of answers, which are held until then


def run(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    retry_failed: bool = False,
    watch: Watch | None = None,
) -> RunReport:
    """Answer every question in every cell that has no answer in the results file.

    Identical model calls are made once, across cells and runs. Every reply is written to the file before it is used,
    so a run can end in any way and the next one continues. The first Ctrl-C waits for the calls in flight, a second
    one does not.

    Args:
        experiment: The experiment; one that is resolved already is not opened again.
        path: The results file; created if missing.
        retry_failed: Whether to retry questions that failed in earlier runs.
        watch: Called with what the run has done so far, a few times a second.

    Returns:
        What the run did: why it ended, what was answered and what failed.

    Raises:
        OptionError: `experiment` is not an `Experiment`.
        ExperimentError: The experiment cannot be run as described.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written; what was written stays.
        MissingExtraError: A package that the experiment needs is not installed.
    """
    return execute(ResolvedExperiment.of(experiment), path, retry_failed=retry_failed, watch=watch)


def execute(
    resolved: ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    retry_failed: bool = False,
    watch: Watch | None = None,
    around: AbstractContextManager[Prepare | None] | None = None,
) -> RunReport:
    """Do the work of `run`; `around` is entered only if something is left to do."""
    with session(resolved, path) as going:
        ledger = Ledger(resolved.experiment.limits, going.file.spent(resolved.experiment.name))
        state = RunState([*resolved.items()], going.file.done(resolved.experiment.name), retry_failed=retry_failed)
        if state.waiting:
            with around or nullcontext() as prepare:
                _work(resolved, going, ledger, state, watch=watch, prepare=prepare)
        else:
            going.outcome = "complete"
    return state.report(ledger.spent, going.since, going.outcome)


Prepare = Callable[[Library, RunState], None]
"""Prepares what all items need, before the engine starts."""


@dataclass
class Session:
    """A run in progress; its `outcome` is set by the code that does the work."""

    file: ResultsFile
    since: float = field(default_factory=time.perf_counter)
    outcome: str = "interrupted"


@contextmanager
def session(resolved: ResolvedExperiment, path: str | os.PathLike[str]) -> Iterator[Session]:
    """Begin a run in its file, and record how it ended, whatever happens."""
    going = Session(ResultsFile(path))
    file = going.file
    if resolved.unscored is not None:
        raise ExperimentError(resolved.unscored, resolved.experiment.metrics)
    file.check()
    described = resolved.described()
    file.begin(resolved.experiment.name, described, resolved.cell_records, resolved.question_records, versions())
    try:
        yield going
    except Exception as error:
        going.outcome = named_error(error)
        raise
    finally:
        # If it cannot be written, on a full disk say, the first write that failed has raised that.
        with suppress(ResultsFileError):
            file.end(going.outcome)
        file.close()


def _work(
    resolved: ResolvedExperiment,
    going: Session,
    ledger: Ledger,
    state: RunState,
    *,
    watch: Watch | None,
    prepare: Prepare | None,
) -> None:
    """Do the waiting items."""
    told = time.monotonic()

    def tell(*, now: bool = False) -> None:
        nonlocal told
        if watch is not None and (now or time.monotonic() - told > _FLUSH_SECONDS):
            watch(state.report(ledger.spent, going.since, engine.stopped or "", caller.running))
            told = time.monotonic()

    file = going.file
    library = Library(resolved, file)
    caller = ModelCaller(resolved, file, tell=tell)
    engine = Engine(resolved, library, caller, file, ledger)
    recorder = Recorder(resolved, library, file)
    try:
        with _stopped_by_signals(engine, resolved.stop):
            if prepare is not None:
                prepare(library, state)
            for outcomes in _batches(engine.run(state.waiting)):
                records = recorder.records(outcomes)
                file.put_answers(records)
                state.add(records)
                tell(now=True)
    finally:
        resolved.stop.set()
        caller.close()
        library.close()
    going.outcome = engine.stopped or "complete"


@contextmanager
def _stopped_by_signals(engine: Engine, stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the engine cleanly; a second one raises KeyboardInterrupt."""
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
            # A handler that was not set by Python cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _batches(outcomes: Iterable[Outcome]) -> Iterator[list[Outcome]]:
    """Group outcomes for writing: a few times a second, or when there are many."""
    batch: list[Outcome] = []
    characters = 0
    since = time.monotonic()
    for outcome in outcomes:
        batch.append(outcome)
        if outcome.answer is not None:
            characters += sum(call.prompt.length for call in outcome.answer.calls)
        if len(batch) >= _FLUSH_ANSWERS or characters >= _FLUSH_CHARACTERS or time.monotonic() - since > _FLUSH_SECONDS:
            yield batch
            batch, characters, since = [], 0, time.monotonic()
    yield batch
