"""Doing a thing once, however many threads and tasks want it at the same time."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from oprag.files.fork_safe import ForkSafeLock
from oprag.steps import Step

__all__ = ["SingleFlight", "wait_for"]

# Seconds after which a call counts as lost: a server may hang, and an event loop that was left never goes on.
_PATIENCE = 60.0


class Flight(Future[Any]):
    """A result that somebody is making."""

    def __init__(self) -> None:
        super().__init__()
        self._started = time.perf_counter()

    @property
    def seconds_left(self) -> float:
        """How long it is worth waiting for."""
        return max(0.0, self._started + _PATIENCE - time.perf_counter())


class SingleFlight:
    """What is being made at the moment: the first caller makes it, the others wait for its result."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._flights: dict[Hashable, Flight] = {}
        self._process = os.getpid()

    def claim(self, keys: Iterable[Hashable]) -> tuple[dict[Any, Flight], dict[Any, Flight]]:
        """Divide keys among callers."""
        mine: dict[Any, Flight] = {}
        others: dict[Any, Flight] = {}
        with self._lock:
            if self._process != os.getpid():
                # After a fork nobody is there to resolve them.
                self._flights.clear()
                self._process = os.getpid()
            for key in keys:
                flight = self._flights.get(key)
                if flight is not None and flight.seconds_left:
                    others[key] = flight
                else:
                    mine[key] = self._flights[key] = Flight()
        return mine, others

    def resolve(self, mine: Mapping[Any, Flight], results: Mapping[Any, Any]) -> None:
        """Hand out results."""
        with self._lock:
            for key, flight in mine.items():
                # Another caller may have taken over what took too long.
                if self._flights.get(key) is flight:
                    del self._flights[key]
        for key, flight in mine.items():
            flight.set_result(results.get(key))


def wait_for(flights: Sequence[Flight]) -> Step:
    """Wait for the results of others, for all of them together until one deadline; None for one that is lost."""

    def run() -> list[Any]:
        # A caller that blocks an event loop must not wait for a task that needs it.
        done, _ = wait(flights, 0 if _in_event_loop() else seconds_left())
        return [flight.result() if flight in done else None for flight in flights]

    async def arun() -> list[Any]:
        import asyncio

        # `asyncio.wait` does not cancel them if this task is cancelled: others wait for them, too.
        awaited = [asyncio.wrap_future(flight) for flight in flights]
        await asyncio.wait(awaited, timeout=seconds_left())
        return [one.result() if one.done() else None for one in awaited]

    def seconds_left() -> float:
        return max(flight.seconds_left for flight in flights)

    return Step(run, arun)


def _in_event_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
