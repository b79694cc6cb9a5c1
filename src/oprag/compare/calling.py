"""Making calls of models in threads; each reply is kept before anybody hears of it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from oprag.compare.answer_tables import Spent
from oprag.compare.engine import Call, Made
from oprag.compare.models import Model
from oprag.compare.money import Price
from oprag.compare.records import FailedCall, Keeper, Reply
from oprag.compare.workers import Workers
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
    ) -> None:
        self._models = models
        self._prices = prices
        self._longest = longest
        self._keeper = keeper
        self._count = count_tokens
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
        return self._workers.take()

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
            completion = model.complete(call.prompt)
        except Exception as error:  # noqa: BLE001 - a model of the user's own that raises has failed
            completion = Completion(error=error)
        seconds = completion.seconds or time.perf_counter() - started
        step = call.prompt.step
        if completion.error is not None:
            message = " ".join(str(completion.error).split())
            kind = type(completion.error).__name__
            self._keeper.keep_failed_call(FailedCall(call.key, model.identity, step, kind, message, seconds))
            return Made(call, completion, Spent(1))
        usage = completion.usage or self._estimated(call, completion)
        money = self._cost(call.model, usage)
        self._keeper.keep_reply(
            Reply(call.key, model.identity, step, completion.text, usage, completion.finish_reason, seconds, money)
        )
        # As it will come from the file the next time, so that a run and its repetition are the same.
        kept = Completion(completion.text, usage=usage, seconds=seconds, finish_reason=completion.finish_reason)
        return Made(call, kept, Spent(1, usage.input_tokens + usage.output_tokens, money or 0.0))

    def _estimated(self, call: Call, completion: Completion) -> Usage:
        return Usage(count(call.prompt.text, self._count), count(completion.text, self._count), 0, estimated=True)

    def _cost(self, model: str, usage: Usage) -> float | None:
        price = self._prices.get(model)
        return None if price is None else price.of(usage)
