"""Run an experiment on a Ray cluster: models, embedders and splitting run on its workers, the rest in this process."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from oprag.compare.db.keys import key_of
from oprag.compare.db.records import ChunkRecord
from oprag.compare.db.text import error_message, error_name, named_error
from oprag.compare.providers.embedder import ExperimentEmbedder
from oprag.compare.providers.model import Model
from oprag.compare.providers.names import main_module, set_main_module
from oprag.compare.running.index import Splitting
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import ModelThreads, ask
from oprag.compare.running.report import ProgressCallback, RunReport, RunState
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.run import Prepare, execute
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cell
from oprag.embedding.embedder import DualEncoder
from oprag.errors import ExperimentError, MissingExtraError, ModelError, OpragError
from oprag.index.splitting import Split
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["check_address", "check_sendable", "run_on_ray"]

_NAMES = ("local", "auto")
_TIMEOUT = 5.0  # seconds; Ray would retry for minutes and then exit the process
_START_TIMEOUT = 60.0  # seconds for the other workers to load the experiment, after the first one has
_TRIES = 5  # attempts of a call whose worker dies


def run_on_ray(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str],
    *,
    address: str | None = None,
    retry_failed: bool = False,
    on_progress: ProgressCallback | None = None,
) -> RunReport:
    """The same as `oprag.compare.run`, with models and embedders on the workers of a Ray cluster.

    Model calls, embedding and splitting are distributed over the cluster. The calling process assembles the contexts,
    scores the answers, and is the only one that reads and writes the results file. Hence every reply is stored before
    it is used, and limits apply to all workers together. If a worker dies, only its calls in flight are affected: each
    model call is repeated in a separate process, and fails if that process dies six times.

    Every machine needs the same version of this package, with the extras and model files that the experiment uses.
    The first Ctrl-C waits for calls in flight; a second one exits at once.

    Args:
        experiment: The experiment; its functions must be importable, and its models reachable, on all machines.
            If it is already resolved, its models are not loaded again in this process.
        path: The results file, on the machine of the caller.
        address: The address of the cluster, as in `ray.init`: HOST:PORT, "auto" for the cluster of this machine, or
            "local" to start a cluster on this machine that ends with the run. By default an existing cluster is used,
            or else one is started. If this process is already connected to a cluster, that one is used, and the
            connection stays open.
        retry_failed: Whether to retry questions that failed in earlier runs.
        on_progress: Called with the progress several times a second.

    Returns:
        The report of the run, as from `oprag.compare.run`.

    Raises:
        OptionError: `experiment` is not an `Experiment`.
        ExperimentError: The experiment cannot be run as described or cannot be pickled, the cluster cannot be reached,
            or the software or models of its machines differ from those of this machine.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written; rows already written are
            kept.
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
    return execute(resolved, path, retry_failed=retry_failed, on_progress=on_progress, around=around)


def check_sendable(experiment: Experiment, dumps: Callable[[Any], bytes]) -> None:
    """Raise an error that names the part of an experiment that cannot be pickled, if any."""
    parts: dict[str, Any] = {}
    for noun, given in (("model", experiment.models), ("embedder", experiment.embedders), ("store", experiment.stores)):
        parts |= {f"the {noun} {name!r}": one for name, one in given.items()}
    parts |= {
        f"the metric {name!r}": one for name, one in zip(experiment.metric_names, experiment.metrics, strict=True)
    }
    parts |= {
        "the score embedder": experiment.score_embedder,
        "count_tokens": experiment.count_tokens,
        "a prompt": experiment.prompts,
        "the experiment": experiment,
    }
    for what, part in parts.items():
        try:
            dumps(part)
        except Exception as error:
            raise ExperimentError(
                f"{what} cannot be sent to another process: {error}; specify it as MODULE:FUNCTION, in a module that "
                "every process can import",
                getattr(part, "use", part),
            ) from error


