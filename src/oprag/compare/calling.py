"""Making calls of models in threads; each reply is kept before anybody hears of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from oprag.compare.answer_tables import Spent
from oprag.compare.calls import Call, Made
from oprag.compare.keeper import Keeper
from oprag.compare.models import Model
from oprag.compare.money import Price
from oprag.compare.records import FailedCall, Reply
from oprag.compare.storable import storable
from oprag.compare.workers import Workers
from oprag.errors import ModelError
from oprag.methods.completion import Completion, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["ModelCaller"]

_UNKNOWN_REPLY = 1_024
"""The tokens that a reply may have, for a ceiling, where the model was given no limit."""


class ModelCaller:
    """Calls models, so many at a time.

    Args:
        models: The models by their names in the experiment.
        prices: The price of a model, where there is one.
        longest: The most tokens of a reply, where a model was told.
        keeper: Keeps replies and failures.
        threads: How many calls at the same time.
        count_tokens: Counts where a model does not say what it read and wrote.
        tell: Called after each call, and every half second while none ends.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        prices: Mapping[str, Price],
        longest: Mapping[str, int],
        keeper: Keeper,
        *,
        threads: int,
        count_tokens: TokenCounter,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self._models = models
        self._prices = prices
        self._longest = longest
        self._keeper = keeper
        self._count = count_tokens
        self._tell = tell
        self._workers: Workers[Made] = Workers(threads)

    @property
    def running(self) -> int:
        """How many calls are on their way."""
        return self._workers.running

    def begin(self, call: Call) -> None:
        """Make a call, and keep its reply."""
        self._workers.submit(lambda: self._made(call))

    def take(self) -> Made:
        """Wait for the next call that has ended.

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
        output = self._longest.get(call.model, _UNKNOWN_REPLY)
        usage = Usage(count(call.prompt.text, self._count), output)
        return Spent(1, usage.input_tokens + output, self._cost(call.model, usage) or 0.0)

    def _made(self, call: Call) -> Made:
        model = self._models[call.model]
        started = time.perf_counter()
        try:
            completion = _checked(model.complete(call.prompt))
        except Exception as error:  # noqa: BLE001 - a model of the user's own that raises has failed
            completion = Completion(error=error)
        seconds = completion.seconds or time.perf_counter() - started
        step = call.prompt.step
        if completion.error is not None:
            message = storable(" ".join(str(completion.error).split()))
            kind = type(completion.error).__name__
            self._keeper.keep_failed_call(FailedCall(call.key, model.identity, step, kind, message, seconds))
            return Made(call, completion, Spent(1))
        usage = completion.usage or self._estimated(call, completion)
        money = self._cost(call.model, usage)
        # As it will come from the file the next time, so that a run and its repetition are the same.
        kept = self._keeper.keep_reply(
            Reply(call.key, model.identity, step, completion.text, usage, completion.finish_reason, seconds, money)
        )
        return Made(call, kept, Spent(1, usage.input_tokens + usage.output_tokens, money or 0.0))

    def _estimated(self, call: Call, completion: Completion) -> Usage:
        return Usage(count(call.prompt.text, self._count), count(completion.text, self._count), 0, estimated=True)

    def _cost(self, model: str, usage: Usage) -> float | None:
        price = self._prices.get(model)
        return None if price is None else price.of(usage)


def _checked(completion: Any) -> Completion:
    """A reply as it will come from the file: models of the user's own may give anything.

    Raises:
        ModelError: It is no completion, or its text is no string, or its tokens are no numbers.
    """
    if not isinstance(completion, Completion):
        raise ModelError(f"a model must give a Completion, got {completion!r}", completion)
    if completion.error is not None:
        return completion
    if not isinstance(completion.text, str):
        raise ModelError(f"the text of a reply must be a string, got {completion.text!r}", completion)
    usage, reason = completion.usage, completion.finish_reason
    if usage is not None:
        try:
            read, written, cached = (int(tokens) for tokens in usage[:3])
            usage = Usage(read, written, cached, bool(usage[3]))
        except (TypeError, ValueError, IndexError) as error:
            raise ModelError(f"the usage of a reply must have numbers of tokens, got {usage!r}", completion) from error
    reason = None if reason is None else storable(str(reason))
    return replace(completion, text=storable(str(completion.text)), usage=usage, finish_reason=reason)
