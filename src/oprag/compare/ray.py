"""Running an experiment on a Ray cluster: models and embedders run on its workers, all else is the usual run."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from oprag.compare.db.keys import key_of
from oprag.compare.db.records import Piece
from oprag.compare.db.text import error_message, error_name, named_error
from oprag.compare.providers.embedder import ExperimentEmbedder
from oprag.compare.providers.model import Model
from oprag.compare.running.index import Splitting
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import ask
from oprag.compare.running.report import RunReport, RunState, Watch
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.run import Prepare, execute
from oprag.compare.running.sendable import check_sendable
from oprag.compare.running.threads import ModelThreads
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cell
from oprag.embedding.embedder import DualEncoder
from oprag.errors import ExperimentError, MissingExtraError, ModelError, OpragError
from oprag.index.splitting import Split
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["check_address", "run_on_ray"]

_NAMES = ("local", "auto")
_PATIENCE = 5.0  # seconds; Ray itself tries for minutes and then ends the process
_START = 60.0  # seconds for the other workers to open the experiment, once one has
_TRIES = 5  # of a call whose worker died


def run_on_ray(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    address: str | None = None,
    retry_failed: bool = False,
    watch: Watch | None = None,
) -> RunReport:
    """As `oprag.compare.run`, with models and embedders on the workers of a Ray cluster.

    Model calls, embedding and splitting are spread over the cluster. Contexts are assembled, and answers scored and
    written, by the process of the caller, which alone reads and writes the results file. So every reply is written to
    the file before it is used, and limits hold for all workers together. A worker that dies loses only its calls in
    flight: each of them is repeated in a process of its own, and fails if that process dies six times.

    Every machine needs the same version of this package, with the extras and model files that the experiment uses.
    The first Ctrl-C waits for the calls in flight, a second one does not.

    Args:
        experiment: The experiment; its functions must be importable on all machines, and models reachable from there.
            One that is resolved already is not opened again in this process.
        path: The results file, on the machine of the caller.
        address: The address of the cluster, as `ray.init` takes it: HOST:PORT, "auto" for the one of this machine,
            "local" for one that is started here and ends with the run. By default one is looked for, and started if
            there is none. A cluster that this process is connected to already is used, and stays connected.
        retry_failed: Whether to retry questions that failed in earlier runs.
        watch: Called with the progress, a few times a second.

    Returns:
        What the run did, as `oprag.compare.run` returns it.

    Raises:
        OptionError: `experiment` is not an `Experiment`.
        ExperimentError: The experiment cannot be run as described, or cannot be sent to other processes; or the cluster
            cannot be reached, or its machines would answer otherwise than this one.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written; what was written stays.
        MissingExtraError: The extra `ray`, or a package that the experiment needs, is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("Running on a Ray cluster", "ray") from error
    local = ResolvedExperiment.of(experiment)
    check_sendable(local.experiment, ray.cloudpickle.dumps)
    resolved = _OnRay(local)
    around = _pool(ray, resolved, address)
    return execute(resolved, path, retry_failed=retry_failed, watch=watch, around=around)


class _OnRay(ResolvedExperiment):
    """An experiment whose models and embedders run on the workers of a cluster."""

    pool: _Pool  # during the run

    def __init__(self, local: ResolvedExperiment) -> None:
        super().__init__(local.experiment, stop=local.stop)
        self._local = local

    @cached_property
    def models(self) -> dict[str, Model]:
        # Each call waits for its reply in a thread of the `ModelCaller`.
        return {
            name: Model(model.identity, partial(self._complete, name)) for name, model in self._local.models.items()
        }

    @cached_property
    def embedders(self) -> dict[str, ExperimentEmbedder]:
        return {name: self._remote(name, embedder) for name, embedder in self._local.embedders.items()}

    @cached_property
    def score_embedder(self) -> ExperimentEmbedder | None:
        local = self._local.score_embedder
        return None if local is None else self._remote(None, local)

    def splitting(self, cell: Cell, embedder: ExperimentEmbedder) -> Splitting:
        local = super().splitting(cell, embedder)
        return _RemoteSplitting(local.split, local.tokenizer, self, cell.embedder)

    def _complete(self, name: str, prompt: Prompt) -> Completion:
        return self.pool.complete(name, prompt)

    def _remote(self, name: str | None, local: ExperimentEmbedder) -> ExperimentEmbedder:
        """The embedder with this process's tokenizer; the workers add its prefixes. The score embedder has no name."""
        kinds = ("embed_questions", "embed_documents")
        encoders = (partial(self._embed, name, kind) for kind in kinds)
        return replace(local, _embedder=DualEncoder(local.name, *encoders), _prefixes=("", ""))

    def _embed(self, name: str | None, kind: str, texts: Sequence[str]) -> Any:
        return self.pool.call("embed", name, kind, list(texts))


@dataclass(frozen=True)
class _RemoteSplitting(Splitting):
    """Splitting on the workers."""

    resolved: _OnRay
    embedder: str

    def pieces(self, documents: Mapping[str, str | Sequence[str]]) -> list[Piece]:
        pieces: list[Piece] = self.resolved.pool.call("split", self.embedder, self.split, documents)
        return pieces


