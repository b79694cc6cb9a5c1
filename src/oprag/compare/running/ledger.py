"""What calls of models cost, what a run has spent, and the limits that it must not pass."""

from __future__ import annotations

from typing import NamedTuple

from oprag.compare.db.records import Spent
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits, Price
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.tokens import TokenCounter, count

__all__ = ["Ledger", "LimitReached", "Tariff"]

_UNKNOWN_REPLY = 1_024
"""The tokens that a reply may have, for a ceiling, where the model was given no limit."""


class LimitReached(str):
    """Why a run stopped, where a higher limit would let it go on."""

    __slots__ = ()


class Tariff(NamedTuple):
    """What calls of a model are charged with."""

    price: Price | None
    longest: int | None  # tokens of a reply; None where the model was not told
    count_tokens: TokenCounter

    @classmethod
    def of(cls, experiment: Experiment, model: str) -> Tariff:
        """The tariff of a model of an experiment."""
        spec = experiment.models.get(model)
        longest = None if spec is None else spec.max_reply_tokens
        return cls(experiment.prices.get(model), longest, experiment.token_counter)

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


class Ledger:
    """Counts what was spent and what calls on their way may spend."""

    def __init__(self, limits: Limits, spent: Spent) -> None:
        self._limits = limits
        self.spent = spent
        self._reserved = Spent()
        self.limited = limits != Limits()

    def refusal(self, call: Spent) -> str | None:
        """Why one more call, which takes so much at most, must not be made; None where it may."""
        if not self.limited:
            return None
        for name, limit in self._limits:
            spent = getattr(self.spent, name) + getattr(self._reserved, name)
            if limit is not None and spent + getattr(call, name) > limit:
                return LimitReached(
                    f"the limit of {limit:,} {name} is reached: {spent:,.6g} are spent, and the next call may take more"
                )
        return None

    def reserve(self, call: Spent) -> None:
        """A call is on its way."""
        self._reserved = self._reserved.plus(call)

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """A call is over."""
        self._reserved = self._reserved.minus(reserved)
        self.spent = self.spent.plus(spent)
