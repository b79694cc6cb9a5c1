"""What an experiment may spend on models: prices, limits, and the spending of its runs so far."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from oprag._internal.tokens import count

# If pydantic is missing, this import raises the error that names the extra to install.
from oprag.compare import validation  # noqa: F401
from oprag.compare.db.records import Spent
from oprag.compare.experiment_methods import UNKNOWN_USAGE
from oprag.compare.validation import Amount, Natural, StrictModel
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Prompt

if TYPE_CHECKING:
    from oprag.compare.experiment import Experiment

__all__ = ["Limits", "Price", "Spending"]

_UNKNOWN_REPLY = 1_024  # tokens to reserve for a reply if the model has no output limit


class Price(StrictModel):
    """Prices of a model per million tokens, in any currency; use the same one for all models.

    Attributes:
        input: Price of input tokens.
        output: Price of output tokens.
        cached: Price of cached input tokens; by default that of `input`.

    Raises:
        ExperimentError: A price is negative or not a number.
    """

    input: Amount
    output: Amount
    cached: Amount | None = None

    def of(self, usage: Usage) -> float:
        """The price of some tokens.

        Args:
            usage: The tokens of one or more calls.
        """
        # At least 0, since some providers do not include cached tokens in the input tokens.
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        cached = self.input if self.cached is None else self.cached
        return (fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1_000_000


class Limits(StrictModel):
    """Spending limits of an experiment on models, over all its runs; None for no limit.

    Attributes:
        calls: Maximum number of model calls, including failed ones.
        tokens: Maximum number of input and output tokens.
        money: Maximum price of the tokens, in the currency of the prices.

    Raises:
        ExperimentError: A limit is negative or not a number.
    """

    calls: Natural | None = None
    tokens: Natural | None = None
    money: Amount | None = None


class Spending:
    """Tracks the spending of an experiment, including the amount reserved for calls in flight."""

    def __init__(self, experiment: Experiment, limits: Limits, spent: Spent) -> None:
        self._experiment = experiment
        self._limits = limits
        self.spent = spent
        self._reserved: list[Spent] = []  # of calls in flight

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
        total = reduce(Spent.plus, self._reserved, self.spent)
        for name, limit in self._limits:
            if limit is None:
                continue
            if (spent := getattr(total, name)) is None:
                return f"a pipeline did not report its tokens, which limits.{name} needs; use limits.calls instead"
            if spent + getattr(call, name) > limit:
                reached = f"the limit of {limit:,} {name} is reached: {spent:,.6g} spent"
                return f"{reached}, and the next call could exceed it; raise the limit to continue"
        return None

    def reserve(self, call: Spent) -> None:
        """Reserve the maximum spending of a call that starts."""
        self._reserved.append(call)

    def settle(self, call: Spent, model: str, completion: Completion) -> None:
        """Replace the reservation of a finished call with its spending; a failed call has no tokens."""
        self._reserved.remove(call)
        usage = None if completion.error is not None else completion.usage
        self.spent = self.spent.plus(Spent(1) if usage is None else self._spending(model, usage))

    def _spending(self, model: str, usage: Usage) -> Spent:
        tokens = None if usage == UNKNOWN_USAGE else usage.input_tokens + usage.output_tokens
        return Spent(1, tokens, self.cost(model, usage) or 0.0)
