"""Calling models, and keeping what they reply."""

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


class Made(NamedTuple):
    """A call that was made."""

    call: Call
    completion: Completion  # kept already, so that it outlives the process
    spent: Spent


class Caller(Protocol):
    """Makes calls."""

    @property
    def running(self) -> int:
        """How many calls are on their way."""
        ...

    def begin(self, call: Call) -> None:
        """Make a call, and keep its reply."""
        ...

    def take(self) -> Sequence[Made]:
        """Wait for the next call that has ended, and give it with all others that have."""
        ...

    def at_most(self, call: Call) -> Spent:
        """What a call may take, as far as can be told before it is made."""
        ...


_NEVER = 10**15
"""Tokens that no call has."""


def ask(model: Model, prompt: Prompt, count_tokens: TokenCounter) -> Completion:
    """The reply of a model, checked, with its tokens: an estimate where the model does not tell them."""
    try:
        completion = _checked(model.complete(prompt))
    except Exception as error:  # noqa: BLE001 - whatever a model of the user's own raises
        return Completion(error=error)
    if completion.error is not None or completion.usage is not None:
        return completion
    usage = Usage(count(prompt.text, count_tokens), count(completion.text, count_tokens), 0, estimated=True)
    return replace(completion, usage=usage)


def reply_of(call: Call, identity: str, completion: Completion, seconds: float, tariff: Tariff) -> Reply:
    """The reply of a model of that identity, as it is kept."""
    usage = completion.usage or Usage()
    about = (call.key, identity, call.prompt.step)
    return Reply(*about, completion.text, usage, completion.finish_reason, seconds, tariff.cost(usage))


class ModelCaller:
    """Calls the models of an experiment, so many at a time, and keeps what they reply."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        cache: WorkCache,
        *,
        tell: Callable[[], None] = lambda: None,  # called after each call, and every half second while none ends
    ) -> None:
        experiment = resolved.experiment
        self._models = resolved.models
        self._tariffs = {name: Tariff.of(experiment, name) for name in self._models}
        self._count = experiment.token_counter
        self._cache = cache
        self._tell = tell
        self._threads: ModelThreads[_Ended, Made] = ModelThreads(experiment.max_concurrency, self._kept)

    @property
    def running(self) -> int:
        """How many calls are on their way."""
        return self._threads.running

    def begin(self, call: Call) -> None:
        """Make a call, and keep its reply."""
        self._threads.submit(lambda: self._ended(call))

    def take(self) -> list[Made]:
        """Wait for the next call that has ended, and give it with all others that have."""
        made = self._threads.take(self._tell)
        self._tell()
        return made

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    def at_most(self, call: Call) -> Spent:
        """What a call may take: the tokens of its prompt as counted here, and the longest reply."""
        return self._tariffs[call.model].at_most(call.prompt)

    def _ended(self, call: Call) -> _Ended:
        started = time.perf_counter()
        completion = ask(self._models[call.model], call.prompt, self._count)
        return _Ended(call, completion, completion.seconds or time.perf_counter() - started)

    def _kept(self, ended: Sequence[_Ended]) -> list[Made]:
        """Keep what came back, all of it at once."""
        replies: list[Reply] = []
        for call, completion, seconds in ended:
            identity = self._models[call.model].identity
            if (error := completion.error) is None:
                replies.append(reply_of(call, identity, completion, seconds, self._tariffs[call.model]))
            else:
                about = (call.key, identity, call.prompt.step)
                self._cache.put([FailedCall(*about, error_name(error), error_message(error), seconds)])
        # As they will come from the file the next time, so that a run and its repetition are the same.
        kept = {reply.key: reply.completion for reply in self._cache.put(replies)}
        return [
            Made(call, kept.get(call.key, completion), self._tariffs[call.model].spent(completion))
            for call, completion, _ in ended
        ]


class _Ended(NamedTuple):
    """A call that has ended, and is not kept yet."""

    call: Call
    completion: Completion
    seconds: float


def _checked(given: Any) -> Completion:
    """A reply as it will come from the file: models of the user's own may give anything."""
    if not isinstance(given, Completion):
        raise ModelError(f"a model must give a Completion, got {describe(given)}", given)
    told: Any = given.seconds
    # As where it tells no time.
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
