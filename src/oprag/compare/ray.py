"""The model calls of an experiment on a Ray cluster; everything else runs in this process."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.machinery import ModuleSpec
from itertools import cycle
from typing import Any

from oprag._internal.masking import describe
from oprag.compare.db.records import error_message, error_name
from oprag.compare.providers.chat_models import Model
from oprag.compare.providers.identity import main_module
from oprag.compare.running.engine import ask
from oprag.compare.running.prepared import PreparedExperiment
from oprag.errors import ExperimentError, MissingExtraError, ModelError, OpragError
from oprag.methods.answer import Completion
from oprag.methods.prompts import Prompt

__all__ = ["check_address", "on_ray"]

_NAMES = ("local", "auto")
_RETRIES = 5  # of a call whose worker dies


@contextmanager
def on_ray(prepared: PreparedExperiment, address: str) -> Iterator[PreparedExperiment]:
    """The experiment with models that are called by workers of a cluster, one for each CPU in turn."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("Running on a Ray cluster", "ray") from error
    sources = {name: prepared.source_of(name) for name in prepared.models}
    try:
        ray.cloudpickle.dumps(sources)
    except Exception as error:
        advice = "define it in a module that every process can import"
        raise ExperimentError(f"a model cannot be sent to another process: {error}; {advice}", sources) from error
    concurrency = prepared.experiment.max_concurrency
    with _connected(ray, address):
        worker = ray.remote(_Worker).options(
            num_cpus=0,  # never waits for a free CPU
            scheduling_strategy="SPREAD",
            max_concurrency=concurrency,
            max_restarts=-1,
            max_task_retries=_RETRIES,
        )
        number = max(1, min(int(ray.cluster_resources().get("CPU", 1)), concurrency))
        workers = [worker.remote(sources, main_module()) for _ in range(number)]
        turns = cycle(workers)
        models = {
            name: Model(model.identity, partial(_ask, turns, name, model.identity))
            for name, model in prepared.models.items()
        }
        try:
            yield prepared.replace(models=models)
        finally:
            for one in workers:
                ray.kill(one)  # the cluster may outlive the run


def _ask(workers: Iterator[Any], name: str, identity: str, prompt: Prompt) -> Completion:
    """A reply from the next worker; blocks the calling thread until it is there."""
    import ray

    completion: Completion
    try:
        completion, error = ray.get(next(workers).complete.remote(name, identity, prompt))
    except ray.exceptions.RayTaskError as raised:
        raise (raised.cause if isinstance(raised.cause, OpragError) else raised) from None
    return completion if error is None else replace(completion, error=_RemoteError(*error))


class _Worker:
    """A Ray actor that calls models, in several threads."""

    def __init__(self, sources: Mapping[str, Any], main: str) -> None:
        # As in the script that the classes of `__main__` come from.
        sys.modules["__main__"].__spec__ = ModuleSpec(main, None)
        self._sources = sources
        self._models: dict[str, Model] = {}
        self._lock = threading.Lock()

    def complete(self, name: str, identity: str, prompt: Prompt) -> tuple[Completion, tuple[str, str] | None]:
        """A reply, and the class and message of its error: many exceptions cannot be pickled."""
        with self._lock:
            model = self._models.get(name) or PreparedExperiment.opened(name, self._sources[name])
            self._models[name] = model
        if model.identity != identity:
            raise ExperimentError(
                f"the model {name!r} differs on {socket.gethostname()}: something that affects its replies, such as a "
                "package version or a model file, is not the same as where the run was started; install the same",
                name,
            )
        completion = ask(model, prompt)
        error = completion.error
        if error is None or isinstance(error, OpragError):
            return completion, None
        return replace(completion, error=None), (error_name(error), error_message(error))


class _RemoteError(ModelError):
    """An error of another process, with the class name of the original exception."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.remote_class = name


def check_address(address: str) -> None:
    """Reject an unreachable address, and a Ray client address, whose driver could not read the results file."""
    if address in _NAMES:
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "://" in address:
        problem = "the address of a cluster must be local, auto or HOST:PORT"
        raise ExperimentError(f"{problem}, got {describe(address)}", address)
    try:
        # Ray would retry for minutes and then exit the process.
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(f"no Ray cluster answers at {address!r}: {error}", address) from error


@contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    """Connect to a cluster, or start one; an existing connection is reused and left open."""
    if ray.is_initialized():
        if address != "auto":
            problem = f"this process is already connected to a Ray cluster, got the address {address!r}"
            raise ExperimentError(f"{problem}; use auto, or call ray.shutdown() first", address)
        yield
        return
    check_address(address)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:
            where = "this machine" if address in _NAMES else repr(address)
            raise ExperimentError(f"cannot use a Ray cluster at {where}: {error}", address) from error
        yield
    finally:
        ray.shutdown()
        # Ray replaces the handler.
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)
