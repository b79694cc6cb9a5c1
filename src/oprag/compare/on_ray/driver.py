"""Handing out the questions of an experiment to the workers of a Ray cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from math import ceil
from threading import Event
from typing import Any
from uuid import uuid4

from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import named_error
from oprag.compare.on_ray.asking import ask_desk, cause_of
from oprag.compare.on_ray.connecting import connected, load_ray
from oprag.compare.on_ray.desk import Desk, News
from oprag.compare.on_ray.worker import Share, work_on
from oprag.compare.running.report import RunReport, RunState, Watch
from oprag.compare.running.run import started, stopped_by_signals
from oprag.compare.running.sendable import check_sendable
from oprag.compare.running.work_item import WorkItem
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.resolved import ResolvedExperiment, as_opened

__all__ = ["run_on_ray"]

_TRIES = 5  # of a share whose worker died
_SHARES = 4  # for each worker, so that a slow one holds nobody up for long
_LOOK = 0.5  # seconds between looks at how far it is


def run_on_ray(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    address: str | None = None,
    retry_failed: bool = False,
    watch: Watch | None = None,
) -> RunReport:
    """As `oprag.compare.run`, with the questions spread over the workers of a Ray cluster.

    One process, on the machine of the caller, reads and writes the results file for all of them, and grants every call:
    so a reply is in the file before its worker goes on, limits hold for all together, and a worker that dies loses what
    was on its way alone; another one does the rest. `max_concurrency` is divided among the workers. A call that
    questions of several workers need is made once.

    Every machine needs this package in the same version, with the extras and model files that the experiment uses.
    Ctrl-C waits for the calls that are on their way, a second one does not.

    Args:
        experiment: The experiment; its functions must be importable on all machines, and models reachable from there.
            Where it is opened already, nothing of it is opened again in this process.
        path: The results file, on the machine of the caller.
        address: The address of the cluster, as `ray.init` takes it: HOST:PORT, "auto" for the one of this machine,
            "local" for one that is started here and ends with the run. None looks for one, and starts one if there is
            none. A cluster that this process is connected to already is used, and left alone.
        retry_failed: Whether questions that failed before are tried again.
        watch: Told how far it is.

    Raises:
        ExperimentError: The experiment cannot be run as it is described, or cannot be sent to other processes; or there
            is no such cluster.
        ResultsFileError: The file is damaged, is another one, or cannot be written, or the process that writes it has
            died; what was written stays.
        MissingExtraError: The extra `ray`, or something that the experiment needs, is not installed.
    """
    ray = load_ray()
    opened = as_opened(experiment)
    check_sendable(opened.experiment, ray.cloudpickle.dumps)
    name = opened.experiment.name
    with started(opened, path) as going:
        tally = RunState(opened, going.file.done(name), retry_failed=retry_failed)
        if tally.waiting:
            with connected(ray, address):
                going.outcome = _Spreading(ray, going.opened, going.file, tally).run(watch)
        else:
            going.outcome = "complete"
        spent = going.file.spent(name)
    return tally.report(going.outcome, spent, going.seconds)


class _Spreading:
    """Shares on their way to workers and back."""

    def __init__(self, ray: Any, opened: ResolvedExperiment, file: ResultsFile, tally: RunState) -> None:
        self._ray = ray
        self._tally = tally
        self._lost: list[str] = []
        self.stopped: str | None = None
        experiment = opened.experiment
        workers = max(1, min(int(ray.cluster_resources().get("CPU", 1)), experiment.max_concurrency))
        parts = _shares(tally.waiting, workers * _SHARES)
        self._most = min(workers, len(parts))
        threads = experiment.max_concurrency // self._most
        name = uuid4().hex
        self._shares = deque(Share(name, number, places, threads) for number, places in enumerate(parts))
        self._waiting: dict[Any, Share] = {}
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        # Without a processor of its own: it waits for the disk most of the time.
        actor = ray.remote(Desk).options(num_cpus=0, scheduling_strategy=here, max_concurrency=1)
        spent = file.spent(experiment.name)
        self._desk = actor.remote(str(file.path.absolute()), file.run, experiment.limits, spent)
        self._experiments = [ray.put(experiment)]
        self._work = ray.remote(work_on).options(num_cpus=1, max_retries=_TRIES, retry_exceptions=False)

    def stop(self, reason: str) -> None:
        """Begin nothing more; what is on its way still comes in. A signal may say so between any two steps."""
        if self.stopped is None:
            self.stopped = reason

    def run(self, watch: Watch | None) -> str:
        """Hand out shares, and wait for them; how it ended."""
        told = False
        try:
            with stopped_by_signals(self, Event()):
                while self._waiting or (self._shares and self.stopped is None):
                    self._hand_out()
                    if self.stopped is not None and not told:
                        ask_desk(self._desk, "stop", self.stopped)
                        told = True
                    done, _ = self._ray.wait(list(self._waiting), timeout=_LOOK)
                    for one in done:
                        self._take(one, self._waiting.pop(one))
                    self._look(watch)
                self._look(watch)
                ask_desk(self._desk, "close")
        finally:
            self._end()
        if self._lost and self.stopped is None:
            return f"workers died {_TRIES + 1} times over the same questions, {len(self._lost)} times: {self._lost[-1]}"
        return self.stopped or "complete"

    def _hand_out(self) -> None:
        """Begin as many shares as there are workers, so that no more calls are made at the same time than allowed."""
        while self._shares and self.stopped is None and len(self._waiting) < self._most:
            share = self._shares.popleft()
            self._waiting[self._work.remote(self._experiments, share, self._desk)] = share

    def _take(self, done: Any, share: Share) -> None:
        """A share is over."""
        try:
            stopped = self._ray.get(done)
        except self._ray.exceptions.RayTaskError as error:
            raise cause_of(error) from None
        except self._ray.exceptions.RayError as error:
            self._lost.append(named_error(error))
            ask_desk(self._desk, "abandon", share.number)
        else:
            if stopped is not None:
                self.stop(stopped)

    def _look(self, watch: Watch | None) -> None:
        """Count what was done, and tell."""
        news: News = ask_desk(self._desk, "news")
        self._tally.add_all(news.answers)
        if watch is not None:
            watch(self._tally.progress(news.spent, news.running, self.stopped))

    def _end(self) -> None:
        """Leave nothing running in a cluster that goes on: without the desk no worker makes a call."""
        with suppress(self._ray.exceptions.RayError):
            for one in self._waiting:
                self._ray.cancel(one, force=True)
            self._ray.kill(self._desk)


def _shares(units: Iterable[WorkItem], number: int) -> list[dict[str, list[str]]]:
    """Questions with their cells in so many parts: those about the same documents together, as far as possible."""
    places: dict[str, list[str]] = {}
    for unit in units:
        places.setdefault(unit.question_key, []).append(unit.cell_key)
    questions = list(places)
    size = ceil(len(questions) / number)
    return [
        {question: places[question] for question in questions[start : start + size]}
        for start in range(0, len(questions), size)
    ]
