"""Doing a thing once, however many threads and tasks want it at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from oprag.steps import Step
from oprag.vectors.fork_safe import ForkSafeLock

__all__ = ["Flights", "landing"]

# Seconds after which a flight counts as lost: an event loop that was left never goes on.
_PATIENCE = 300.0


class Flights:
    """What is being made at the moment, and by whom."""

    def __init__(self) -> None:
        self._lock = ForkSafeLock()
        self._flying: dict[Hashable, Future[Any]] = {}
        self._process = os.getpid()

    def board(self, keys: Iterable[Hashable]) -> tuple[list[Any], dict[Any, Future[Any]]]:
        """Who makes what.

        Returns:
            The keys that the caller is to make, and to `land` whatever happens, and for the others what will hold the
            result of whoever makes them: None where that fails.
        """
        mine: list[Any] = []
        others: dict[Any, Future[Any]] = {}
        with self._lock:
            if self._process != os.getpid():
                # Behind a fork nobody is there to land them.
                self._flying.clear()
                self._process = os.getpid()
            for key in keys:
                if (flight := self._flying.get(key)) is not None:
                    others[key] = flight
                else:
                    self._flying[key] = Future()
                    mine.append(key)
        return mine, others

    def land(self, keys: Sequence[Hashable], result_of: Callable[[Any], Any]) -> None:
        """Tell those who wait.

        Args:
            keys: What `board` gave the caller to make.
            result_of: The result of each, None where it was not made.
        """
        with self._lock:
            flights = [self._flying.pop(key, None) for key in keys]
        for key, flight in zip(keys, flights, strict=True):
            if flight is not None:
                flight.set_result(result_of(key))


def landing(flights: Sequence[Future[Any]]) -> Step:
    """Wait for the results of others; None for one that is lost."""
    return Step(lambda: [_wait(flight) for flight in flights], lambda: _await(flights))


def _wait(flight: Future[Any]) -> Any:
    try:
        # Who blocks an event loop must not wait for a task that needs it.
        return flight.result(0 if _in_a_loop() else _PATIENCE)
    except TimeoutError:
        return None


async def _await(flights: Sequence[Future[Any]]) -> list[Any]:
    import asyncio

    results: list[Any] = []
    for flight in flights:
        try:
            # Shielded: who is cancelled while waiting must not cancel what others wait for.
            results.append(await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(flight)), _PATIENCE))
        except TimeoutError:
            results.append(None)
    return results


def _in_a_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
