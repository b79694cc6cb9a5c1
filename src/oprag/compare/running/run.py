"""Run an experiment, or continue an earlier run."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from oprag.compare.db.records import AnswerRecord, Spent, named_error
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.experiment import Experiment
from oprag.compare.meter import usable_cores
from oprag.compare.running.engine import Engine, Outcome
from oprag.compare.running.prepared import PreparedExperiment, WorkItem
from oprag.compare.running.recorder import Recorder
from oprag.compare.running.retrieval import Retrieval
from oprag.compare.spending import Spending
from oprag.errors import ExperimentError, MissingExtraError, OptionError, ResultsFileError

__all__ = ["ProgressCallback", "RunReport", "RunState", "run"]

# Answers can be rebuilt from stored replies, so they are written in batches.
_FLUSH_SECONDS = 0.5
_FLUSH_ANSWERS = 64

_PACKAGES = ("oprag", "numpy", "langchain-core", "llama-index-core", "wordllama", "bm25s", "sentence-transformers")


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The report of a run, final or in progress.

    Attributes:
        outcome: "complete", or why the run stopped or is stopping early. Empty while the run continues.
        total: Number of answers to generate: one for each question of each cell.
        answered: Number of answers that exist, including those of earlier runs.
        failed: Number of answers that failed, by the class of the error.
        remaining: Number of answers that were not tried.
        spent: Calls, tokens and money spent by all runs.
        running: Number of calls in flight.
        seconds: The duration of this run, in seconds.
    """

    outcome: str
    total: int
    answered: int
    failed: dict[str, int]
    remaining: int
    spent: Spent
    running: int
    seconds: float

    @property
    def done(self) -> int:
        """Number of answers that exist or failed, including those of earlier runs."""
        return self.total - self.remaining

    @property
    def complete(self) -> bool:
        """Whether every question in every cell has an answer."""
        return self.answered == self.total


ProgressCallback = Callable[[RunReport], None]
"""A function that is called with the report so far, several times a second."""


class RunState:
    """The answered, failed and waiting items of an experiment, given those found in the results file."""

    def __init__(
        self, items: Sequence[WorkItem], found: Mapping[tuple[str, str], str | None], *, retry_failed: bool = False
    ) -> None:
        failed = Counter(error for item in items if (error := found.get(item.place)) is not None)
        self.failed_before = failed.total()
        self.failed = Counter[str]() if retry_failed else failed
        self.waiting = [
            item for item in items if item.place not in found or (retry_failed and found[item.place] is not None)
        ]
        self.total = len(items)
        self.answered = self.total - len(self.waiting) - self.failed.total()
        self._since = time.perf_counter()

    def add(self, records: Iterable[AnswerRecord]) -> None:
        """Count new answers and failures."""
        for record in records:
            if record.error is None:
                self.answered += 1
            else:
                self.failed[record.error] += 1

    def report(self, spent: Spent, outcome: str, running: int = 0) -> RunReport:
        """The report of the run so far."""
        return RunReport(
            outcome=outcome,
            total=self.total,
            answered=self.answered,
            failed=dict(self.failed),
            remaining=self.total - self.answered - self.failed.total(),
            spent=spent,
            running=running,
            seconds=time.perf_counter() - self._since,
        )


