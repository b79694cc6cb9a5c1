"""The same run on a Ray cluster: questions are spread over its processors, and one process writes the results file."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.compare.answer_tables import Spent
from oprag.compare.calling import ModelCaller
from oprag.compare.error_text import message_of
from oprag.compare.experiment import Experiment
from oprag.compare.money import Limits, Meter
from oprag.compare.opened import Opened
from oprag.compare.progress import Watch
from oprag.compare.records import AnswerRecord, FailedCall, Hit, Hits, IndexRecord, Piece, Reply
from oprag.compare.report import Report, versions
from oprag.compare.results_file import ResultsFile
from oprag.compare.running import batches
from oprag.compare.tally import Tally
from oprag.compare.work import Unit
from oprag.compare.workshop import longest_replies, make_engine, make_library, make_recorder
from oprag.errors import MissingExtraError, ResultsFileError
from oprag.methods.completion import Completion

__all__ = ["run_on_ray"]

_TRIES = 5  # of a share whose worker died
_SHARES = 4  # for each worker, so that a slow one holds nobody up for long
_LOOK = 0.5  # seconds between looks at how far it is

Place = tuple[str, str]


def run_on_ray(
    experiment: Experiment,
    path: str | os.PathLike[str],
    *,
    address: str | None = None,
    retry_failed: bool = False,
    watch: Watch | None = None,
) -> Report:
    """As `oprag.compare.run`, with the questions spread over the workers of a Ray cluster.

    One process, on the machine of the caller, reads and writes the results file for all of them, and grants every call:
    so a reply is in the file before its worker goes on, limits hold for all together, and a worker that dies loses what
    was on its way alone; another one does the rest. `max_concurrency` is divided among the workers.

    Args:
        experiment: The experiment; its functions must be importable on all machines, and models reachable from there.
        path: The results file, on the machine of the caller.
        address: The address of the cluster, as `ray.init` takes it; None for one on this machine.
        retry_failed: Whether questions that failed before are tried again.
        watch: Told how far it is.

    Raises:
        ExperimentError: The experiment cannot be run as it is described.
        ResultsFileError: The file is damaged, is another one, or cannot be written; what was written stays.
        MissingExtraError: The extra `ray`, or something that the experiment needs, is not installed.
    """
    ray = _ray()
    started = time.perf_counter()
    opened = Opened(experiment)
    file = ResultsFile(path)
    file.check()
    file.begin(experiment.name, opened.described(), opened.cell_rows, opened.question_rows, versions())
    found = file.found(experiment.name)
    tally = Tally(opened, found, retry_failed=retry_failed)
    spent = file.spent(experiment.name)
    outcome = "complete"
    if tally.waiting:
        mine = not ray.is_initialized()
        if mine:
            ray.init(address=address, log_to_driver=False)
        try:
            outcome, spent = _spread(ray, opened, file, tally=tally, spent=spent, watch=watch)
        except BaseException as error:
            file.end(f"{type(error).__name__}: {message_of(error)}")
            raise
        finally:
            if mine:
                ray.shutdown()
    file.end(outcome)
    file.close()
    return Report(
        outcome=outcome,
        total=tally.total,
        answered=tally.answered,
        failed=dict(Counter(tally.failed.values())),
        left=tally.total - tally.answered - len(tally.failed),
        broken=found.broken,
        spent=spent,
        seconds=time.perf_counter() - started,
    )


def _spread(
    ray: Any, opened: Opened, file: ResultsFile, *, tally: Tally, spent: Spent, watch: Watch | None
) -> tuple[str, Spent]:
    """Hand out shares, and wait for them; how it ended, and what was spent."""
    experiment = opened.experiment
    workers = max(1, min(int(ray.cluster_resources().get("CPU", 1)), experiment.max_concurrency))
    shares = _shares(tally.waiting, workers * _SHARES)
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    # Without a processor of its own: it waits for the disk most of the time.
    desk = (
        ray.remote(_Desk)
        .options(num_cpus=0, scheduling_strategy=here, max_concurrency=1)
        .remote(str(file.path.absolute()), file.run, experiment.limits, spent)
    )
    threads = ceil(experiment.max_concurrency / min(workers, len(shares)))
    given = ray.put(experiment)
    work = ray.remote(_work_on).options(num_cpus=1, max_retries=_TRIES, retry_exceptions=False)
    places = {_place(unit) for unit in tally.waiting}
    waiting = [work.remote(given, _Share(share, places, threads), desk) for share in shares]
    stopped: str | None = None
    try:
        while waiting:
            done, waiting = ray.wait(waiting, timeout=_LOOK)
            for one in ray.get(done):
                stopped = stopped or one
            records, spent = ray.get(desk.news.remote())
            tally.add_all(records)
            if watch is not None:
                watch(tally.progress(spent, len(waiting), stopped))
    except KeyboardInterrupt:
        # Workers ask the desk before every call, and hear of it there.
        stopped = "interrupted"
        ray.get(desk.stop.remote(stopped))
        ray.get(waiting)
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from error
    records, spent = ray.get(desk.news.remote())
    tally.add_all(records)
    return stopped or "complete", spent


def _shares(units: Iterable[Unit], number: int) -> list[list[str]]:
    """The keys of questions in so many parts: those about the same documents together, as far as that is possible."""
    questions = list(dict.fromkeys(unit.question_key for unit in units))
    size = ceil(len(questions) / number)
    return [questions[start : start + size] for start in range(0, len(questions), size)]


def _work_on(experiment: Experiment, share: _Share, desk: Any) -> str | None:
    """On a worker: answer these questions, as far as they are not answered; why it stopped, if it did."""
    import ray

    keeper = _AtDesk(ray, desk)
    opened = Opened(experiment)
    units = [unit for unit in opened.units(set(share.questions)) if _place(unit) in share.places]
    # One that died here before may have done some of it.
    left = set(ray.get(desk.unanswered.remote([_place(unit) for unit in units])))
    library = make_library(opened, keeper)
    caller = ModelCaller(
        opened.models,
        experiment.prices,
        longest_replies(experiment),
        keeper,
        threads=share.threads,
        count_tokens=experiment.fixed.count_tokens,
    )
    engine = make_engine(opened, library, caller, keeper, _AtDeskMeter(ray, desk), max_concurrency=share.threads)
    recorder = make_recorder(opened, library, keeper)
    try:
        for outcomes in batches(engine.run(unit for unit in units if _place(unit) in left)):
            ray.get(desk.keep_answers.remote(recorder.records(outcomes)))
    finally:
        caller.close()
        library.close()
    return engine.stopped


class _Share(NamedTuple):
    """What one worker does at a time: some questions in all cells, as far as they are waiting."""

    questions: Sequence[str]
    places: Collection[Place]
    threads: int


def _place(unit: Unit) -> Place:
    return unit.cell_key, unit.question_key


class _Desk:
    """The process that has the results file."""

    def __init__(self, path: str, run: int, limits: Limits, spent: Spent) -> None:
        self._file = ResultsFile(path, run)
        self._meter = Meter(limits, spent)
        self._new: list[AnswerRecord] = []
        self._done: set[Place] = set()
        self._stopped: str | None = None

    def do(self, name: str, *arguments: Any) -> Any:
        """What a method of the file gives."""
        return getattr(self._file, name)(*arguments)

    def reserve(self, call: Spent) -> str | None:
        """Why a call must not be made; None where it may, and then it is counted."""
        reason = self._stopped or self._meter.refusal(call)
        if reason is None:
            self._meter.reserve(call)
        return reason

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """A call is over."""
        self._meter.settle(reserved, spent)

    def unanswered(self, places: Sequence[Place]) -> list[Place]:
        """Those that no worker has done in this run."""
        return [place for place in places if place not in self._done]

    def keep_answers(self, records: Sequence[AnswerRecord]) -> None:
        """Write answers."""
        self._file.keep_answers(records)
        self._new += records
        self._done |= {(record.cell, record.question) for record in records}

    def news(self) -> tuple[list[AnswerRecord], Spent]:
        """The answers since the last time, and what was spent."""
        new, self._new = self._new, []
        return new, self._meter.spent

    def stop(self, reason: str) -> None:
        """Grant no more calls."""
        self._stopped = reason


class _AtDesk:
    """A `Keeper` that asks the desk."""

    def __init__(self, ray: Any, desk: Any) -> None:
        self._ray = ray
        self._desk = desk

    def reply(self, key: str) -> Completion | None:
        found: Completion | None = self._do("reply", key)
        return found

    def keep_reply(self, reply: Reply) -> Completion:
        kept: Completion = self._do("keep_reply", reply)
        return kept

    def keep_failed_call(self, call: FailedCall) -> None:
        self._do("keep_failed_call", call)

    def index(self, key: str) -> Sequence[Piece] | None:
        found: Sequence[Piece] | None = self._do("index", key)
        return found

    def keep_index(self, index: IndexRecord) -> None:
        self._do("keep_index", index)

    def hits(self, key: str) -> Sequence[Hit] | None:
        found: Sequence[Hit] | None = self._do("hits", key)
        return found

    def keep_hits(self, found: Sequence[Hits]) -> None:
        self._do("keep_hits", found)

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
        found: list[NDArray[np.float32] | None] = self._do("vectors", embedder, hashes)
        return found

    def keep_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        self._do("keep_vectors", embedder, hashes, vectors)

    def _do(self, name: str, *arguments: Any) -> Any:
        try:
            return self._ray.get(self._desk.do.remote(name, *arguments))
        except self._ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from error
        except self._ray.exceptions.ActorDiedError as error:
            raise ResultsFileError("the process that writes the results file has died", name) from error


class _AtDeskMeter:
    """An `Allowance` that asks the desk, which counts for all workers."""

    def __init__(self, ray: Any, desk: Any) -> None:
        self._ray = ray
        self._desk = desk

    def refusal(self, call: Spent) -> str | None:
        reason: str | None = self._ray.get(self._desk.reserve.remote(call))
        return reason

    def reserve(self, call: Spent) -> None:
        """It was reserved when it was granted."""

    def settle(self, reserved: Spent, spent: Spent) -> None:
        self._desk.settle.remote(reserved, spent)


def _ray() -> Any:
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise MissingExtraError("Running on a Ray cluster", "ray") from error
    return ray
