"""Threads for model calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

__all__ = ["ModelThreads"]

Result = TypeVar("Result")


class ModelThreads(Generic[Result]):
    """Runs functions in threads; results are returned in order of completion.

    The threads are daemons, so that a process can exit without waiting for a model.
    """

    def __init__(self, threads: int) -> None:
        self._max_threads = threads
        self._started = 0
        self._waiting: SimpleQueue[Callable[[], Result] | None] = SimpleQueue()
        self._done: SimpleQueue[Result | BaseException] = SimpleQueue()
        self._running = 0

    @property
    def running(self) -> int:
        """Number of functions whose results have not been returned yet."""
        return self._running

    def submit(self, function: Callable[[], Result]) -> None:
        """Run a function as soon as a thread is free."""
        self._running += 1
        if self._started < min(self._max_threads, self._running):
            self._started += 1
            threading.Thread(target=self._work, name=f"oprag-model-{self._started}", daemon=True).start()
        self._waiting.put(function)

    def take(self, waiting: Callable[[], None] = lambda: None) -> list[Result]:
        """Wait for a function to finish; return the results of all finished functions."""
        taken: list[Result] = []
        while not taken or not self._done.empty():
            try:
                # A wait without a timeout could not be interrupted with Ctrl-C on Windows.
                result = self._done.get(timeout=0.5)
            except Empty:
                waiting()
                continue
            self._running -= 1
            if isinstance(result, BaseException):
                raise result
            taken.append(result)
        return taken

    def close(self) -> None:
        """Let each thread end after its current function."""
        for _ in range(self._started):
            self._waiting.put(None)
        self._started = 0

    def _work(self) -> None:
        while (function := self._waiting.get()) is not None:
            try:
                self._done.put(function())
            except BaseException as error:  # noqa: BLE001 - raised again by `take`
                self._done.put(error)
