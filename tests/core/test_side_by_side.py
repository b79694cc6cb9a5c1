"""Doing several things at the same time, in threads and in tasks, by one set of rules."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from oprag.side_by_side import Limit, aside_by_side, side_by_side
from tests.meeting import PATIENCE, Meeting, timed_out_once, until

name: ContextVar[str] = ContextVar("name", default="nobody")


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


async def work_through(
    work: Work, items: Sequence[int], limit: Limit, failed: Callable[[Any], bool] | None = None, *, is_async: bool
) -> list[Any]:
    if is_async:
        return await aside_by_side(work.in_task, items, limit, failed)
    return side_by_side(work.in_thread, items, limit, failed)


both = pytest.mark.parametrize("is_async", [False, True], ids=["threads", "tasks"])


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
async def test_items_are_begun_in_their_sequence(is_async: bool):
    work = Work()
    await work_through(work, range(40), Limit(1), is_async=is_async)
    assert work.begun == list(range(40))


def test_one_item_needs_no_other_thread():
    threads = set()

    def here(number: int) -> None:
        threads.add(threading.current_thread())

    side_by_side(here, [1], Limit(8))
    assert threads == {threading.current_thread()}


async def test_one_item_needs_no_other_task():
    async def here(number: int) -> Any:
        return asyncio.current_task()

    assert await aside_by_side(here, [1], Limit(8)) == [asyncio.current_task()]


@both
async def test_context_variables_are_the_callers(is_async: bool):
    token = name.set("caller")
    try:
        assert (
            await work_through(Work(lambda number: name.get()), range(6), Limit(3), is_async=is_async) == ["caller"] * 6
        )
    finally:
        name.reset(token)


def test_context_variables_of_an_earlier_call_are_forgotten():
    token = name.set("first")
    side_by_side(Work(lambda number: name.get()).in_thread, range(6), Limit(3))
    name.reset(token)
    assert side_by_side(Work(lambda number: name.get()).in_thread, range(6), Limit(3)) == ["nobody"] * 6


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
async def test_without_a_rule_for_failures_all_items_are_done(is_async: bool):
    work = Work(lambda number: "bad")
    assert await work_through(work, range(20), Limit(3), is_async=is_async) == ["bad"] * 20


@both
async def test_the_only_item_may_fail(is_async: bool):
    work = Work(lambda number: "bad")
    assert await work_through(work, [1], Limit(3), lambda result: True, is_async=is_async) == ["bad"]


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
    threads = [threading.Thread(target=side_by_side, args=(work.in_thread, range(6), limit)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(work.begun) == 24
    assert work.peak == 3


async def test_a_limit_is_shared_between_tasks():
    limit, work = Limit(3), Work(meeting=Meeting(3))
    await asyncio.gather(*(aside_by_side(work.in_task, range(6), limit) for _ in range(4)))
    assert len(work.begun) == 24
    assert work.peak == 3


def test_whoever_is_done_does_not_wait_for_others_under_the_same_limit():
    """Two items that take no time are done while another caller has a slow one."""
    limit, entered, release = Limit(2), threading.Event(), threading.Event()

    def slow(number: int) -> None:
        entered.set()
        release.wait(PATIENCE)

    other = threading.Thread(target=side_by_side, args=(slow, [1], limit))
    other.start()
    entered.wait(PATIENCE)
    done = threading.Event()

    def quick() -> None:
        side_by_side(lambda number: number, [1, 2, 3, 4], limit)
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
    task = asyncio.create_task(aside_by_side(work.in_task, range(10), Limit(3)))
    await until(lambda: work.running == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (work.running, work.cancelled, len(work.begun)) == (0, 3, 3)
    assert asyncio.all_tasks() == before


async def test_cancelling_one_item_cancels_it():
    work = Work(seconds=600)
    task = asyncio.create_task(aside_by_side(work.in_task, [1], Limit(3)))
    await until(lambda: work.running == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (work.running, work.cancelled) == (0, 1)


async def test_a_timeout_ends_all():
    work = Work(seconds=600)
    with pytest.raises(TimeoutError):
        await timed_out_once(lambda: work.running == 5, aside_by_side(work.in_task, range(5), Limit(5)))
    assert (work.running, work.cancelled) == (0, 5)


def test_inside_of_itself():
    """What runs in one of the threads may do several things at the same time too."""

    def outer(number: int) -> list[Any]:
        return side_by_side(lambda inner: number * inner, range(5), Limit(3))

    assert side_by_side(outer, range(20), Limit(10)) == [[number * inner for inner in range(5)] for number in range(20)]


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
        side_by_side(interrupted, range(50), Limit(4))
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
        side_by_side(interrupted, range(50), Limit(4))


def test_in_a_forked_process():
    """The threads of the parent do not exist there."""
    import os
    import warnings

    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    side_by_side(Work().in_thread, range(4), Limit(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        done = side_by_side(Work().in_thread, range(8), Limit(4))
        os._exit(0 if done == list(range(8)) else 1)
    deadline = time.monotonic() + PATIENCE
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)
