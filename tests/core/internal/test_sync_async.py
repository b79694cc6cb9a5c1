"""Bodies of steps, sync and async: alone, in parallel, and with values that are emitted."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import Any

import pytest

from oprag._internal.sync_async import (
    Emit,
    Limit,
    Parallel,
    Step,
    Steps,
    iterate_async,
    iterate_sync,
    run_async,
    run_sync,
)
from tests.meeting import PATIENCE, Meeting, until

both = pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])


async def perform(steps: Steps[Any], *, is_async: bool) -> Any:
    return await run_async(steps) if is_async else run_sync(steps)


async def emitted(steps: Steps[Any], *, is_async: bool) -> list[Any]:
    return [value async for value in iterate_async(steps)] if is_async else list(iterate_sync(steps))


def counting(done: list[str]) -> Steps[str]:
    """Emits two values; closes what it has opened with a step."""
    done.append((yield Step(lambda: "opened")))
    try:
        yield Emit(1)
        done.append((yield Step(lambda: "between")))
        yield Emit(2)
    finally:
        done.append((yield Step(lambda: "closed")))
    return "result"


@both
async def test_who_stops_reading_closes_the_body(is_async: bool):
    done: list[str] = []
    if is_async:
        async with aclosing(iterate_async(counting(done))) as values:  # type: ignore[type-var]
            async for _ in values:
                break
    else:
        with closing(iterate_sync(counting(done))) as values:  # type: ignore[type-var]
            for _ in values:
                break
    assert done == ["opened", "closed"]


async def test_a_cancelled_body_closes_what_it_has_opened():
    done: list[str] = []

    def body() -> Steps[None]:
        try:
            yield Step(lambda: None, lambda: asyncio.sleep(600))
        except asyncio.CancelledError:
            done.append("cancelled")
            raise
        finally:
            done.append((yield Step(lambda: "", lambda: asyncio.sleep(0, "closed"))))

    task = asyncio.create_task(run_async(body()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["cancelled", "closed"]


def test_an_interrupted_body_closes_what_it_has_opened():
    def interrupt() -> None:
        raise KeyboardInterrupt

    done: list[str] = []

    def body() -> Steps[None]:
        try:
            yield Step(interrupt)
        finally:
            done.append((yield Step(lambda: "closed")))

    with pytest.raises(KeyboardInterrupt):
        run_sync(body())
    assert done == ["closed"]


@both
async def test_a_place_is_taken_and_released(is_async: bool):
    limit = Limit(1)

    def body() -> Steps[bool]:
        place = yield limit.taken()
        taken = limit.tasks.locked() if is_async else not limit.threads.acquire(blocking=False)
        place.release()
        return taken

    assert await perform(body(), is_async=is_async)
    # It is free for the next one.
    assert await perform(body(), is_async=is_async)


class Work:
    """Does what it is told for each number, and counts how many it does at once."""

    def __init__(
        self, do: Callable[[int], Any] = lambda number: number, seconds: float = 0.0, meeting: Meeting | None = None
    ) -> None:
        self.do = do
        self.seconds = seconds
        self.meeting = meeting
        self.begun: list[int] = []
        self.running = self.peak = self.cancelled = 0
        self._lock = threading.Lock()

    def _begin(self, number: int) -> None:
        with self._lock:
            self.begun.append(number)
            self.running += 1
            self.peak = max(self.peak, self.running)

    def _end(self) -> None:
        with self._lock:
            self.running -= 1

    def in_thread(self, number: int) -> Any:
        self._begin(number)
        try:
            result = self.do(number)
            if self.meeting:
                self.meeting.wait()
            time.sleep(self.seconds)
            return result
        finally:
            self._end()

    def body(self, number: int) -> Steps[Any]:
        return (yield Step(lambda: self.in_thread(number), lambda: self.in_task(number)))

    async def in_task(self, number: int) -> Any:
        self._begin(number)
        try:
            result = self.do(number)
            if self.meeting:
                await self.meeting.wait_async()
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        else:
            return result
        finally:
            self._end()


def parallel(
    body: Callable[[int], Steps[Any]],
    items: Sequence[int],
    limit: Limit,
    stop: Callable[[Any], bool] | None = None,
) -> Parallel:
    return Parallel([partial(body, item) for item in items], limit, stop)


def once(function: Callable[[int], Any]) -> Callable[[int], Steps[Any]]:
    """A body of one step, for threads."""

    def body(number: int) -> Steps[Any]:
        return (yield Step(lambda: function(number)))

    return body


async def work_through(
    work: Work, items: Sequence[int], limit: Limit, stop: Callable[[Any], bool] | None = None, *, is_async: bool
) -> list[Any]:
    together = parallel(work.body, items, limit, stop)
    return await together.arun() if is_async else together.run()


@both
@pytest.mark.parametrize(("count", "size"), [(0, 3), (1, 3), (1, 1), (2, 3), (3, 3), (9, 3), (5, 1), (4, 100)])
async def test_results_stand_in_the_sequence_of_the_items(is_async: bool, count: int, size: int):
    work = Work(lambda number: number * number, meeting=Meeting(min(count, size)))
    results = await work_through(work, range(count), Limit(size), is_async=is_async)
    assert results == [number * number for number in range(count)]
    assert sorted(work.begun) == list(range(count))
    assert work.peak == min(count, size)
    assert work.running == 0


@both
async def test_what_is_raised_ends_it_and_nothing_is_left_running(is_async: bool):
    def fails(number: int) -> int:
        if number == 1:
            raise LookupError("one")
        return number

    work = Work(fails, seconds=0.1)
    before = asyncio.all_tasks()
    with pytest.raises(LookupError, match="one"):
        await work_through(work, range(30), Limit(3), is_async=is_async)
    assert work.running == 0
    # Four at most on a machine that is free; a thread that has to wait for it learns of the failure later.
    assert len(work.begun) < 30
    assert asyncio.all_tasks() == before


@both
async def test_a_failed_result_begins_no_further_item(is_async: bool):
    work = Work(lambda number: "bad" if number == 0 else "good", seconds=0.1)
    results = await work_through(work, range(30), Limit(3), lambda result: result == "bad", is_async=is_async)
    assert results[0] == "bad"
    assert None in results
    assert results[-1] is None
    assert work.running == 0
    assert len(work.begun) < 30


@both
async def test_a_limit_is_free_again_after_a_failure(is_async: bool):
    limit = Limit(2)

    def fails(number: int) -> int:
        raise LookupError

    for _ in range(5):
        with pytest.raises(LookupError):
            await work_through(Work(fails), range(4), limit, is_async=is_async)
    work = Work(meeting=Meeting(2))
    assert await work_through(work, range(4), limit, is_async=is_async) == [0, 1, 2, 3]
    assert work.peak == 2


def test_a_limit_is_shared_between_threads():
    limit, work = Limit(3), Work(meeting=Meeting(3))
    threads = [threading.Thread(target=parallel(work.body, range(6), limit).run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(work.begun) == 24
    assert work.peak == 3


def test_whoever_is_done_does_not_wait_for_others_under_the_same_limit():
    """Two items that take no time are done while another caller has a slow one."""
    limit, entered, release = Limit(2), threading.Event(), threading.Event()

    def slow(number: int) -> None:
        entered.set()
        release.wait(PATIENCE)

    other = threading.Thread(target=parallel(once(slow), [1], limit).run)
    other.start()
    entered.wait(PATIENCE)
    done = threading.Event()

    def quick() -> None:
        parallel(once(lambda number: number), [1, 2, 3, 4], limit).run()
        done.set()

    third = threading.Thread(target=quick)
    third.start()
    in_time = done.wait(PATIENCE / 2)
    release.set()
    other.join()
    third.join()
    assert in_time


async def test_cancelling_cancels_what_runs_and_what_waits():
    work = Work(seconds=600)
    before = asyncio.all_tasks()
    task = asyncio.create_task(parallel(work.body, range(10), Limit(3)).arun())
    await until(lambda: work.running == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (work.running, work.cancelled, len(work.begun)) == (0, 3, 3)
    assert asyncio.all_tasks() == before


async def test_cancelling_one_item_cancels_it():
    work = Work(seconds=600)
    task = asyncio.create_task(parallel(work.body, [1], Limit(3)).arun())
    await until(lambda: work.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (work.running, work.cancelled) == (0, 1)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_the_calling_thread_is_raised_at_once(error: type[BaseException]):
    main = threading.current_thread()
    release = threading.Event()
    begun: list[int] = []
    ended: list[int] = []

    def interrupted(number: int) -> None:
        begun.append(number)
        if threading.current_thread() is main:
            raise error
        release.wait(PATIENCE)
        ended.append(number)

    with pytest.raises(error):
        parallel(once(interrupted), range(50), Limit(4)).run()
    # The others were not waited for.
    assert ended == []
    release.set()
    time.sleep(0.1)
    assert len(begun) <= 8


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_another_thread_is_raised(error: type[BaseException]):
    main, here = threading.current_thread(), Meeting(2)

    def interrupted(number: int) -> None:
        here.wait()
        if threading.current_thread() is not main:
            raise error

    with pytest.raises(error):
        parallel(once(interrupted), range(50), Limit(4)).run()


def test_in_a_forked_process():
    """The threads of the parent do not exist there."""
    import os
    import warnings

    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    parallel(Work().body, range(4), Limit(4)).run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        done = parallel(Work().body, range(8), Limit(4)).run()
        os._exit(0 if done == list(range(8)) else 1)
    deadline = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)