class _Worker:
    """An actor of Ray, called from several threads; it opens the experiment at the first call.

    Args:
        refs: A list with the reference to the experiment, so that it is fetched where it is needed.
        expected: The key of the experiment in the process of the caller.
    """

    def __init__(self, refs: Sequence[Any], expected: str) -> None:
        self._refs = refs
        self._expected = expected
        self._lock = threading.Lock()
        self._resolved: ResolvedExperiment | None = None

    def open(self) -> None:
        """Open the experiment."""
        self._opened()

    def complete(self, model: str, prompt: Prompt) -> tuple[Completion, tuple[str, str] | None]:
        """A reply, and the class and message of its error, which itself often cannot be sent."""
        resolved = self._opened()
        completion = ask(resolved.models[model], prompt, resolved.experiment.token_counter)
        error = completion.error
        if error is None or isinstance(error, OpragError):
            return completion, None
        return replace(completion, error=None), (error_name(error), error_message(error))

    def embed(self, embedder: str | None, kind: str, texts: Sequence[str]) -> Any:
        """The vectors of texts."""
        resolved = self._opened()
        return getattr(resolved.score_embedder if embedder is None else resolved.embedders[embedder], kind)(texts)

    def split(self, embedder: str, split: Split, documents: Mapping[str, Any]) -> list[Piece]:
        """The chunks of documents."""
        return Splitting(split, self._opened().embedders[embedder].tokenizer).pieces(documents)

    def stop(self) -> None:
        """Stop retrying calls."""
        if self._resolved is not None:
            self._resolved.stop.set()

    def _opened(self) -> ResolvedExperiment:
        import ray

        with self._lock:
            if self._resolved is None:
                resolved = ResolvedExperiment(ray.get(self._refs[0]))
                if _key_of(resolved) != self._expected:
                    host = socket.gethostname()
                    raise ExperimentError(
                        f"the worker on {host} sees another experiment: something that answers depend on, such as the "
                        "version of a package or a model's file, differs from the machine that started the run; make "
                        "them equal",
                        host,
                    )
                self._resolved = resolved
            return self._resolved


def _complete_alone(refs: Sequence[Any], expected: str, model: str, prompt: Prompt) -> Any:
    """A call in a process of its own, which takes no other call with it when it dies."""
    return _Worker(refs, expected).complete(model, prompt)


def _key_of(resolved: ResolvedExperiment) -> str:
    return key_of("experiment", [record.key for record in resolved.cell_records])


class _WorkerError(ModelError):
    """An error of a worker, with the name of its class there."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.remote_class = name


class _Slot:
    """A worker, its number of calls, and the result of `open`."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.busy = 0
        self.opened = actor.open.remote()


class _Pool:
    """The workers of a run; each call goes to the least busy one."""

    def __init__(self, ray: Any, resolved: _OnRay) -> None:
        experiment = resolved.experiment
        self._ray = ray
        self._given = [ray.put(experiment)], _key_of(resolved)
        # Threads enough for all calls, even of a single worker, and for splitting and embedding meanwhile.
        self._actor = ray.remote(_Worker).options(num_cpus=1, max_concurrency=experiment.max_concurrency + 4)
        self._alone = ray.remote(_complete_alone).options(num_cpus=0, max_retries=_TRIES, retry_exceptions=False)
        self._alone_calls: set[Any] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.number = max(1, min(int(ray.cluster_resources().get("CPU", 1)), experiment.max_concurrency))
        self._slots = [self._new_slot() for _ in range(self.number)]

    def start(self) -> None:
        """Wait for the workers, and drop those for which there is no room."""
        waiting = [slot.opened for slot in self._slots]
        self._ray.wait(waiting, num_returns=1)
        started, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=_START)
        there: list[_Slot] = []
        lost: list[Exception] = []
        for slot in self._slots:
            if slot.opened not in started:
                self._ray.kill(slot.actor)
                continue
            try:
                self._result(slot.opened)
            except self._ray.exceptions.RayActorError as error:
                lost.append(error)
            else:
                there.append(slot)
        self._slots = there
        if not there:
            raise ExperimentError(f"all workers died when they opened the experiment: {named_error(lost[-1])}", None)

    def complete(self, model: str, prompt: Prompt) -> Completion:
        """The reply of a model; if the worker dies, the call is repeated in a process of its own."""
        completion: Completion
        try:
            completion, error = self.call("complete", model, prompt, tries=1)
        except self._ray.exceptions.RayActorError:
            try:
                completion, error = self._complete_alone(model, prompt)
            except self._ray.exceptions.WorkerCrashedError as crash:
                return Completion(error=_WorkerError(type(crash).__name__, error_message(crash)))
        return completion if error is None else replace(completion, error=_WorkerError(*error))

    def call(self, name: str, *arguments: Any, tries: int = _TRIES) -> Any:
        """Call a method of a worker; of another one if it dies."""
        slot = self._least_busy()
        try:
            return self._result(getattr(slot.actor, name).remote(*arguments))
        except self._ray.exceptions.RayActorError:
            self._replace(slot)
            if tries == 1:
                raise
        finally:
            with self._lock:
                slot.busy -= 1
        return self.call(name, *arguments, tries=tries - 1)

    def pass_on_stop(self, stop: threading.Event) -> None:
        """Make the workers stop retrying when the run is to end; a signal handler must not call them."""
        stop.wait()
        for slot in self._slots:
            slot.actor.stop.remote()

    def close(self) -> None:
        """Leave nothing running in a cluster that goes on."""
        with self._lock, suppress(self._ray.exceptions.RayError):
            self._closed = True
            for call in self._alone_calls:
                self._ray.cancel(call, force=True)
            for slot in self._slots:
                self._ray.kill(slot.actor)

    def _complete_alone(self, model: str, prompt: Prompt) -> Any:
        with self._lock:
            if self._closed:
                raise ModelError("the run has ended", prompt)
            call = self._alone.remote(*self._given, model, prompt)
            self._alone_calls.add(call)
        try:
            return self._result(call)
        finally:
            with self._lock:
                self._alone_calls.discard(call)

    def _result(self, call: Any) -> Any:
        """The result of a call, or the error that it raised there; our own errors as they are."""
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, OpragError) else error.as_instanceof_cause()) from None

    def _new_slot(self) -> _Slot:
        return _Slot(self._actor.remote(*self._given))

    def _least_busy(self) -> _Slot:
        with self._lock:
            # A new worker is asked once it is ready, unless none is.
            ready, _ = self._ray.wait([slot.opened for slot in self._slots], num_returns=len(self._slots), timeout=0)
            slots = [slot for slot in self._slots if slot.opened in ready] or self._slots
            slot = min(slots, key=lambda slot: slot.busy)
            slot.busy += 1
            return slot

    def _replace(self, dead: _Slot) -> None:
        """Start another worker in place of a dead one, once for all of its calls."""
        with self._lock:
            if dead in self._slots and not self._closed:
                self._slots[self._slots.index(dead)] = self._new_slot()


