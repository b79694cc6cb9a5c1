"""Prices of models, and the limits of what an experiment may spend."""

from __future__ import annotations

from oprag.compare.validation import Amount, Natural, StrictModel
from oprag.methods.model_calls import Usage

__all__ = ["Limits", "Price"]

_MILLION = 1_000_000


class Price(StrictModel):
    """Price of a million tokens of a model, in any one currency.

    Attributes:
        input: Price of the tokens that it reads.
        output: Price of the tokens that it writes.
        cached: Price of the tokens that it reads from its cache; that of `input` by default.

    Raises:
        ExperimentError: A price is not a number, or negative.
    """

    input: Amount
    output: Amount
    cached: Amount | None = None

    def of(self, usage: Usage) -> float:
        """The price of these tokens.

        Args:
            usage: The tokens of one call, or of several together.
        """
        # Some providers count cached tokens apart from the others.
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        cached = self.input if self.cached is None else self.cached
        spent = fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output
        return spent / _MILLION


class Limits(StrictModel):
    """Maximum that an experiment may spend on models, over all its runs; None for no limit.

    Attributes:
        calls: Calls of models, failed ones included.
        tokens: Tokens that models read and write.
        money: Price of these tokens, in the currency of the prices.

    Raises:
        ExperimentError: A limit is not a number, or negative.
    """

    calls: Natural | None = None
    tokens: Natural | None = None
    money: Amount | None = None
