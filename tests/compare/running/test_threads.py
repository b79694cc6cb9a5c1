import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest

from oprag.compare.running.threads import ModelThreads
from tests.meeting import PATIENCE, Meeting

Value = TypeVar("Value")


def workers_of(threads: int, finish: Callable[[Sequence[Value]], Sequence[Value]] = list) -> ModelThreads[Value, Value]:
    return ModelThreads(threads, finish)


def taken(workers: ModelThreads[Value, Value], number: int) -> list[Value]:
    found: list[Value] = []
    while len(found) < number:
        found += workers.take()
    return found


def test_results_come_in_the_sequence_in_which_they_end():
    workers: ModelThreads[int, int] = workers_of(4)

    may_end = [threading.Event() for _ in range(3)]

    def waits(number):
        assert may_end[number].wait(PATIENCE)
        return number

    for number in range(3):
        workers.submit(partial(waits, number))
    assert workers.running == 3
    for number in (1, 2, 0):
        may_end[number].set()
        assert taken(workers, 1) == [number]
    assert workers.running == 0
    workers.close()


def test_no_more_threads_than_asked_for_and_none_that_are_not_needed():
    workers: ModelThreads[str, str] = workers_of(3)

    def name():
        meeting.wait()
        return threading.current_thread().name

    names, meeting = set(), Meeting(1)
    for _ in range(5):
        workers.submit(name)
        names |= set(taken(workers, 1))
    assert len(names) == 1
    meeting = Meeting(3)
    for _ in range(12):
        workers.submit(name)
    names |= set(taken(workers, 12))
    assert len(names) == 3
    workers.close()


def test_what_ends_while_another_one_is_finished_is_finished_together():
    batches: list[list[int]] = []
    together = threading.Event()
    begun = threading.Event()

    def finish(values):
        batches.append(list(values))
        if len(batches) == 1:
            begun.set()
            together.wait(PATIENCE)
        return [2 * value for value in values]

    workers: ModelThreads[int, int] = workers_of(4, finish)
    workers.submit(lambda: 0)
    begun.wait(PATIENCE)
    for number in range(1, 9):
        workers.submit(partial(int, number))
    # The other threads go on meanwhile: all of them have given what they had to.
    deadline = time.monotonic() + PATIENCE
    while len(workers._given) < 8 and time.monotonic() < deadline:
        time.sleep(0.005)
    together.set()
    assert sorted(taken(workers, 9)) == [0, 2, 4, 6, 8, 10, 12, 14, 16]
    # In the sequence in which threads came to give them.
    assert [sorted(batch) for batch in batches] == [[0], [1, 2, 3, 4, 5, 6, 7, 8]]
    workers.close()


def test_nothing_is_finished_twice_or_by_two_threads_at_the_same_time():
    at_it = threading.Lock()

    def finish(values):
        assert at_it.acquire(blocking=False)
        time.sleep(0)
        at_it.release()
        return values

    workers: ModelThreads[int, int] = workers_of(8, finish)
    for number in range(3_000):
        workers.submit(partial(int, number))
    assert sorted(taken(workers, 3_000)) == list(range(3_000))
    assert workers.running == 0
    workers.close()


def test_errors_are_raised_where_results_are_taken():
    workers: ModelThreads[int, int] = workers_of(1)

    def fails():
        raise KeyboardInterrupt("from a thread")

    workers.submit(fails)
    with pytest.raises(KeyboardInterrupt, match="from a thread"):
        workers.take()
    workers.submit(lambda: 7)
    assert workers.take() == [7]
    workers.close()


def test_where_finishing_fails_it_fails_for_each():
    def finish(values):
        raise OSError(f"the disk is full {len(values)}")

    workers: ModelThreads[int, int] = workers_of(2, finish)
    for _ in range(2):
        workers.submit(lambda: 7)
    for _ in range(2):
        with pytest.raises(OSError, match="the disk is full"):
            workers.take()
    assert workers.running == 0
    workers.close()


def test_threads_end_when_they_are_closed():
    workers: ModelThreads[int, int] = workers_of(3)
    threads: list[threading.Thread] = []

    meeting = Meeting(3)

    def work():
        threads.append(threading.current_thread())
        meeting.wait()
        return 1

    for _ in range(3):
        workers.submit(work)
    taken(workers, 3)
    workers.close()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert thread.daemon
