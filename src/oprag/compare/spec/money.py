"""Prices of models, and spending limits."""

from __future__ import annotations

from oprag.compare.validation import Amount, Natural, StrictModel
from oprag.methods.model_calls import Usage

__all__ = ["Limits", "Price"]


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