@contextmanager
def _pool(ray: Any, resolved: _OnRay, address: str | None) -> Iterator[Prepare]:
    """The workers, for the time of a run; yields what they do before its engine starts."""
    with _connected(ray, address):
        resolved.pool = pool = _Pool(ray, resolved)
        telling = threading.Thread(target=pool.pass_on_stop, args=[resolved.stop], daemon=True)
        try:
            pool.start()
            telling.start()
            yield partial(_warm, resolved)
        finally:
            resolved.stop.set()
            if telling.is_alive():
                telling.join(_PATIENCE)
            pool.close()


def _warm(resolved: _OnRay, library: Library, state: RunState) -> None:
    """Split and embed all documents that are asked about, several at a time, and store it for the engine."""

    def warm(cell: Cell, documents: tuple[str, ...]) -> None:
        if not resolved.stop.is_set():
            # The questions that need it will meet the error again.
            with suppress(Exception):
                library.warm(cell, documents)

    wanted = {
        (cell.data, question.documents, cell.split, cell.embedder): (cell, question.documents)
        for cell, question, _, _ in state.waiting
        if cell.embedder
    }
    threads: ModelThreads[None] = ModelThreads(2 * resolved.pool.number)
    for cell, documents in wanted.values():
        threads.submit(partial(warm, cell, documents))
    while threads.running and not resolved.stop.is_set():
        threads.take()
    threads.close()


def check_address(address: str | None) -> None:
    """Refuse an address that cannot be reached, or of a Ray client, which has no results file."""
    if address is None or address in _NAMES:
        return
    if "://" in address:
        raise ExperimentError(
            f"cannot run at {address!r}: a Ray client runs elsewhere, where the results file is not; begin the run on "
            "a machine of the cluster, with the address HOST:PORT or auto",
            address,
        )
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise ExperimentError(
            f"the address of a Ray cluster must be local, auto or HOST:PORT, got {describe(address)}", address
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(f"no Ray cluster answers at {address!r}: {error}", address) from error


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to a cluster, or start one; an existing connection is used, and left open."""
    if ray.is_initialized():
        _check_same(ray, address)
        yield
        return
    check_address(address)
    logger = logging.getLogger("ray")
    level = logger.level
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    logger.setLevel(logging.ERROR)
    try:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:
            where = "this machine" if address is None or address in _NAMES else repr(address)
            raise ExperimentError(f"cannot use a Ray cluster at {where}: {error}", address) from error
        yield
    finally:
        ray.shutdown()
        logger.setLevel(level)
        if main and handler is not None:
            signal.signal(signal.SIGTERM, handler)


def _check_same(ray: Any, address: str | None) -> None:
    there = str(ray.get_runtime_context().gcs_address)
    # The same machine has several names.
    if address is not None and address not in _NAMES and address.rpartition(":")[2] != there.rpartition(":")[2]:
        raise ExperimentError(
            f"this process is connected to the Ray cluster at {there!r}, got the address {address!r}; leave it out, or "
            "disconnect with ray.shutdown() before",
            address,
        )
