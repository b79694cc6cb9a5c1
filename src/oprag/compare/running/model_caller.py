"""Calling models, and keeping what they reply."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from oprag.compare.db.cache import WorkCache
from oprag.compare.db.records import FailedCall, Reply, Spent
from oprag.compare.db.text import error_message, storable
from oprag.compare.providers.model import Model
from oprag.compare.running.threads import ModelThreads
from oprag.compare.spec.money import Price
from oprag.errors import ModelError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["Allowance", "Asked", "Call", "Caller", "Made", "ModelCaller", "Tariff", "ask", "reply_of"]


class Call(NamedTuple):
    """A call to be made.

    Attributes:
        key: The content address of its reply.
        model: The name of the model in the experiment.
        prompt: What it reads.
    """

    key: str
    model: str
    prompt: Prompt


class Made(NamedTuple):
    """A call that was made.

    Attributes:
        call: The call.
        completion: What came back; kept already, so that it outlives the process.
        spent: What it took.
    """

    call: Call
    completion: Completion
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


class Allowance(Protocol):
    """Says when no more calls may be made; see `oprag.compare.running.ledger.Ledger`."""

    @property
    def limited(self) -> bool:
        """Whether there is any limit, so that it matters what a call may take."""
        ...

    def refusal(self, call: Spent) -> str | None:
        """Why one more call, which takes so much at most, must not be made; None where it may."""
        ...

    def reserve(self, call: Spent) -> None:
        """A call is on its way."""
        ...

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """A call is over."""
        ...


_UNKNOWN_REPLY = 1_024
"""The tokens that a reply may have, for a ceiling, where the model was given no limit."""
_NEVER = 10**15
"""Tokens that no call has."""


def ask(model: Model, prompt: Prompt, count_tokens: TokenCounter) -> Completion:
    """The reply of a model, checked, with its tokens: an estimate where the model does not tell them.

    Args:
        model: The model; one of the user's own that raises has failed.
        prompt: What it reads.
        count_tokens: Counts for the estimate.
    """
    try:
        completion = _checked(model.complete(prompt))
    except Exception as error:  # noqa: BLE001 - whatever a model of the user's own raises
        return Completion(error=error)
    if completion.error is not None or completion.usage is not None:
        return completion
    usage = Usage(count(prompt.text, count_tokens), count(completion.text, count_tokens), 0, estimated=True)
    return replace(completion, usage=usage)


class Tariff(NamedTuple):
    """What calls of a model are charged with.

    Attributes:
        price: The price of the model; None where there is none.
        longest: The most tokens of a reply; None where the model was not told.
        count_tokens: Counts the tokens of prompts.
    """

    price: Price | None
    longest: int | None
    count_tokens: TokenCounter

    def at_most(self, prompt: Prompt) -> Spent:
        """What a call may take: the tokens of its prompt as counted here, and the longest reply."""
        output = _UNKNOWN_REPLY if self.longest is None else self.longest
        usage = Usage(count(prompt.text, self.count_tokens), output)
        return Spent(1, usage.input_tokens + output, self.cost(usage) or 0.0)

    def spent(self, completion: Completion) -> Spent:
        """What a call took; one that failed has no tokens."""
        if completion.error is not None or completion.usage is None:
            return Spent(1)
        usage = completion.usage
        return Spent(1, usage.input_tokens + usage.output_tokens, self.cost(usage) or 0.0)

    def cost(self, usage: Usage) -> float | None:
        """What tokens cost; None without a price."""
        return None if self.price is None else self.price.of(usage)


def reply_of(call: Call, identity: str, completion: Completion, seconds: float, tariff: Tariff) -> Reply:
    """A reply as it is kept.

    Args:
        call: The call.
        identity: The identity of the model.
        completion: What came back.
        seconds: How long the call took.
        tariff: What it is charged with.
    """
    usage = completion.usage or Usage()
    about = (call.key, identity, call.prompt.step)
    return Reply(*about, completion.text, usage, completion.finish_reason, seconds, tariff.cost(usage))


class Asked(NamedTuple):
    """A call that has ended, and is not kept yet.

    Attributes:
        call: The call.
        completion: What came back.
        seconds: How long it took.
        known: Whether it was made, paid for and kept by somebody else.
    """

    call: Call
    completion: Completion
    seconds: float
    known: bool = False


class ModelCaller:
    """Calls models, so many at a time.

    Args:
        models: The models by their names in the experiment.
        prices: The price of a model, where there is one.
        longest: The most tokens of a reply, where a model was told.
        cache: Keeps replies and failures.
        threads: How many calls at the same time.
        count_tokens: Counts where a model does not say what it read and wrote.
        tell: Called after each call, and every half second while none ends.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        prices: Mapping[str, Price],
        longest: Mapping[str, int],
        cache: WorkCache,
        *,
        threads: int,
        count_tokens: TokenCounter,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self._models = models
        self._prices = prices
        self._longest = longest
        self._cache = cache
        self._count = count_tokens
        self._tell = tell
        self._workers: ModelThreads[Asked, Made] = ModelThreads(threads, self._kept)

    @property
    def running(self) -> int:
        """How many calls are on their way."""
        return self._workers.running

    def begin(self, call: Call) -> None:
        """Make a call, and keep its reply."""
        self._workers.submit(lambda: self._asked(call))

    def take(self) -> list[Made]:
        """Wait for the next call that has ended, and give it with all others that have.

        Raises:
            ResultsFileError: Its reply could not be kept.
        """
        made = self._workers.take(self._tell)
        self._tell()
        return made

    def close(self) -> None:
        """Let the threads end."""
        self._workers.close()

    def at_most(self, call: Call) -> Spent:
        """What a call may take: the tokens of its prompt as counted here, and the longest reply."""
        return self._tariff(call.model).at_most(call.prompt)

    def _asked(self, call: Call) -> Asked:
        started = time.perf_counter()
        completion = ask(self._models[call.model], call.prompt, self._count)
        return Asked(call, completion, completion.seconds or time.perf_counter() - started)

    def _kept(self, asked: Sequence[Asked]) -> list[Made]:
        """Keep what came back, all of it at once."""
        replies: list[Reply] = []
        for one in asked:
            if one.completion.error is not None:
                self._cache.put([self._failure(one, one.completion.error)])
            elif not one.known:
                replies.append(self._reply(one))
        # As they will come from the file the next time, so that a run and its repetition are the same.
        kept = {reply.key: reply.completion for reply in self._cache.put(replies)}
        return [
            Made(
                one.call,
                kept.get(one.call.key, one.completion),
                Spent() if one.known else self._tariff(one.call.model).spent(one.completion),
            )
            for one in asked
        ]

    def _failure(self, asked: Asked, error: Exception) -> FailedCall:
        call = asked.call
        identity = self._models[call.model].identity
        step = call.prompt.step
        return FailedCall(call.key, identity, step, type(error).__name__, error_message(error), asked.seconds)

    def _reply(self, asked: Asked) -> Reply:
        call, completion, seconds, _ = asked
        identity = self._models[call.model].identity
        return reply_of(call, identity, completion, seconds, self._tariff(call.model))

    def _tariff(self, model: str) -> Tariff:
        return Tariff(self._prices.get(model), self._longest.get(model), self._count)


def _checked(given: Any) -> Completion:
    """A reply as it will come from the file: models of the user's own may give anything.

    Raises:
        ModelError: It is no completion, or its text is no string, or its tokens are no numbers from 0.
    """
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
