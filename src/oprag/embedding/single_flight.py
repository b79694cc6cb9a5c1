"""Deduplicate concurrent work: threads and tasks that need the same result at the same time compute it once."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from oprag.files.fork_safe import ForkSafeLock
from oprag.steps import Step

__all__ = ["SingleFlight", "wait_for"]

# Seconds after which a computation is considered lost: a server may hang, or the event loop of a task may be abandoned.
_PATIENCE = 60.0


class Flight(Future[Any]):
    """The pending result of a computation."""

    def __init__(self) -> None:
        super().__init__()
        self._started = time.perf_counter()

    @property
    def seconds_left(self) -> float:
        """Remaining time to wait for the result, in seconds."""
        return max(0.0, self._started + _PATIENCE - time.perf_counter())


class SingleFlight:
    """Running computations by key: the first caller computes the result, the others wait for it."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._flights: dict[Hashable, Flight] = {}
        self._process = os.getpid()

    def claim(self, keys: Iterable[Hashable]) -> tuple[dict[Any, Flight], dict[Any, Flight]]:
        """Divide keys into those that the caller must compute and resolve, and those computed by other callers."""
        mine: dict[Any, Flight] = {}
        others: dict[Any, Flight] = {}
        with self._lock:
            if self._process != os.getpid():
                # After a fork, the threads that would resolve them do not exist.
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
        """Pass results to waiting callers; a key without a result is resolved with None."""
        with self._lock:
            for key, flight in mine.items():
                # Another caller may have claimed the key again after the timeout.
                if self._flights.get(key) is flight:
                    del self._flights[key]
        for key, flight in mine.items():
            flight.set_result(results.get(key))


def wait_for(flights: Sequence[Flight]) -> Step:
    """Wait for results of other callers, until the latest of their deadlines; None for a result that is lost."""

    def run() -> list[Any]:
        # Do not block an event loop that another task needs to produce the result.
        done, _ = wait(flights, 0 if _in_event_loop() else seconds_left())
        return [flight.result() if flight in done else None for flight in flights]

    async def arun() -> list[Any]:
        import asyncio

        # `asyncio.wait` does not cancel the futures if this task is cancelled; other callers wait for them, too.
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
