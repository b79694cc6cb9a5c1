"""Calling models, and storing their replies."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from oprag.compare.db.cache import WorkCache
from oprag.compare.db.records import FailedCall, Reply, Spent
from oprag.compare.db.text import error_message, error_name, storable
from oprag.compare.providers.model import Model
from oprag.compare.running.ledger import Tariff
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.threads import ModelThreads
from oprag.errors import ModelError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["Call", "Caller", "Made", "ModelCaller", "ask", "reply_of"]


class Call(NamedTuple):
    """A call to be made."""

    key: str  # of its reply
    model: str  # its name in the experiment
    prompt: Prompt
    at_most: Spent  # what it may take


class Made(NamedTuple):
    """A call that has ended."""

    call: Call
    completion: Completion  # stored already, so that it outlives the process
    spent: Spent


class Caller(Protocol):
    """Makes calls for an engine."""

    @property
    def running(self) -> int:
        """Number of calls in flight."""
        ...

    def begin(self, call: Call) -> None:
        """Begin a call, whose reply will be stored."""
        ...

    def take(self) -> Sequence[Made]:
        """Wait for a call to end; return all calls that have ended."""
        ...


_NEVER = 10**15
"""More tokens than any call has."""


def ask(model: Model, prompt: Prompt, count_tokens: TokenCounter) -> Completion:
    """Ask a model; the reply is checked, and its tokens and its time are counted if the model does not report them."""
    started = time.perf_counter()
    try:
        completion = _checked(model.complete(prompt))
    except Exception as error:  # noqa: BLE001 - a user's own model may raise anything
        completion = Completion(error=error)
    usage = completion.usage
    if usage is None and completion.error is None:
        usage = Usage(count(prompt.text, count_tokens), count(completion.text, count_tokens), 0, estimated=True)
    return replace(completion, usage=usage, seconds=completion.seconds or time.perf_counter() - started)


def reply_of(key: str, model: Model, step: str, completion: Completion, tariff: Tariff) -> Reply:
    """The record of a reply of a model."""
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
        tell: Callable[[], None] = lambda: None,  # called after each call, and twice a second while none ends
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

    def begin(self, call: Call) -> None:
        """Begin a call, whose reply will be stored."""
        self._threads.submit(lambda: self._made(call))

    def take(self) -> list[Made]:
        """Wait for a call to end; return all calls that have ended."""
        made = self._threads.take(self._tell)
        self._tell()
        return made

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    def _made(self, call: Call) -> Made:
        """Make a call, and store its reply."""
        model, step, tariff = self._models[call.model], call.prompt.step, self._tariffs[call.model]
        completion = ask(model, call.prompt, self._count)
        spent = tariff.spent(completion)
        if (error := completion.error) is None:
            # Used as it will be read from the file next time, so that a run and its repetition are equal.
            (kept,) = self._cache.put([reply_of(call.key, model, step, completion, tariff)])
            return Made(call, kept.completion, spent)
        told = error_name(error), error_message(error), completion.seconds
        self._cache.put([FailedCall(call.key, model.identity, step, *told)])
        return Made(call, completion, spent)


def _checked(given: Any) -> Completion:
    """A reply as it will be read from the file: a user's own model may return anything."""
    if not isinstance(given, Completion):
        raise ModelError(f"a model must give a Completion, got {describe(given)}", given)
    told: Any = given.seconds
    seconds = told if isinstance(told, int | float) and 0 <= told < math.inf else 0.0
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
                f"the usage of a reply must have numbers of tokens, got {describe(usage)}", given
            ) from error
    reason = None if reason is None else storable(str(reason))
    return replace(given, text=storable(str(given.text)), usage=usage, finish_reason=reason, seconds=seconds)


def _counted(read: Any, written: Any, cached: Any, estimated: Any) -> Usage:
    usage = Usage(int(read), int(written), int(cached), bool(estimated))
    if not all(0 <= tokens < _NEVER for tokens in usage[:3]):
        raise ValueError(f"tokens must be from 0 to {_NEVER:,}")
    return usage
