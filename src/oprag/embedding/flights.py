"""Doing a thing once, however many threads and tasks want it at the same time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from oprag.files.fork_safe import ForkSafeLock
from oprag.steps import Step

__all__ = ["Flights", "landing"]

# Seconds after which a call counts as lost: a server may hang, and an event loop that was left never goes on.
_PATIENCE = 60.0


class Flight(Future[Any]):
    """Something that is being made."""

    def __init__(self) -> None:
        super().__init__()
        self._started = time.perf_counter()

    @property
    def seconds_left(self) -> float:
        """How long it is worth waiting for."""
        return max(0.0, self._started + _PATIENCE - time.perf_counter())


class Flights:
    """What is being made at the moment, and by whom."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._flying: dict[Hashable, Flight] = {}
        self._process = os.getpid()

    def claim(self, keys: Iterable[Hashable]) -> tuple[dict[Any, Flight], dict[Any, Flight]]:
        """Who makes what.

        Returns:
            What the caller is to make, and to `resolve` whatever happens, and what others are making: their results
            will be None where they fail.
        """
        mine: dict[Any, Flight] = {}
        others: dict[Any, Flight] = {}
        with self._lock:
            if self._process != os.getpid():
                # Behind a fork nobody is there to resolve them.
                self._flying.clear()
                self._process = os.getpid()
            for key in keys:
                flight = self._flying.get(key)
                if flight is not None and flight.seconds_left:
                    others[key] = flight
                else:
                    mine[key] = self._flying[key] = Flight()
        return mine, others

    def resolve(self, mine: Mapping[Any, Flight], result_of: Callable[[Any], Any]) -> None:
        """Tell those who wait.

        Args:
            mine: What `claim` gave the caller to make.
            result_of: The result of each, None where it was not made.
        """
        with self._lock:
            for key, flight in mine.items():
                # Somebody else may have taken over what took too long.
                if self._flying.get(key) is flight:
                    del self._flying[key]
        for key, flight in mine.items():
            flight.set_result(result_of(key))


def landing(flights: Sequence[Flight]) -> Step:
    """Wait for the results of others, for all of them together until one deadline; None for one that is lost."""
    return Step(lambda: _wait(flights), lambda: _await(flights))


def _wait(flights: Sequence[Flight]) -> list[Any]:
    # Whoever blocks an event loop must not wait for a task that needs it.
    done, _ = wait(flights, 0 if _in_a_loop() else _seconds_left(flights))
    return [flight.result() if flight in done else None for flight in flights]


async def _await(flights: Sequence[Flight]) -> list[Any]:
    import asyncio

    # `asyncio.wait` leaves them alone if the one who waits is cancelled: others wait for them, too.
    awaited = [asyncio.wrap_future(flight) for flight in flights]
    await asyncio.wait(awaited, timeout=_seconds_left(flights))
    return [one.result() if one.done() else None for one in awaited]


def _seconds_left(flights: Sequence[Flight]) -> float:
    return max((flight.seconds_left for flight in flights), default=0.0)


def _in_a_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
