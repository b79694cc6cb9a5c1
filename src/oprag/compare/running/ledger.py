"""What a run has spent, and the limit that it must not pass."""

from __future__ import annotations

from oprag.compare.db.records import Spent
from oprag.compare.spec.money import Limits

__all__ = ["Ledger", "LimitReached"]


class LimitReached(str):
    """Why a run stopped, where a higher limit would let it go on."""

    __slots__ = ()


class Ledger:
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
        for name, limit in self.limits:
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
