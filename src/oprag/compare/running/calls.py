"""Model calls: their spending and its limits, the threads that make them, and the storage of their replies."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from oprag._internal.masking import describe
from oprag._internal.tokens import TokenCounter, count
from oprag.compare.db.records import FailedCall, Reply, Spent, WorkCache, error_message, error_name, storable
from oprag.compare.experiment import Experiment, Limits
from oprag.compare.providers.chat_models import Model
from oprag.errors import ModelError
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Prompt

__all__ = ["Made", "ModelCaller", "PendingCall", "Spending", "ask"]

_UNKNOWN_REPLY = 1_024
"""Tokens to reserve for a reply if the model has no output limit."""

_MAX_TOKENS = 10**15
"""Larger token counts are invalid."""


class PendingCall(NamedTuple):
    """A planned call."""

    key: str  # key of the reply
    model: str  # name in the experiment
    prompt: Prompt
    at_most: Spent  # maximum spending


class Made(NamedTuple):
    """A finished call; its completion is already stored, so that it is not lost if the process ends."""

    call: PendingCall
    completion: Completion


class Spending:
    """Tracks the spending of an experiment, including the amount reserved for calls in flight."""

    def __init__(self, experiment: Experiment, limits: Limits, spent: Spent) -> None:
        self._experiment = experiment
        self._limits = limits
        self.spent = spent
        self._reserved = Spent()

    def longest_reply(self, model: str) -> int:
        """Tokens to reserve for a reply of a model."""
        spec = self._experiment.models.get(model)
        longest = None if spec is None else spec.max_reply_tokens
        return _UNKNOWN_REPLY if longest is None else longest

    def cost(self, model: str, usage: Usage) -> float | None:
        """The cost of tokens; None if the model has no price."""
        price = self._experiment.prices.get(model)
        return None if price is None else price.of(usage)

    def at_most(self, model: str, prompt: Prompt) -> Spent:
        """The estimated maximum spending of a call: the counted tokens of its prompt, and the longest reply."""
        if self._limits == Limits():
            return Spent(1)  # counting the tokens of a prompt is slow
        usage = Usage(count(prompt.text, self._experiment.token_counter), self.longest_reply(model))
        return self._spending(model, usage)

    def refusal(self, call: Spent) -> str | None:
        """Why a call with this maximum spending would exceed a limit; None if it is allowed."""
        for name, limit in self._limits:
            spent = getattr(self.spent, name) + getattr(self._reserved, name)
            if limit is not None and spent + getattr(call, name) > limit:
                return (
                    f"the limit of {limit:,} {name} is reached: {spent:,.6g} spent, and the next call could exceed it; "
                    "raise the limit to continue"
                )
        return None

    def reserve(self, call: Spent) -> None:
        """Reserve the maximum spending of a call that starts."""
        self._reserved = self._reserved.plus(call)

    def settle(self, made: Made) -> None:
        """Replace the reservation of a finished call with its spending; a failed call has no tokens."""
        call, completion = made
        self._reserved = self._reserved.minus(call.at_most)
        failed = completion.error is not None or completion.usage is None
        self.spent = self.spent.plus(Spent(1) if failed else self._spending(call.model, completion.usage or Usage()))

    def _spending(self, model: str, usage: Usage) -> Spent:
        return Spent(1, usage.input_tokens + usage.output_tokens, self.cost(model, usage) or 0.0)


class ModelCaller:
    """Calls models, each call in its own thread, and stores their replies.

    The threads are daemons, so that a process can exit without waiting for a model.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        count_tokens: TokenCounter,
        cache: WorkCache,
        spending: Spending,
        tell: Callable[[], None] = lambda: None,  # called after each call, and twice a second while waiting
    ) -> None:
        self._models = models
        self._count = count_tokens
        self._cache = cache
        self._spending = spending
        self._tell = tell
        self._done: SimpleQueue[Made | BaseException] = SimpleQueue()
        self.running = 0  # number of calls in flight

    def begin(self, call: PendingCall) -> None:
        """Start a call; its reply will be stored."""
        self.running += 1
        threading.Thread(target=self._work, args=(call,), name="oprag-model", daemon=True).start()

    def take(self) -> list[Made]:
        """Wait for a call to finish; return all finished calls."""
        taken: list[Made] = []
        while not taken or not self._done.empty():
            try:
                # A wait without a timeout could not be interrupted with Ctrl-C on Windows.
                made = self._done.get(timeout=0.5)
            except Empty:
                self._tell()
                continue
            self.running -= 1
            if isinstance(made, BaseException):
                raise made
            taken.append(made)
        self._tell()
        return taken

    def _work(self, call: PendingCall) -> None:
        try:
            self._done.put(self._made(call))
        except BaseException as error:  # noqa: BLE001 - raised again by `take`
            self._done.put(error)

    def _made(self, call: PendingCall) -> Made:
        """Make a call, and store its reply."""
        model, step = self._models[call.model], call.prompt.step
        completion = ask(model, call.prompt)
        if completion.error is not None:
            details = error_name(completion.error), error_message(completion.error), completion.seconds
            self._cache.put_failure(FailedCall(call.key, model.identity, step, *details))
            return Made(call, completion)
        usage = completion.usage
        if usage is None:  # the model does not report it
            usage = Usage(count(call.prompt.text, self._count), count(completion.text, self._count), 0, estimated=True)
        about = (call.key, model.identity, step, completion.text, usage, completion.finish_reason, completion.seconds)
        # Use the reply as stored, so that a repeated run, which reads it from the file, gives the same results.
        kept = self._cache.put_reply(Reply(*about, self._spending.cost(call.model, usage)))
        return Made(call, kept.completion)


def ask(model: Model, prompt: Prompt) -> Completion:
    """Call a model and check its reply; the time is measured if the model does not report it."""
    started = time.perf_counter()
    try:
        completion = _checked(model.complete(prompt))
    except Exception as error:  # noqa: BLE001 - a custom model may raise anything
        completion = Completion(error=error)
    reported: Any = completion.seconds
    told = isinstance(reported, int | float) and 0 < reported < math.inf
    return replace(completion, seconds=reported if told else time.perf_counter() - started)


def _checked(given: Any) -> Completion:
    """Validate a reply, since a custom model may return anything, and normalize it to what can be stored."""
    if isinstance(given, str):
        given = Completion(str(given))
    if not isinstance(given, Completion):
        raise ModelError(f"a model must return a string or a Completion, got {describe(given)}", given)
    if given.error is not None:
        return given
    if not isinstance(given.text, str):
        raise ModelError(f"the text of a reply must be a string, got {describe(given.text)}", given)
    usage, reason = given.usage, given.finish_reason
    if usage is not None:
        try:
            tokens, estimated = [int(one) for one in usage[:3]], bool(usage[3])
        except (TypeError, ValueError, OverflowError, IndexError):
            tokens, estimated = [-1], False
        if not all(0 <= one < _MAX_TOKENS for one in tokens):
            raise ModelError(f"the usage of a reply must consist of token counts, got {describe(usage)}", given)
        usage = Usage(tokens[0], tokens[1], tokens[2], estimated)
    reason = None if reason is None else storable(str(reason))
    return replace(given, text=storable(str(given.text)), usage=usage, finish_reason=reason)
