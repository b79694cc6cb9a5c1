"""Doing several things at the same time, at most so many of them, in threads or in tasks."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from contextvars import copy_context
from typing import TypeVar

__all__ = ["Limit", "aside_by_side", "side_by_side"]

Item = TypeVar("Item")
Done = TypeVar("Done")

# Threads are started when they are needed and stay for the next question. No more than this wait for models at once.
_MOST_THREADS = 1_024
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


class Limit:
    """At most so many calls at the same time; can be shared by several questions, in threads or on one event loop.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._threads = threading.Semaphore(size)
        self._tasks = asyncio.Semaphore(size)

    def held(self) -> AbstractContextManager[object]:
        """A place among the calls for as long as the block lasts, for a thread."""
        return self._threads

    def aheld(self) -> AbstractAsyncContextManager[object]:
        """The same, for a task."""
        return self._tasks


def side_by_side(
    function: Callable[[Item], Done],
    items: Sequence[Item],
    limit: Limit,
    failed: Callable[[Done], bool] | None = None,
) -> list[Done | None]:
    """What the function makes of each item, in the sequence of the items.

    The calling thread takes part, so a single item needs no other one. Each thread has the caller's context variables.

    Args:
        function: Called for each item.
        items: The items.
        limit: How many at the same time.
        failed: Whether a result is reason to begin with no further item.

    Returns:
        The results; None for items that were not begun.

    Raises:
        Exception: What the function raised first. Calls that were running have ended by then.
    """
    if len(items) == 1:
        with limit.held():
            return [function(items[0])]
    results: list[Done | None] = [None] * len(items)
    waiting = deque(enumerate(items))

    def work() -> None:
        while True:
            with limit.held():
                try:
                    number, item = waiting.popleft()
                except IndexError:
                    return
                try:
                    result = results[number] = function(item)
                except BaseException:
                    waiting.clear()
                    raise
            if failed is not None and failed(result):
                waiting.clear()

    others = [_threads().submit(copy_context().run, work) for _ in range(min(limit.size, len(items)) - 1)]
    try:
        work()
    except Exception:
        _settle(others)
        raise
    except BaseException:
        # An interrupt does not wait for a model.
        waiting.clear()
        raise
    for error in _settle(others):
        raise error
    return results


async def aside_by_side(
    function: Callable[[Item], Awaitable[Done]],
    items: Sequence[Item],
    limit: Limit,
    failed: Callable[[Done], bool] | None = None,
) -> list[Done | None]:
    """As `side_by_side`, in tasks; whatever ends it early, its own tasks have ended by then too.

    Raises:
        Exception: What the function raised first; the other calls are cancelled.
    """

    async def work(item: Item) -> Done:
        async with limit.aheld():
            result = await function(item)
        if failed is not None and failed(result):
            cancel()
        return result

    stopped = False

    def cancel() -> None:
        nonlocal stopped
        stopped = True
        current = asyncio.current_task()
        for task in tasks:
            if task is not current:
                task.cancel()

    if len(items) == 1:
        tasks: list[asyncio.Task[Done]] = []
        return [await work(items[0])]
    tasks = [asyncio.ensure_future(work(item)) for item in items]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION) if tasks else None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return _results(tasks, stopped=stopped)


def _results(tasks: Sequence[asyncio.Task[Done]], *, stopped: bool) -> list[Done | None]:
    """What ended tasks gave; None for those that were stopped.

    Raises:
        Exception: The first error.
        CancelledError: One was cancelled, and not by us: what it called has cancelled itself.
    """
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    if not stopped and any(task.cancelled() for task in tasks):
        raise asyncio.CancelledError
    return [None if task.cancelled() else task.result() for task in tasks]


def _settle(futures: Sequence[Future[None]]) -> list[BaseException]:
    """Wait until all have ended; the errors that they ended with."""
    for future in futures:
        future.cancel()
    return [error for future in futures if not future.cancelled() and (error := future.exception()) is not None]


def _threads() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603 - one for all, since starting threads takes longer than a question should
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="oprag")
        return _pool


def _forget_threads() -> None:
    """In a forked process the threads of its parent do not run."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
