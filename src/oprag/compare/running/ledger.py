"""The cost of model calls, the spending of a run, and its limits."""

from __future__ import annotations

from typing import NamedTuple

from oprag.compare.db.records import Spent
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits, Price
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["Ledger", "LimitReached", "Tariff"]

_UNKNOWN_REPLY = 1_024
"""Tokens to reserve for a reply of a model that has no limit."""


class LimitReached(str):
    """Why a run stopped, if a higher limit would let it continue."""

    __slots__ = ()


class Tariff(NamedTuple):
    """The price of a model's calls, and how their tokens are counted."""

    price: Price | None
    longest: int | None  # tokens of a reply; None if the model has no limit
    count_tokens: TokenCounter

    @classmethod
    def of(cls, experiment: Experiment, model: str) -> Tariff:
        """The tariff of a model of an experiment."""
        spec = experiment.models.get(model)
        longest = None if spec is None else spec.max_reply_tokens
        return cls(experiment.prices.get(model), longest, experiment.token_counter)

    def at_most(self, prompt: Prompt) -> Spent:
        """The maximum a call can take: the tokens of its prompt as counted here, and the longest reply."""
        output = _UNKNOWN_REPLY if self.longest is None else self.longest
        usage = Usage(count(prompt.text, self.count_tokens), output)
        return Spent(1, usage.input_tokens + output, self.cost(usage) or 0.0)

    def spent(self, completion: Completion) -> Spent:
        """What a call took; a failed one has no tokens."""
        if completion.error is not None or completion.usage is None:
            return Spent(1)
        usage = completion.usage
        return Spent(1, usage.input_tokens + usage.output_tokens, self.cost(usage) or 0.0)

    def cost(self, usage: Usage) -> float | None:
        """The cost of tokens; None without a price."""
        return None if self.price is None else self.price.of(usage)


class Ledger:
    """Counts what was spent, and what calls in flight may spend."""

    def __init__(self, limits: Limits, spent: Spent) -> None:
        self._limits = limits
        self.spent = spent
        self._reserved = Spent()
        self.limited = limits != Limits()

    def refusal(self, call: Spent) -> str | None:
        """Why a call that takes at most this must not be made; None if it may."""
        for name, limit in self._limits:
            if limit is None:
                continue
            spent = getattr(self.spent, name) + getattr(self._reserved, name)
            if spent + getattr(call, name) > limit:
                return LimitReached(
                    f"the limit of {limit:,} {name} is reached: {spent:,.6g} are spent, and the next call may take more"
                )
        return None

    def reserve(self, call: Spent) -> None:
        """Count a call that begins."""
        self._reserved = self._reserved.plus(call)

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """Count a call that has ended."""
        self._reserved = self._reserved.minus(reserved)
        self.spent = self.spent.plus(spent)
