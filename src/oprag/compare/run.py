"""Running an experiment, from where earlier runs left it."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from oprag.compare.answer_tables import Found, Spent
from oprag.compare.calling import ModelCaller
from oprag.compare.engine import Allowance, Caller, Engine
from oprag.compare.experiment import Experiment
from oprag.compare.library import Library
from oprag.compare.money import Meter
from oprag.compare.opened import Opened
from oprag.compare.progress import Progress, Watch
from oprag.compare.recording import Recorder
from oprag.compare.records import AnswerRecord, Keeper
from oprag.compare.results_file import ResultsFile
from oprag.compare.scoring import load_metrics
from oprag.compare.stores import open_store
from oprag.compare.vector_source import VectorSource
from oprag.compare.work import Outcome, Unit
from oprag.errors import ResultsFileError

__all__ = [
    "Report",
    "Tally",
    "batches",
    "longest_replies",
    "make_engine",
    "make_library",
    "make_recorder",
    "run",
    "versions",
]

# Answers are made again from the replies that are kept, so that writing them down may wait a little.
_FLUSH_SECONDS = 0.5
_FLUSH_ANSWERS = 256
_FLUSH_CHARACTERS = 20_000_000  # of the prompts of answers, which are held until then
_PACKAGES = ("oprag", "numpy", "langchain-core", "llama-index-core", "wordllama", "bm25s", "sentence-transformers")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run did.

    Attributes:
        outcome: "complete", or why it ended before.
        total: How many questions in cells the experiment has.
        answered: How many of them have an answer.
        failed: How many failed, by the class of the error.
        left: How many were not tried.
        broken: How many answers of earlier runs did not hold, since a reply was missing or changed; they were made
            again.
        spent: What all runs have spent on models.
        seconds: How long this run took.
    """

    outcome: str
    total: int
    answered: int
    failed: dict[str, int]
    left: int
    broken: int
    spent: Spent
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every question in every cell has an answer."""
        return self.answered == self.total


def run(
    experiment: Experiment,
    path: str | os.PathLike[str],
    *,
    retry_failed: bool = False,
    watch: Watch | None = None,
) -> Report:
    """Answer every question in every cell that has no answer in the results file.

    Equal calls of a model are made once, whatever the cells and runs that need them. What was paid for is in the file
    before anything is done with it, so a run can end in any way; the next one goes on. Ctrl-C waits for the calls that
    are on their way, a second one does not.

    Args:
        experiment: The experiment.
        path: The results file; made where it is missing.
        retry_failed: Whether questions that failed before are tried again.
        watch: Told how far it is.

    Raises:
        ExperimentError: The experiment cannot be run as it is described.
        ResultsFileError: The file is damaged, is another one, or cannot be written; what was written stays.
        MissingExtraError: Something that it needs is not installed.
    """
    started = time.perf_counter()
    opened = Opened(experiment)
    file = ResultsFile(path)
    file.check()
    file.begin(experiment.name, opened.described(), opened.cell_rows, opened.question_rows, versions())
    found = file.found(experiment.name)
    meter = Meter(experiment.limits, file.spent(experiment.name))
    tally = Tally(opened, found, retry_failed=retry_failed)
    outcome = "interrupted"
    try:
        outcome = _work(opened, file, meter, tally, watch) if tally.waiting else "complete"
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}"
        raise
    finally:
        _end(file, outcome)
    return Report(
        outcome=outcome,
        total=tally.total,
        answered=tally.answered,
        failed=dict(Counter(tally.failed.values())),
        left=tally.total - tally.answered - len(tally.failed),
        broken=found.broken,
        spent=meter.spent,
        seconds=time.perf_counter() - started,
    )


class Tally:
    """What is done and what is waiting."""

    def __init__(self, opened: Opened, found: Found, *, retry_failed: bool) -> None:
        self.failed = {} if retry_failed else dict(found.failed)
        self.waiting: list[Unit] = []
        self.left: Counter[str] = Counter()
        self.total = 0
        for unit in opened.units():
            self.total += 1
            place = unit.cell_key, unit.question_key
            if place not in found.answered and place not in self.failed:
                self.waiting.append(unit)
                self.left[unit.cell_key] += 1
        self.answered = self.total - len(self.waiting) - len(self.failed)
        self.all_cells = len(opened.cells.cells)

    def add_all(self, records: Iterable[AnswerRecord]) -> None:
        """Count what was done."""
        for record in records:
            if record.status == "failed":
                self.failed[record.cell, record.question] = record.error or ""
            else:
                self.answered += 1
            self.left[record.cell] -= 1

    def progress(self, spent: Spent, running: int, stopping: str | None) -> Progress:
        """How far it is."""
        return Progress(
            done=self.answered + len(self.failed),
            total=self.total,
            failed=len(self.failed),
            cells=self.all_cells - sum(1 for left in self.left.values() if left),
            all_cells=self.all_cells,
            spent=spent,
            running=running,
            stopping=stopping,
        )


def _work(opened: Opened, file: ResultsFile, meter: Meter, tally: Tally, watch: Watch | None) -> str:
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
        count_tokens=experiment.fixed.count_tokens,
        tell=tell,
    )
    engine = make_engine(opened, library, caller, file, meter)
    recorder = make_recorder(opened, library, file)

    def flush(outcomes: list[Outcome]) -> None:
        records = recorder.records(outcomes)
        file.keep_answers(records)
        tally.add_all(records)
        tell(now=True)

    try:
        with _stopped_by_signals(engine, opened.stop):
            for outcomes in batches(engine.run(tally.waiting)):
                flush(outcomes)
    finally:
        opened.stop.set()
        caller.close()
        library.close()
    return engine.stopped or "complete"


def make_library(
    opened: Opened,
    keeper: Keeper,
    embedders: Mapping[str, Any] | None = None,
    *,
    kind: type[Library] = Library,
    together: bool = True,
) -> Library:
    """The library of an experiment; with other embedders in place of its own, or of another kind."""
    stores = opened.experiment.stores

    def open_one(name: str, embedder: Any) -> Any:
        return open_store(stores.get(name, name), embedder.name, name=name)

    return kind(
        opened.experiment.data,
        embedders or opened.embedders,
        opened.cells.cells,
        keeper,
        open_one,
        together=together,
        store_identities=opened.experiment.store_identities,
    )


def make_engine(
    opened: Opened,
    library: Library,
    caller: Caller,
    keeper: Keeper,
    meter: Allowance,
    *,
    max_concurrency: int | None = None,
    kind: type[Engine] = Engine,
) -> Engine:
    """The engine of an experiment; with another number of calls at the same time, or of another kind."""
    experiment = opened.experiment
    return kind(
        library,
        caller,
        keeper,
        meter,
        model_identity=lambda name: opened.models[name].identity,
        max_concurrency=max_concurrency or experiment.max_concurrency,
        give_up_after=experiment.give_up_after,
    )


def make_recorder(opened: Opened, library: Library, keeper: Keeper) -> Recorder:
    """The recorder of an experiment."""
    experiment = opened.experiment
    load_metrics(experiment.metrics)
    embedder = None
    if opened.score_embedder is not None:
        embedder = VectorSource(opened.score_embedder, keeper)
    return Recorder(experiment.data, library, experiment.metrics, embedder)


def longest_replies(experiment: Experiment) -> dict[str, int]:
    """The most tokens of a reply, of the models that were told."""
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
    longest: dict[str, int] = {}
    for model, spec in experiment.models.items():
        told = [spec.settings[name] for name in names if type(spec.settings.get(name)) is int]
        if told:
            longest[model] = told[0]
    return longest


def versions() -> dict[str, str]:
    """What a run runs on."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


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


def _end(file: ResultsFile, outcome: str) -> None:
    # Where it cannot be written down, such as on a full disk, what met that first has told it.
    with suppress(ResultsFileError):
        file.end(outcome)
    file.close()


@contextmanager
def _stopped_by_signals(engine: Engine, stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and a request to end stop the run cleanly; a second one leaves at once."""
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
            # A handler that was not set by Python cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
