"""One body for sync and async: a generator that yields what takes time, and is sent the results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, NamedTuple, TypeVar

__all__ = ["Step", "Steps", "run_async", "run_sync"]

T = TypeVar("T")


class Step(NamedTuple):
    """Something that takes time, and how it is done without blocking."""

    run: Callable[[], Any]
    arun: Callable[[], Awaitable[Any]] | None = None


Steps = Generator[Step, Any, T]


def run_sync(steps: Steps[T]) -> T:
    """Do what is to be done, one step after the other."""
    try:
        step = next(steps)
        while True:
            try:
                result = step.run()
            except Exception as error:  # noqa: BLE001 - whoever asked says what failed
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        # Who is interrupted or cancelled cleans up now, and not when nobody holds the traceback any more.
        steps.close()


async def run_async(steps: Steps[T]) -> T:
    """As `run_sync`, async; what has no async way runs in a thread."""
    # Who does nothing async does not load it.
    from asyncio import to_thread

    try:
        step = next(steps)
        while True:
            try:
                result = await (step.arun() if step.arun is not None else to_thread(step.run))
            except Exception as error:  # noqa: BLE001 - as above
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        # Who is interrupted or cancelled cleans up now, and not when nobody holds the traceback any more.
        steps.close()
