"""One body for sync and async: a generator yields steps that take time, and is sent their results.

A body may contain other bodies (`yield from`), run several at the same time (`Parallel`), and emit values before it
returns (`Emit`). `run_sync` and `run_async` return its result; `iterate_sync` and `iterate_async` yield what it emits.

An exception of a step is raised in the body, at its `yield`, and so are a cancellation and the end of an iteration that
was closed. So a body closes in `finally` what it has opened, with a step if that takes time.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = [
    "Emit",
    "Limit",
    "Parallel",
    "Step",
    "Steps",
    "iterate_async",
    "iterate_sync",
    "run_async",
    "run_sync",
]

T = TypeVar("T")

# Threads are started when they are needed and stay for the next question. No more than this wait for models at once.
_MAX_THREADS = 1_024


class Step(NamedTuple):
    """Something that takes time; without an async function it runs in a thread where the body is async.

    Attributes:
        run: Does it, and returns the result that is sent to the body.
        arun: Does the same without blocking.
    """

    run: Callable[[], Any]
    arun: Callable[[], Awaitable[Any]] | None = None


class Emit(NamedTuple):
    """A value for the caller, which is there before the result.

    Attributes:
        value: The value.
    """

    value: Any


class Limit:
    """A maximum number of calls at the same time; can be shared by several questions, in threads or on one event loop.

    Args:
        size: The maximum number.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.threads = threading.Semaphore(size)

    @cached_property
    def tasks(self) -> asyncio.Semaphore:
        """The places of tasks, as `threads` are those of threads."""
        from asyncio import Semaphore

        return Semaphore(self.size)

    def taken(self) -> Step:
        """Wait for a place; the result is the semaphore to release."""
        return Step(lambda: _acquired(self.threads), lambda: _acquired_async(self.tasks))


@dataclass(frozen=True)
class Parallel:
    """Run several bodies at the same time; the result is a list of theirs. What they emit is dropped.

    The calling thread takes part, so a single body needs no other one. Each thread has the caller's context variables.
    The first error is raised: running threads are waited for, running tasks are cancelled.

    Attributes:
        bodies: Functions that return a body each.
        limit: How many run at the same time.
        stop: Whether a result is reason to begin no further body; those that have not begun have the result None.
    """

    bodies: Sequence[Callable[[], Steps[Any]]]
    limit: Limit
    stop: Callable[[Any], bool] | None = None

    def run(self) -> list[Any]:
        """Run them in threads."""
        if len(self.bodies) == 1:
            with self.limit.threads:
                return [run_sync(self.bodies[0]())]
        results: list[Any] = [None] * len(self.bodies)
        waiting = deque(enumerate(self.bodies))

        def work() -> None:
            while True:
                with self.limit.threads:
                    try:
                        number, body = waiting.popleft()
                    except IndexError:
                        return
                    try:
                        result = results[number] = run_sync(body())
                    except BaseException:
                        waiting.clear()
                        raise
                if self.stop is not None and self.stop(result):
                    waiting.clear()

        helpers = min(self.limit.size, len(self.bodies)) - 1
        others = [_threads().submit(copy_context().run, work) for _ in range(helpers)]
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

    async def arun(self) -> list[Any]:
        """Run them in tasks; whatever ends this early, they have ended by then too."""
        import asyncio

        async def work(body: Callable[[], Steps[Any]]) -> Any:
            async with self.limit.tasks:
                result = await run_async(body())
            if self.stop is not None and self.stop(result):
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

        tasks: list[asyncio.Task[Any]] = []
        if len(self.bodies) == 1:
            return [await work(self.bodies[0])]
        tasks += [asyncio.ensure_future(work(body)) for body in self.bodies]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION) if tasks else None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            # Where nothing was stopped, a task that is cancelled has been so by what it called: its result raises that.
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        return [None if stopped and task.cancelled() else task.result() for task in tasks]


Steps = Generator[Step | Parallel | Emit, Any, T]
"""A body: yields what is to be done, is sent the results, and returns its own."""


def run_sync(steps: Steps[T]) -> T:
    """Perform all steps, and return the result."""
    while isinstance(reached := _perform(steps), Emit):
        pass
    return reached.result


async def run_async(steps: Steps[T]) -> T:
    """As `run_sync`, async."""
    while isinstance(reached := await _perform_async(steps), Emit):
        pass
    return reached.result


def iterate_sync(steps: Steps[Any]) -> Iterator[Any]:
    """Perform all steps, and yield what is emitted."""
    while isinstance(reached := _perform(steps), Emit):
        try:
            yield reached.value
        except BaseException:
            with suppress(_Closed):
                _perform(steps, closing=True)
            raise


async def iterate_async(steps: Steps[Any]) -> AsyncIterator[Any]:
    """As `iterate_sync`, async."""
    while isinstance(reached := await _perform_async(steps), Emit):
        try:
            yield reached.value
        except BaseException:
            with suppress(_Closed):
                await _perform_async(steps, closing=True)
            raise


class _Result(NamedTuple, Generic[T]):
    """The end of a body."""

    result: T


class _Closed(BaseException):
    """An iteration was closed. A body that gets a GeneratorExit could not do anything before it ends."""


def _perform(steps: Steps[T], *, closing: bool = False) -> Emit | _Result[T]:
    """Perform steps up to the next value that is emitted, or to the end."""
    try:
        step = steps.throw(_Closed()) if closing else next(steps)
        while not isinstance(step, Emit):
            try:
                result = step.run()
            except BaseException as error:  # noqa: BLE001 - the body says what failed, or cleans up
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        return _Result(stop.value)
    return step


async def _perform_async(steps: Steps[T], *, closing: bool = False) -> Emit | _Result[T]:
    """As `_perform`, async."""
    try:
        step = steps.throw(_Closed()) if closing else next(steps)
        while not isinstance(step, Emit):
            try:
                result = await (_in_thread(step.run) if step.arun is None else step.arun())
            except BaseException as error:  # noqa: BLE001 - as above
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        return _Result(stop.value)
    return step


def _in_thread(run: Callable[[], Any]) -> Awaitable[Any]:
    # Loaded only where something is async.
    from asyncio import to_thread

    return to_thread(run)


def _acquired(threads: threading.Semaphore) -> threading.Semaphore:
    threads.acquire()
    return threads


async def _acquired_async(tasks: asyncio.Semaphore) -> asyncio.Semaphore:
    await tasks.acquire()
    return tasks


_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _threads() -> ThreadPoolExecutor:
    """One pool for all, since starting threads takes longer than a question should."""
    global _pool  # noqa: PLW0603
    with _pool_lock:
        if _pool is None:
            from concurrent.futures import ThreadPoolExecutor

            _pool = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="oprag")
        return _pool


def _settle(futures: Sequence[Future[None]]) -> list[BaseException]:
    """Wait until all have ended; the errors that they ended with."""
    for future in futures:
        future.cancel()
    return [error for future in futures if not future.cancelled() and (error := future.exception()) is not None]


def _forget_threads() -> None:
    """In a forked process the threads of its parent do not run."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
