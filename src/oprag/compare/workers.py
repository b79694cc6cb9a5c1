"""Threads that wait for models."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

__all__ = ["Workers"]

Result = TypeVar("Result")


class Workers(Generic[Result]):
    """Runs functions in threads; what they give is taken in the sequence in which they end.

    The threads do not keep a process alive: whoever leaves does not wait for a model.

    Args:
        threads: The most functions at the same time.
    """

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._started = 0
        self._waiting: SimpleQueue[Callable[[], Result] | None] = SimpleQueue()
        self._done: SimpleQueue[Result | BaseException] = SimpleQueue()
        self._running = 0

    @property
    def running(self) -> int:
        """How many functions were submitted whose results were not taken."""
        return self._running

    def submit(self, function: Callable[[], Result]) -> None:
        """Run a function as soon as a thread is free."""
        self._running += 1
        if self._started < min(self._most, self._running):
            self._started += 1
            threading.Thread(target=self._work, name=f"oprag-model-{self._started}", daemon=True).start()
        self._waiting.put(function)

    def take(self, waiting: Callable[[], None] = lambda: None) -> Result:
        """Wait until a function has ended, and give its result.

        Args:
            waiting: Called every half second meanwhile.

        Raises:
            BaseException: What it raised.
        """
        while True:
            try:
                # With a timeout, so that Ctrl-C is heard on every system.
                result = self._done.get(timeout=0.5)
                break
            except Empty:
                waiting()
        self._running -= 1
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Let the threads end when they have done what they are doing."""
        for _ in range(self._started):
            self._waiting.put(None)
        self._started = 0

    def _work(self) -> None:
        while (function := self._waiting.get()) is not None:
            try:
                self._done.put(function())
            except BaseException as error:  # noqa: BLE001 - raised again where the result is taken
                self._done.put(error)
