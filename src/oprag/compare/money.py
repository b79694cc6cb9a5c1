"""What calls cost, and the ceiling that a run must not pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

from oprag.compare.answer_tables import Spent
from oprag.errors import ExperimentError, OptionError
from oprag.masking import describe
from oprag.methods.model_calls import Usage
from oprag.options import check_count, check_names

__all__ = ["LimitReached", "Limits", "Meter", "Price", "as_limits", "as_price"]

_MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a model costs, in any one currency, for a million tokens.

    Attributes:
        input: What it reads.
        output: What it writes.
        cached: What it reads and has read before; as `input` by default.

    Raises:
        ExperimentError: A price is no number, or negative.
    """

    input: float
    output: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if not (value is None and field.name == "cached") and not _is_amount(value):
                raise ExperimentError(
                    f"the price of {field.name} must be a number from 0, got {describe(value)}", value
                )

    def of(self, usage: Usage) -> float:
        """What these tokens cost.

        Args:
            usage: The tokens of one call, or of several together.
        """
        # Some count what they had read before apart from what they read.
        fresh = max(0, usage.input_tokens - usage.cached_tokens)
        cached = self.input if self.cached is None else self.cached
        spent = fresh * self.input + usage.cached_tokens * cached + usage.output_tokens * self.output
        return spent / _MILLION


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that an experiment may spend on models, over all its runs; None for no limit.

    Attributes:
        calls: Calls of models, failed ones included.
        tokens: Tokens that models read and write.
        money: What they cost, in the currency of the prices.

    Raises:
        ExperimentError: A limit is no number, or negative.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None

    def __post_init__(self) -> None:
        try:
            check_count("calls", self.calls, least=0)
            check_count("tokens", self.tokens, least=0)
        except OptionError as error:
            raise ExperimentError(f"a limit of {error}", error.value) from error
        if self.money is not None and not _is_amount(self.money):
            raise ExperimentError(f"the limit of money must be a number from 0, got {describe(self.money)}", self.money)


class LimitReached(str):
    """Why a run stopped, where a higher limit would let it go on."""

    __slots__ = ()


class Meter:
    """Counts what was spent and what calls on their way may spend.

    Args:
        limits: The most of it.
        spent: What was spent before.
    """

    def __init__(self, limits: Limits, spent: Spent) -> None:
        self.limits = limits
        self.spent = spent
        self._reserved = Spent()
        self._limited = limits != Limits()

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self._limited

    def refusal(self, call: Spent) -> str | None:
        """Why one more call, with so many tokens at most, must not be made; None where it may."""
        if not self.limited:
            return None
        for name, limit in vars(self.limits).items():
            spent = getattr(self.spent, name) + getattr(self._reserved, name)
            if limit is not None and spent + getattr(call, name) > limit:
                return LimitReached(
                    f"the limit of {limit:,} {name} is reached: {spent:,.6g} are spent, and the next call may take more"
                )
        return None

    def reserve(self, call: Spent) -> None:
        """A call is on its way."""
        self._reserved = _sum(self._reserved, call)

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """A call is over."""
        self._reserved = _sum(self._reserved, reserved, -1)
        self.spent = _sum(self.spent, spent)


def as_price(given: Any) -> Price:
    """A price from a mapping.

    Raises:
        ExperimentError: It is none.
    """
    return given if isinstance(given, Price) else _made(Price, given, "price", ("input", "output"))


def as_limits(given: Any) -> Limits:
    """Limits from a mapping; none by default.

    Raises:
        ExperimentError: They are none.
    """
    return given if isinstance(given, Limits) else _made(Limits, {} if given is None else given, "limits", ())


def _made(kind: Any, given: Any, what: str, needed: tuple[str, ...]) -> Any:
    if not isinstance(given, Mapping):
        raise ExperimentError(f"{what} must be a table, got {describe(given)}", given)
    try:
        check_names(given, [field.name for field in fields(kind)])
    except OptionError as error:
        raise ExperimentError(f"{what}: {error}", given) from error
    missing = [name for name in needed if name not in given]
    if missing:
        raise ExperimentError(f"{what} has no {' and no '.join(missing)}", given)
    return kind(**given)


def _is_amount(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and 0 <= float(value) < float("inf")


def _sum(first: Spent, second: Spent, sign: int = 1) -> Spent:
    return Spent(
        first.calls + sign * second.calls, first.tokens + sign * second.tokens, first.money + sign * second.money
    )
