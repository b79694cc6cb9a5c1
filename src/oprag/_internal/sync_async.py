"""Shared sync and async code: a generator (the body) yields blocking steps and receives their results.

A body may delegate to other bodies (`yield from`), run several concurrently (`Parallel`), and emit values before it
returns (`Emit`). `run_sync` and `run_async` return its result; `iterate_sync` and `iterate_async` yield the emitted
values.

If a step raises, is cancelled, or the iteration is closed early, the exception is raised in the body at its `yield`. A
body can therefore clean up in `finally`, also with steps.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = [
    "END",
    "Emit",
    "Items",
    "Limit",
    "Parallel",
    "Step",
    "Steps",
    "concurrently",
    "iterate_async",
    "iterate_sync",
    "run_async",
    "run_sync",
]

T = TypeVar("T")

# Threads are started on demand and reused for later questions; this limits the number of concurrent model calls.
_MAX_THREADS = 1_024


class Step(NamedTuple):
    """A blocking operation; without an async version, an async body runs it in a thread."""

    run: Callable[[], Any]
    arun: Callable[[], Awaitable[Any]] | None = None


END: Any = object()
"""What `Items` gives after the last item."""


class Items:
    """The items of a sync or async iterable, read in steps: the `following` one, or `END`, and the `closing` step."""

    def __init__(self, items: Any) -> None:
        iterator = aiter(items) if hasattr(items, "__aiter__") else iter(items)
        self.following = Step(partial(next, iterator, END), partial(anext, iterator, END))
        self.closing = Step(getattr(iterator, "close", _nothing), getattr(iterator, "aclose", _nothing_async))


def _nothing() -> None: ...


async def _nothing_async() -> None: ...


class Emit(NamedTuple):
    """A value that the caller receives before the result."""

    value: Any


class Limit:
    """A maximum number of concurrent calls; can be shared by several questions, in threads or on one event loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.threads = threading.Semaphore(size)

    @cached_property
    def tasks(self) -> asyncio.Semaphore:
        """The semaphore for async tasks; `threads` is the one for threads."""
        from asyncio import Semaphore

        return Semaphore(self.size)

    def taken(self) -> Step:
        """Acquire the limit; the result is the semaphore to release."""

        async def taken() -> asyncio.Semaphore:
            await self.tasks.acquire()
            return self.tasks

        return Step(lambda: self.threads.acquire() and self.threads, taken)


@dataclass(frozen=True)
class Parallel:
    """Run several bodies concurrently; the result is the list of their results. Values that they emit are discarded.

    The calling thread also runs bodies, so a single body needs no other thread. Each thread has the caller's context
    variables. The first error is raised, after running threads have finished or running tasks were cancelled.
    """

    bodies: Sequence[Callable[[], Steps[Any]]]
    limit: Limit
    # Whether to stop after this result. In threads, bodies that have not started are skipped; in tasks, all other
    # bodies are cancelled. The result of a skipped or cancelled body is None.
    stop: Callable[[Any], bool] | None = None

    def run(self) -> list[Any]:
        """Run them in threads."""
        results: list[Any] = [None] * len(self.bodies)
        waiting = deque(enumerate(self.bodies))

        def work() -> None:
            while waiting:
                with self.limit.threads:
                    try:
                        number, body = waiting.popleft()
                    except IndexError:  # another thread took the last one in the meantime
                        return
                    try:
                        result = results[number] = run_sync(body())
                    except BaseException:
                        waiting.clear()
                        raise
                if self.stop is not None and self.stop(result):
                    waiting.clear()

        helpers = min(self.limit.size, len(self.bodies)) - 1
        others = [_thread_pool().submit(copy_context().run, work) for _ in range(helpers)]
        try:
            work()
        except Exception:
            _wait_for_all(others)
            raise
        except BaseException:
            # Do not wait for model calls after a KeyboardInterrupt.
            waiting.clear()
            raise
        for error in _wait_for_all(others):
            raise error
        return results

    async def arun(self) -> list[Any]:
        """Run them in tasks; all tasks have ended when this returns or raises."""
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

        tasks = [asyncio.ensure_future(work(body)) for body in self.bodies]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION) if tasks else None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            # If `stop` did not cancel it, a cancelled task was cancelled from inside, and `result()` below raises that.
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
        return [None if stopped and task.cancelled() else task.result() for task in tasks]


Steps = Generator[Step | Parallel | Emit, Any, T]
"""A body: a generator that yields steps, receives their results and returns its own result."""


def concurrently(
    bodies: Sequence[Callable[[], Steps[T]]], limit: Limit, stop: Callable[[T], bool] | None = None
) -> Steps[tuple[T, ...]]:
    """Run bodies as in `Parallel`; a single one may emit values."""
    if len(bodies) != 1:
        return tuple((yield Parallel(bodies, limit, stop)))
    place = yield limit.taken()
    try:
        return ((yield from bodies[0]()),)
    finally:
        place.release()


def run_sync(steps: Steps[T]) -> T:
    """Run a body and return its result."""
    while isinstance(reached := _perform(steps), Emit):
        pass
    return reached.result


async def run_async(steps: Steps[T]) -> T:
    """Async version of `run_sync`."""
    while isinstance(reached := await _perform_async(steps), Emit):
        pass
    return reached.result


def iterate_sync(steps: Steps[Any]) -> Iterator[Any]:
    """Run a body and yield the values that it emits."""
    while isinstance(reached := _perform(steps), Emit):
        try:
            yield reached.value
        except BaseException:
            with suppress(_Closed):
                _perform(steps, closing=True)
            raise


async def iterate_async(steps: Steps[Any]) -> AsyncIterator[Any]:
    """Async version of `iterate_sync`."""
    while isinstance(reached := await _perform_async(steps), Emit):
        try:
            yield reached.value
        except BaseException:
            with suppress(_Closed):
                await _perform_async(steps, closing=True)
            raise


class _FinishedResult(NamedTuple, Generic[T]):
    """The result of a finished body."""

    result: T


class _Closed(BaseException):
    """Raised in a body when its iteration is closed: after a GeneratorExit, it could not yield steps for cleanup."""


def _perform(steps: Steps[T], *, closing: bool = False) -> Emit | _FinishedResult[T]:
    """Run a body until it emits a value or ends."""
    try:
        step = steps.throw(_Closed()) if closing else next(steps)
        while not isinstance(step, Emit):
            try:
                result = step.run()
            except BaseException as error:  # noqa: BLE001 - the body handles it or cleans up
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        return _FinishedResult(stop.value)
    return step


async def _perform_async(steps: Steps[T], *, closing: bool = False) -> Emit | _FinishedResult[T]:
    """Async version of `_perform`."""
    # Imported only for async code.
    from asyncio import to_thread

    try:
        step = steps.throw(_Closed()) if closing else next(steps)
        while not isinstance(step, Emit):
            try:
                result = await (to_thread(step.run) if step.arun is None else step.arun())
            except BaseException as error:  # noqa: BLE001 - as above
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        return _FinishedResult(stop.value)
    return step


@cache
def _thread_pool() -> ThreadPoolExecutor:
    """The shared pool, since starting threads for each question would be slow."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="oprag")


def _wait_for_all(futures: Sequence[Future[None]]) -> list[BaseException]:
    """Cancel futures that have not started, wait for the others, and return their errors."""
    for future in futures:
        future.cancel()
    return [error for future in futures if not future.cancelled() and (error := future.exception()) is not None]


if hasattr(os, "register_at_fork"):
    # In a forked process, the threads of the parent do not run.
    os.register_at_fork(after_in_child=_thread_pool.cache_clear)
