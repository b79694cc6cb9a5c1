import threading
from functools import partial
from typing import TypeVar

import pytest

from oprag.compare.running.threads import ModelThreads
from tests.meeting import PATIENCE, Meeting

Value = TypeVar("Value")


def taken(workers: ModelThreads[Value], number: int) -> list[Value]:
    found: list[Value] = []
    while len(found) < number:
        found += workers.take()
    return found


def test_results_come_in_the_sequence_in_which_they_end():
    workers: ModelThreads[int] = ModelThreads(4)

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
    workers: ModelThreads[str] = ModelThreads(3)

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


def test_every_result_is_taken_once():
    workers: ModelThreads[int] = ModelThreads(8)
    for number in range(3_000):
        workers.submit(partial(int, number))
    assert sorted(taken(workers, 3_000)) == list(range(3_000))
    assert workers.running == 0
    workers.close()


def test_errors_are_raised_where_results_are_taken():
    workers: ModelThreads[int] = ModelThreads(1)

    def fails():
        raise KeyboardInterrupt("from a thread")

    workers.submit(fails)
    with pytest.raises(KeyboardInterrupt, match="from a thread"):
        workers.take()
    workers.submit(lambda: 7)
    assert workers.take() == [7]
    workers.close()


def test_threads_end_when_they_are_closed():
    workers: ModelThreads[int] = ModelThreads(3)
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