def run(
    experiment: Experiment | PreparedExperiment,
    path: str | os.PathLike[str],
    *,
    retry_failed: bool = False,
    measure: bool = False,
    ray: str | None = None,
    on_progress: ProgressCallback | None = None,
) -> RunReport:
    """Answer every question in every cell that has no answer in the results file.

    Identical model calls are made once, across cells and runs. Every reply is stored in the file before it is used, so
    the next run can continue after any interruption. The first Ctrl-C waits for calls in flight; a second one exits at
    once.

    With `measure`, questions are answered one at a time, by one model call after another, and the wall time, the CPU
    time (user and system) and the peak resident memory of this process are stored with each answer:

    - Only new answers whose calls were all made for them are measured, so calls are still made once. An answer that
      was stored before, or that uses a stored reply, has no measurement.
    - Each question is embedded and searched for again. Splitting, embedding and indexing the documents, judging and
      scoring are not measured.
    - Memory is sampled every 10 ms. It includes what was allocated before, such as loaded models and earlier indexes.
    - A model in another process or on another machine only counts as wall time. GPUs are not measured.

    With `ray`, models are called by workers of a Ray cluster, one for each CPU, and everything else runs here: only
    this process reads and writes the results file. If a worker dies, it is started again with its calls in flight; a
    call fails if its worker dies six times. Every machine needs the same version of this package, with the extras and
    model files that the models use, and models must be importable there.

    Args:
        experiment: The experiment; if it is already prepared, its models are not opened again.
        path: The results file; created if missing.
        retry_failed: Whether to retry questions that failed in earlier runs.
        measure: Whether to measure time, CPU and memory of each answer; `max_concurrency` has no effect then.
        ray: The address of a Ray cluster: HOST:PORT, "auto" for that of this process or machine, or "local" to start
            one on this machine that ends with the run. None calls models in threads of this process.
        on_progress: Called with the report so far, several times a second.

    Returns:
        The report of the run: its outcome, and the number of answers and failures.

    Raises:
        OptionError: `experiment` is not an `Experiment`, or both `measure` and `ray` are set.
        ExperimentError: The experiment cannot be run as described, or the cluster cannot be used.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written; rows already written are
            kept.
        MissingExtraError: A package that the experiment or measuring needs is not installed.
    """
    if measure and find_spec("psutil") is None:
        raise MissingExtraError("Measuring", "compare")
    prepared = PreparedExperiment.of(experiment)
    if ray is not None:
        if measure:
            raise OptionError("answers are measured in this process, got measure and ray; remove one of them", ray)
        from oprag.compare.ray import on_ray

        with on_ray(prepared, ray) as there:
            return run(there, path, retry_failed=retry_failed, on_progress=on_progress)
    name = prepared.experiment.name
    file = ResultsFile(path)
    if prepared.unscored is not None:
        raise ExperimentError(prepared.unscored, prepared.experiment.metrics)
    file.begin(name, prepared.described(), prepared.cell_records, prepared.question_records, _versions(measure=measure))
    outcome = "interrupted"
    try:
        spending = Spending(prepared.experiment, prepared.experiment.limits, file.spent(name))
        state = RunState([*prepared.items()], file.outcomes(name), retry_failed=retry_failed)
        outcome = _work(prepared, file, spending, state, measure=measure, on_progress=on_progress)
    except Exception as error:
        outcome = named_error(error)
        raise
    finally:
        # If the file cannot be written, for example on a full disk, the first failed write has raised the error.
        with suppress(ResultsFileError):
            file.end(outcome)
        file.close()
    return state.report(spending.spent, outcome)


def _work(
    prepared: PreparedExperiment,
    file: ResultsFile,
    spending: Spending,
    state: RunState,
    *,
    measure: bool,
    on_progress: ProgressCallback | None,
) -> str:
    """Process the waiting items; return the outcome."""
    if not state.waiting:
        return "complete"
    last_report = time.monotonic()

    def report(*, now: bool = False) -> None:
        nonlocal last_report
        if on_progress is not None and (now or time.monotonic() - last_report > _FLUSH_SECONDS):
            on_progress(state.report(spending.spent, engine.stopped or "", engine.running))
            last_report = time.monotonic()

    retrieval = Retrieval(prepared, file, measures=measure)
    recorder = Recorder(prepared, retrieval, file)
    with closing(Engine(prepared, retrieval, file, spending, report)) as engine, _stopped_by_signals(engine):
        # A measurement cannot be rebuilt from stored replies, so each is written at once.
        for outcomes in _batches(engine.run(state.waiting), size=1 if measure else _FLUSH_ANSWERS):
            records = recorder.records(outcomes)
            file.put_answers(records)
            state.add(records)
            report(now=True)
    return engine.stopped or "complete"


@contextmanager
def _stopped_by_signals(engine: Engine) -> Iterator[None]:
    """Stop the engine cleanly on Ctrl-C or SIGTERM; a second signal raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(*_: object) -> None:
        if engine.stopped is not None:
            raise KeyboardInterrupt
        engine.stop("interrupted")

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
    since = time.monotonic()
    for outcome in outcomes:
        batch.append(outcome)
        if len(batch) >= size or time.monotonic() - since > _FLUSH_SECONDS:
            yield batch
            batch, since = [], time.monotonic()
    yield batch


def _versions(*, measure: bool) -> dict[str, str]:
    """The package versions and system of this process; if it measures, the CPU cores that it may use."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    if measure:
        found["cores"] = f"{usable_cores():g}"
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
