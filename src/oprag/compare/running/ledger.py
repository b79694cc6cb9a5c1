"""Cost of model calls, and spending and spending limits of a run."""

from __future__ import annotations

from typing import NamedTuple

from oprag.compare.db.records import Spent
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits, Price
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["Ledger", "LimitReached", "Tariff"]

_UNKNOWN_REPLY = 1_024
"""Tokens to reserve for a reply if the model has no output limit."""


class LimitReached(str):
    """The reason why a run stopped at a spending limit; with a higher limit it could continue."""

    __slots__ = ()


class Tariff(NamedTuple):
    """The price, output limit and token counter of a model."""

    price: Price | None
    longest: int | None  # maximum number of tokens of a reply; None if unlimited
    count_tokens: TokenCounter

    @classmethod
    def of(cls, experiment: Experiment, model: str) -> Tariff:
        """The tariff of a model of an experiment."""
        spec = experiment.models.get(model)
        longest = None if spec is None else spec.max_reply_tokens
        return cls(experiment.prices.get(model), longest, experiment.token_counter)

    @property
    def reserved(self) -> int:
        """Tokens to reserve for a reply."""
        return _UNKNOWN_REPLY if self.longest is None else self.longest

    def at_most(self, prompt: Prompt) -> Spent:
        """The estimated maximum spending of a call: the counted tokens of its prompt, and the longest reply."""
        usage = Usage(count(prompt.text, self.count_tokens), self.reserved)
        return Spent(1, usage.input_tokens + self.reserved, self.cost(usage) or 0.0)

    def spent(self, completion: Completion) -> Spent:
        """The spending of a call; a failed call has no tokens."""
        if completion.error is not None or completion.usage is None:
            return Spent(1)
        usage = completion.usage
        return Spent(1, usage.input_tokens + usage.output_tokens, self.cost(usage) or 0.0)

    def cost(self, usage: Usage) -> float | None:
        """The cost of the tokens; None if the model has no price."""
        return None if self.price is None else self.price.of(usage)


class Ledger:
    """Tracks spending, including the amount reserved for calls in flight."""

    def __init__(self, limits: Limits, spent: Spent) -> None:
        self._limits = limits
        self.spent = spent
        self._reserved = Spent()
        self.limited = limits != Limits()

    def refusal(self, call: Spent) -> str | None:
        """Why a call with this maximum spending would exceed a limit; None if it is allowed."""
        for name, limit in self._limits:
            if limit is None:
                continue
            spent = getattr(self.spent, name) + getattr(self._reserved, name)
            if spent + getattr(call, name) > limit:
                return LimitReached(
                    f"the limit of {limit:,} {name} is reached: {spent:,.6g} spent, and the next call could exceed it"
                )
        return None

    def reserve(self, call: Spent) -> None:
        """Reserve the maximum spending of a call that starts."""
        self._reserved = self._reserved.plus(call)

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """Replace the reservation of a finished call with its spending."""
        self._reserved = self._reserved.minus(reserved)
        self.spent = self.spent.plus(spent)
