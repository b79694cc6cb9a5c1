"""Waiting for what is known to happen, so that tests of concurrency guess no times."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

# Seconds; only a test that fails waits for so long.
PATIENCE = 60.0
_STEP = 0.005


class Meeting:
    """Holds calls until a number of them are here at the same time; from then on it is open.

    A limit that is too low never opens it, however fast the machine is. To see one that is too high, the calls that met
    stay for a moment longer: a slow machine sees less, and fails nothing that is right.

    Args:
        calls: How many calls have to be here at the same time; without a number only `open` opens it.
    """

    def __init__(self, calls: int | None = None) -> None:
        self._calls = calls
        self._here = 0
        self._lock = threading.Lock()
        self._open = threading.Event()

    def open(self) -> None:
        """Let all calls go on, those that come later too."""
        self._open.set()

    def wait(self) -> None:
        """Wait in a thread."""
        if self._is_last():
            time.sleep(4 * _STEP)
            self.open()
        assert self._open.wait(PATIENCE), self._missing()

    async def wait_async(self) -> None:
        """Wait in a task."""
        if self._is_last():
            await asyncio.sleep(4 * _STEP)
            self.open()
        await until(self._open.is_set, self._missing)

    def _is_last(self) -> bool:
        with self._lock:
            self._here += 1
            return self._here == self._calls

    def _missing(self) -> str:
        return f"{self._here} calls came, of {self._calls} that were to be here at the same time"


async def until(happened: Callable[[], object], told: Callable[[], str] = lambda: "it did not happen") -> None:
    """Wait in a task until something has happened."""
    for _ in range(round(PATIENCE / _STEP)):
        if happened():
            return
        await asyncio.sleep(_STEP)
    raise AssertionError(told())


async def others() -> set[asyncio.Task[Any]]:
    """The tasks that run beside this one, once those had a moment that are about to end."""
    for _ in range(10):
        await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}
