"""Running an experiment, from where earlier runs left it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import named_error
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.model_caller import ModelCaller
from oprag.compare.running.report import RunReport, RunState, Watch, versions
from oprag.compare.running.work_item import Outcome
from oprag.compare.running.workshop import longest_replies, make_engine, make_library, make_recorder
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.resolved import ResolvedExperiment, as_opened
from oprag.errors import ResultsFileError

__all__ = ["Started", "Stoppable", "batches", "run", "started", "stopped_by_signals"]


class Stoppable(Protocol):
    """Work that can be told to end.

    Attributes:
        stopped: Why it ends; None while it goes on.
    """

    stopped: str | None

    def stop(self, reason: str) -> None:
        """Begin nothing more; may be called between any two steps."""
        ...


@contextmanager
def stopped_by_signals(work: Stoppable, stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and a request to end stop the work cleanly; a second one leaves at once.

    Args:
        work: What is stopped, with the reason "interrupted".
        stop: Set as well.

    Raises:
        KeyboardInterrupt: At the second one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(*_: object) -> None:
        if work.stopped is not None:
            raise KeyboardInterrupt
        work.stop("interrupted")
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # A handler that was not set by Python cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


class Started:
    """A run that goes on.

    Args:
        experiment: What is run; what is opened already is not opened again.
        path: The results file.

    Attributes:
        opened: The experiment with its models and embedders.
        file: The results file.
        outcome: How the run ends; whoever does the work says so.
    """

    def __init__(self, experiment: Experiment | ResolvedExperiment, path: str | os.PathLike[str]) -> None:
        self._since = time.perf_counter()
        self.opened = as_opened(experiment)
        self.file = ResultsFile(path)
        self.outcome = "interrupted"

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.perf_counter() - self._since


@contextmanager
def started(experiment: Experiment | ResolvedExperiment, path: str | os.PathLike[str]) -> Iterator[Started]:
    """Begin a run in its file, and write down there how it ended, whatever happens.

    Args:
        experiment: The experiment.
        path: The results file; made where it is missing.

    Raises:
        ExperimentError: The experiment cannot be run as it is described.
        ResultsFileError: The file is damaged, is another one, or cannot be written.
        MissingExtraError: Something that it needs is not installed.
    """
    run = Started(experiment, path)
    opened, file = run.opened, run.file
    opened.check_scorable()
    file.check()
    file.begin(opened.experiment.name, opened.described(), opened.cell_rows, opened.question_rows, versions())
    try:
        yield run
    except Exception as error:
        run.outcome = named_error(error)
        raise
    finally:
        # Where it cannot be written down, such as on a full disk, what met that first has told it.
        with suppress(ResultsFileError):
            file.end(run.outcome)
        file.close()


# Answers are made again from the replies that are kept, so that writing them down may wait a little.
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

    Equal calls of a model are made once, whatever the cells and runs that need them. What was paid for is in the file
    before anything is done with it, so a run can end in any way; the next one goes on. Ctrl-C waits for the calls that
    are on their way, a second one does not.

    Args:
        experiment: The experiment; where it is opened already, nothing of it is opened again.
        path: The results file; made where it is missing.
        retry_failed: Whether questions that failed before are tried again.
        watch: Told how far it is.

    Raises:
        OptionError: It is no experiment.
        ExperimentError: The experiment cannot be run as it is described.
        ResultsFileError: The file is damaged, is another one, or cannot be written; what was written stays.
        MissingExtraError: Something that it needs is not installed.
    """
    with started(experiment, path) as going:
        opened, file = going.opened, going.file
        name = opened.experiment.name
        meter = Ledger(opened.experiment.limits, file.spent(name))
        tally = RunState(opened, file.done(name), retry_failed=retry_failed)
        going.outcome = _work(opened, file, meter, tally, watch) if tally.waiting else "complete"
    return tally.report(going.outcome, meter.spent, going.seconds)


def _work(opened: ResolvedExperiment, file: ResultsFile, meter: Ledger, tally: RunState, watch: Watch | None) -> str:
    """Do what is waiting, and say how it ended."""
    experiment = opened.experiment
    told = time.monotonic()

    def tell(*, now: bool = False) -> None:
        nonlocal told
        if watch is not None and (now or time.monotonic() - told > _FLUSH_SECONDS):
            watch(tally.progress(meter.spent, caller.running, engine.stopped))
            told = time.monotonic()

    library = make_library(opened, file)
    caller = ModelCaller(
        opened.models,
        experiment.prices,
        longest_replies(experiment),
        file,
        threads=experiment.max_concurrency,
        count_tokens=experiment.token_counter,
        tell=tell,
    )
    engine = make_engine(opened, library, caller, file, meter)
    recorder = make_recorder(opened, library, file)

    def flush(outcomes: list[Outcome]) -> None:
        records = recorder.records(outcomes)
        file.put_answers(records)
        tally.add_all(records)
        tell(now=True)

    try:
        with stopped_by_signals(engine, opened.stop):
            for outcomes in batches(engine.run(tally.waiting)):
                flush(outcomes)
    finally:
        opened.stop.set()
        caller.close()
        library.close()
    return engine.stopped or "complete"


def batches(outcomes: Iterable[Outcome]) -> Iterator[list[Outcome]]:
    """Outcomes as they are written down: a few times a second, or when there are many."""
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