class _OnRay(ResolvedExperiment):
    """A resolved experiment whose models and embedders run on the workers of a cluster."""

    pool: _Pool  # only set during the run

    def __init__(self, local: ResolvedExperiment) -> None:
        super().__init__(local.experiment, stop=local.stop)
        self._local = local

    @cached_property
    def models(self) -> dict[str, Model]:
        # Each call blocks a thread of the `ModelCaller` until its reply arrives.
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
        """The embedder with the local tokenizer; the workers add its prefixes. The score embedder has no name."""
        kinds = ("embed_questions", "embed_documents")
        encoders = (partial(self._embed, name, kind) for kind in kinds)
        return replace(local, _embedder=DualEncoder(local.name, *encoders), _prefixes=("", ""))

    def _embed(self, name: str | None, kind: str, texts: Sequence[str]) -> Any:
        return self.pool.call("embed", name, kind, list(texts))


@dataclass(frozen=True)
class _RemoteSplitting(Splitting):
    """Splitting that runs on the workers."""

    resolved: _OnRay
    embedder: str

    def pieces(self, documents: Mapping[str, str | Sequence[str]]) -> list[ChunkRecord]:
        pieces: list[ChunkRecord] = self.resolved.pool.call("split", self.embedder, self.split, documents)
        return pieces


class _Worker:
    """A Ray actor, called from several threads; the first call loads the experiment.

    Args:
        refs: A list with the object reference to the experiment; in a list, Ray does not fetch it before it is used.
        expected: The key of the experiment in the calling process.
        main: The name of the main module of the calling process.
    """

    def __init__(self, refs: Sequence[Any], expected: str, main: str) -> None:
        set_main_module(main)
        self._refs = refs
        self._expected = expected
        self._lock = threading.Lock()
        self._resolved: ResolvedExperiment | None = None

    def open(self) -> None:
        """Load the experiment."""
        self._opened()

    def complete(self, model: str, prompt: Prompt) -> tuple[Completion, tuple[str, str] | None]:
        """A reply, and the class and message of its error: many exceptions cannot be pickled."""
        resolved = self._opened()
        completion = ask(resolved.models[model], prompt, resolved.experiment.token_counter)
        error = completion.error
        if error is None or isinstance(error, OpragError):
            return completion, None
        return replace(completion, error=None), (error_name(error), error_message(error))

    def embed(self, embedder: str | None, kind: str, texts: Sequence[str]) -> Any:
        """The vectors of the texts."""
        resolved = self._opened()
        return getattr(resolved.score_embedder if embedder is None else resolved.embedders[embedder], kind)(texts)

    def split(self, embedder: str, split: Split, documents: Mapping[str, Any]) -> list[ChunkRecord]:
        """The chunks of the documents."""
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
                        f"the experiment differs on the worker on {host}: something that affects answers, such as a "
                        "package version or a model file, is not the same as on the machine that started the run; "
                        "install the same versions and files on both",
                        host,
                    )
                self._resolved = resolved
            return self._resolved


def _complete_alone(refs: Sequence[Any], expected: str, main: str, model: str, prompt: Prompt) -> Any:
    """Make a call in a separate process, so that its crash affects no other call."""
    return _Worker(refs, expected, main).complete(model, prompt)


def _key_of(resolved: ResolvedExperiment) -> str:
    return key_of("experiment", [record.key for record in resolved.cell_records])


