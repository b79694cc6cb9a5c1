"""What a worker asks the desk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from oprag.compare.db.cache import Record
from oprag.compare.db.records import Spent
from oprag.compare.on_ray.desk import Refusal, Turn
from oprag.errors import OpragError, ResultsFileError

__all__ = ["PATIENCE", "AtDesk", "AtDeskMeter", "ask_desk", "cause_of"]

_AGAIN = 0.2  # seconds

PATIENCE = 600.0
"""Seconds to wait for another worker's call: a machine that is lost with its calls holds nobody up for ever."""


def ask_desk(desk: Any, name: str, *arguments: Any) -> Any:
    """What a method of the desk gives.

    Args:
        desk: The handle of the actor.
        name: The name of the method.
        arguments: Its arguments.

    Raises:
        ResultsFileError: The process is gone.
        Exception: What the method raises.
    """
    import ray

    try:
        return ray.get(getattr(desk, name).remote(*arguments))
    except ray.exceptions.RayTaskError as error:
        raise cause_of(error) from None
    except ray.exceptions.RayActorError as error:
        raise ResultsFileError(
            "the process that writes the results file has died; what it has written is in the file, and another start "
            "goes on",
            name,
        ) from error


def cause_of(error: Any) -> Exception:
    """What a function raised on another machine: our own error itself, any other one with its traceback as text."""
    cause = error.cause
    return cause if isinstance(cause, OpragError) else error.as_instanceof_cause()


class AtDesk:
    """A `WorkCache` that asks the desk.

    Args:
        desk: The handle of the actor.
    """

    def __init__(self, desk: Any) -> None:
        self._desk = desk

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None where there is none."""
        found: list[Record | None] = ask_desk(self._desk, "do", "get", kind, keys)
        return found

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Keep records of one kind, and give those that are kept."""
        kept: list[Record] = ask_desk(self._desk, "do", "put", records)
        return kept


class AtDeskMeter:
    """An `Allowance` that asks the desk, which counts for all workers.

    Args:
        desk: The handle of the actor.
        turn: The turn of this worker.
    """

    def __init__(self, desk: Any, turn: Turn) -> None:
        self._desk = desk
        self._turn = turn
        self._running = 0

    @property
    def limited(self) -> bool:
        """Whether there may be a limit: only the desk knows."""
        return True

    def refusal(self, call: Spent) -> str | None:
        """Why one more call must not be made; None where it may, and then it is reserved.

        A worker without a call on its way waits for those of the others: only what is spent is final.
        """
        until = time.monotonic() + PATIENCE
        while True:
            refused: Refusal | None = ask_desk(self._desk, "reserve", self._turn, call)
            if refused is None:
                return None
            if refused.final or self._running or time.monotonic() > until:
                return refused.reason
            time.sleep(_AGAIN)

    def reserve(self, call: Spent) -> None:  # noqa: ARG002
        """It was reserved when it was granted."""
        self._running += 1

    def settle(self, reserved: Spent, spent: Spent) -> None:
        """A call is over."""
        self._running -= 1
        # Nobody waits for that; the desk hears of it before all that this worker asks it later.
        self._desk.settle.remote(self._turn, reserved, spent)
