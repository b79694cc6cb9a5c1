"""Model calls in threads, and storage of their replies."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from oprag.compare.db.cache import WorkCache
from oprag.compare.db.records import FailedCall, Reply, Spent
from oprag.compare.db.text import error_message, error_name, storable
from oprag.compare.providers.model import Model
from oprag.compare.running.ledger import Tariff
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.errors import ModelError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["Caller", "Made", "ModelCaller", "ModelThreads", "PendingCall", "ask", "reply_of"]

Result = TypeVar("Result")

_MAX_TOKENS = 10**15
"""Larger token counts are invalid."""


class PendingCall(NamedTuple):
    """A planned call."""

    key: str  # key of the reply
    model: str  # name in the experiment
    prompt: Prompt
    at_most: Spent  # maximum spending


class Made(NamedTuple):
    """A finished call."""

    call: PendingCall
    completion: Completion  # already stored, so that it is not lost if the process ends
    spent: Spent


class Caller(Protocol):
    """Makes calls for an engine."""

    @property
    def running(self) -> int:
        """Number of calls in flight."""
        ...

    def begin(self, call: PendingCall) -> None:
        """Start a call; its reply will be stored."""
        ...

    def take(self) -> Sequence[Made]:
        """Wait for a call to finish; return all finished calls."""
        ...


class ModelThreads(Generic[Result]):
    """Runs functions in threads; results are returned in order of completion.

    The threads are daemons, so that a process can exit without waiting for a model.
    """

    def __init__(self, threads: int) -> None:
        self._max_threads = threads
        self._started = 0
        self._waiting: SimpleQueue[Callable[[], Result] | None] = SimpleQueue()
        self._done: SimpleQueue[Result | BaseException] = SimpleQueue()
        self._running = 0

    @property
    def running(self) -> int:
        """Number of functions whose results have not been returned yet."""
        return self._running

    def submit(self, function: Callable[[], Result]) -> None:
        """Run a function as soon as a thread is free."""
        self._running += 1
        if self._started < min(self._max_threads, self._running):
            self._started += 1
            threading.Thread(target=self._work, name=f"oprag-model-{self._started}", daemon=True).start()
        self._waiting.put(function)

    def take(self, waiting: Callable[[], None] = lambda: None) -> list[Result]:
        """Wait for a function to finish; return the results of all finished functions."""
        taken: list[Result] = []
        while not taken or not self._done.empty():
            try:
                # A wait without a timeout could not be interrupted with Ctrl-C on Windows.
                result = self._done.get(timeout=0.5)
            except Empty:
                waiting()
                continue
            self._running -= 1
            if isinstance(result, BaseException):
                raise result
            taken.append(result)
        return taken

    def close(self) -> None:
        """Let each thread end after its current function."""
        for _ in range(self._started):
            self._waiting.put(None)
        self._started = 0

    def _work(self) -> None:
        while (function := self._waiting.get()) is not None:
            try:
                self._done.put(function())
            except BaseException as error:  # noqa: BLE001 - raised again by `take`
                self._done.put(error)


def ask(model: Model, prompt: Prompt, count_tokens: TokenCounter) -> Completion:
    """Call a model and check its reply; tokens and time are measured if the model does not report them."""
    started = time.perf_counter()
    try:
        completion = _checked(model.complete(prompt))
    except Exception as error:  # noqa: BLE001 - a custom model may raise anything
        completion = Completion(error=error)
    usage = completion.usage
    if usage is None and completion.error is None:
        usage = Usage(count(prompt.text, count_tokens), count(completion.text, count_tokens), 0, estimated=True)
    return replace(completion, usage=usage, seconds=completion.seconds or time.perf_counter() - started)


def reply_of(key: str, model: Model, step: str, completion: Completion, tariff: Tariff) -> Reply:
    """The record of a reply."""
    usage = completion.usage or Usage()
    about = (key, model.identity, step, completion.text, usage, completion.finish_reason, completion.seconds)
    return Reply(*about, tariff.cost(usage))


class ModelCaller:
    """Calls the models of an experiment in threads, and stores their replies."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        cache: WorkCache,
        *,
        tell: Callable[[], None] = lambda: None,  # called after each call, and twice a second while waiting
    ) -> None:
        experiment = resolved.experiment
        self._models = resolved.models
        self._tariffs = {name: Tariff.of(experiment, name) for name in self._models}
        self._count = experiment.token_counter
        self._cache = cache
        self._tell = tell
        self._threads: ModelThreads[Made] = ModelThreads(experiment.max_concurrency)

    @property
    def running(self) -> int:
        """Number of calls in flight."""
        return self._threads.running

    def begin(self, call: PendingCall) -> None:
        """Start a call; its reply will be stored."""
        self._threads.submit(lambda: self._call(call))

    def take(self) -> list[Made]:
        """Wait for a call to finish; return all finished calls."""
        made = self._threads.take(self._tell)
        self._tell()
        return made

    def close(self) -> None:
        """Let the threads end after their current call."""
        self._threads.close()

    def _call(self, call: PendingCall) -> Made:
        """Make a call, and store its reply."""
        model, step, tariff = self._models[call.model], call.prompt.step, self._tariffs[call.model]
        completion = ask(model, call.prompt, self._count)
        spent = tariff.spent(completion)
        if (error := completion.error) is None:
            # Use the reply as stored, so that a repeated run, which reads it from the file, gives the same results.
            (kept,) = self._cache.put([reply_of(call.key, model, step, completion, tariff)])
            return Made(call, kept.completion, spent)
        details = error_name(error), error_message(error), completion.seconds
        self._cache.put([FailedCall(call.key, model.identity, step, *details)])
        return Made(call, completion, spent)


def _checked(given: Any) -> Completion:
    """Validate a reply, since a custom model may return anything, and normalize it to what can be stored."""
    if not isinstance(given, Completion):
        raise ModelError(f"a model must return a Completion, got {describe(given)}", given)
    reported: Any = given.seconds
    seconds = reported if isinstance(reported, int | float) and 0 <= reported < math.inf else 0.0
    if given.error is not None:
        return replace(given, seconds=seconds)
    if not isinstance(given.text, str):
        raise ModelError(f"the text of a reply must be a string, got {describe(given.text)}", given)
    usage, reason = given.usage, given.finish_reason
    if usage is not None:
        try:
            usage = _counted(*usage)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(
                f"the usage of a reply must consist of token counts, got {describe(usage)}", given
            ) from error
    reason = None if reason is None else storable(str(reason))
    return replace(given, text=storable(str(given.text)), usage=usage, finish_reason=reason, seconds=seconds)


def _counted(read: Any, written: Any, cached: Any, estimated: Any) -> Usage:
    usage = Usage(int(read), int(written), int(cached), bool(estimated))
    if not all(0 <= tokens < _MAX_TOKENS for tokens in usage[:3]):
        raise ValueError(f"token counts must be from 0 to {_MAX_TOKENS:,}")
    return usage
