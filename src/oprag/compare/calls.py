"""Calls of models, and what makes and allows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from oprag.compare.db.records import Spent
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["Allowance", "Call", "Caller", "Made"]


class Call(NamedTuple):
    """A call to be made.

    Attributes:
        key: The content address of its reply.
        model: The name of the model in the experiment.
        prompt: What it reads.
    """

    key: str
    model: str
    prompt: Prompt


class Made(NamedTuple):
    """A call that was made.

    Attributes:
        call: The call.
        completion: What came back; kept already, so that it outlives the process.
        spent: What it took.
    """

    call: Call
    completion: Completion
    spent: Spent


class Caller(Protocol):
    """Makes calls."""

    @property
    def running(self) -> int:
        """How many calls are on their way."""
        ...

    def begin(self, call: Call) -> None:
        """Make a call, and keep its reply."""
        ...

    def take(self) -> Sequence[Made]:
        """Wait for the next call that has ended, and give it with all others that have."""
        ...

    def at_most(self, call: Call) -> Spent:
        """What a call may take, as far as can be told before it is made."""
        ...


class Allowance(Protocol):
    """Says when no more calls may be made; see `oprag.compare.money.Meter`."""

    @property
    def limited(self) -> bool:
        """Whether there is any limit, so that it matters what a call may take."""
        ...

    def refusal(self, call: Spent) -> str | None:
        """Why one more call, which takes so much at most, must not be made; None where it may."""
        ...

    def reserve(self, call: Spent) -> None:
        """A call is on its way."""
        ...

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """A call is over."""
        ...
