"""Threads for model calls."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

__all__ = ["ModelThreads"]

Raw = TypeVar("Raw")
Result = TypeVar("Result")


class ModelThreads(Generic[Raw, Result]):
    """Runs functions in threads, and finishes their results, which are taken in the sequence in which they end.

    Results of several threads at about the same time are finished together, by one of them, while the others go on: a
    thread that waited for its turn at a file would be woken for each other thread's turn. The threads are daemons: a
    process that exits does not wait for a model.
    """

    def __init__(self, threads: int, finish: Callable[[Sequence[Raw]], Sequence[Result]]) -> None:
        self._most = threads
        self._finish = finish
        self._started = 0
        self._waiting: SimpleQueue[Callable[[], Raw] | None] = SimpleQueue()
        self._given: deque[Raw] = deque()
        self._finishing = threading.Lock()
        self._done: SimpleQueue[Result | BaseException] = SimpleQueue()
        self._running = 0

    @property
    def running(self) -> int:
        """Number of functions whose results were not taken yet."""
        return self._running

    def submit(self, function: Callable[[], Raw]) -> None:
        """Run a function as soon as a thread is free."""
        self._running += 1
        if self._started < min(self._most, self._running):
            self._started += 1
            threading.Thread(target=self._work, name=f"oprag-model-{self._started}", daemon=True).start()
        self._waiting.put(function)

    def take(self, waiting: Callable[[], None] = lambda: None) -> list[Result]:
        """Wait for a function to end; return the results of all that have ended."""
        taken: list[Result] = []
        while not taken or not self._done.empty():
            try:
                # With a timeout, so that Ctrl-C is heard on every system.
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
                self._given.append(function())
            except BaseException as error:  # noqa: BLE001 - raised again where the result is taken
                self._done.put(error)
            else:
                self._finish_given()

    def _finish_given(self) -> None:
        """Finish all results, unless another thread does, which looks again before it leaves."""
        while self._given and self._finishing.acquire(blocking=False):
            given = [self._given.popleft() for _ in range(len(self._given))]
            results: Sequence[Result | BaseException]
            try:
                results = self._finish(given)
            except BaseException as error:  # noqa: BLE001 - raised again where the results are taken
                results = [error] * len(given)
            for result in results:
                self._done.put(result)
            self._finishing.release()