class _WorkerError(ModelError):
    """An error of a worker, with the class name of the original exception."""

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
        self._given = [ray.put(experiment)], _key_of(resolved), main_module()
        # Enough threads for all model calls on a single worker, and for splitting and embedding at the same time.
        self._actor = ray.remote(_Worker).options(num_cpus=1, max_concurrency=experiment.max_concurrency + 4)
        self._alone = ray.remote(_complete_alone).options(num_cpus=0, max_retries=_TRIES, retry_exceptions=False)
        self._alone_calls: set[Any] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.number = max(1, min(int(ray.cluster_resources().get("CPU", 1)), experiment.max_concurrency))
        self._slots = [self._new_slot() for _ in range(self.number)]

    def start(self) -> None:
        """Wait for the workers, and drop those that the cluster has no free CPU for."""
        waiting = [slot.opened for slot in self._slots]
        self._ray.wait(waiting, num_returns=1)
        started, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=_START_TIMEOUT)
        live: list[_Slot] = []
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
                live.append(slot)
        self._slots = live
        if not live:
            raise ExperimentError(f"all workers died while loading the experiment: {named_error(lost[-1])}", None)

    def complete(self, model: str, prompt: Prompt) -> Completion:
        """The reply of a model; if the worker dies, the call is repeated in a separate process."""
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
        """Call a method of a worker; if the worker dies, retry on another one."""
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
        """Wait for the stop event, then make the workers stop retrying; a signal handler must not call Ray itself."""
        stop.wait()
        for slot in self._slots:
            slot.actor.stop.remote()

    def close(self) -> None:
        """Cancel the calls and stop the workers, since the cluster may outlive the run."""
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
        """The result of a call; raises the original exception of the worker."""
        try:
            return self._ray.get(call)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, OpragError) else error.as_instanceof_cause()) from None

    def _new_slot(self) -> _Slot:
        return _Slot(self._actor.remote(*self._given))

    def _least_busy(self) -> _Slot:
        with self._lock:
            # Skip workers that are still starting, unless all are.
            ready, _ = self._ray.wait([slot.opened for slot in self._slots], num_returns=len(self._slots), timeout=0)
            slots = [slot for slot in self._slots if slot.opened in ready] or self._slots
            slot = min(slots, key=lambda slot: slot.busy)
            slot.busy += 1
            return slot

    def _replace(self, dead: _Slot) -> None:
        """Replace a dead worker once, even if several of its calls failed."""
        with self._lock:
            if dead in self._slots and not self._closed:
                self._slots[self._slots.index(dead)] = self._new_slot()


@contextmanager
def _pool(ray: Any, resolved: _OnRay, address: str | None) -> Iterator[Prepare]:
    """Start the workers for the duration of a run; yields the preparation step for `execute`."""
    with _connected(ray, address):
        resolved.pool = pool = _Pool(ray, resolved)
        stopper = threading.Thread(target=pool.pass_on_stop, args=[resolved.stop], daemon=True)
        try:
            pool.start()
            stopper.start()
            yield partial(_warm, resolved)
        finally:
            resolved.stop.set()
            if stopper.is_alive():
                stopper.join(_TIMEOUT)
            pool.close()


def _warm(resolved: _OnRay, library: Library, state: RunState) -> None:
    """Split and embed in parallel all documents of the open questions, and store the results for the engine."""

    def warm(cell: Cell, documents: tuple[str, ...]) -> None:
        if not resolved.stop.is_set():
            # Questions that need these documents will raise the error again.
            with suppress(Exception):
                library.warm(cell, documents)

    tasks = {
        (cell.data, question.documents, cell.split, cell.embedder): (cell, question.documents)
        for cell, question, _, _ in state.waiting
        if cell.embedder
    }
    threads: ModelThreads[None] = ModelThreads(2 * resolved.pool.number)
    for cell, documents in tasks.values():
        threads.submit(partial(warm, cell, documents))
    while threads.running and not resolved.stop.is_set():
        threads.take()
    threads.close()


def check_address(address: str | None) -> None:
    """Reject an unreachable address, and a Ray client address, whose driver could not read the results file."""
    if address is None or address in _NAMES:
        return
    if "://" in address:
        raise ExperimentError(
            f"cannot run at {address!r}: a Ray client runs the experiment on another machine, without the results "
            "file; start the run on a machine of the cluster, with the address HOST:PORT or auto",
            address,
        )
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise ExperimentError(
            f"the address of a Ray cluster must be local, auto or HOST:PORT, got {describe(address)}", address
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(f"no Ray cluster answers at {address!r}: {error}", address) from error


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to a cluster, or start one; an existing connection is reused and left open."""
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
    current = str(ray.get_runtime_context().gcs_address)
    # Compare only ports, since a machine has several host names.
    if address is not None and address not in _NAMES and address.rpartition(":")[2] != current.rpartition(":")[2]:
        raise ExperimentError(
            f"this process is already connected to the Ray cluster at {current!r}, got the address {address!r}; remove "
            "the address, or call ray.shutdown() first",
            address,
        )
