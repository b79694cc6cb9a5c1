import threading
import time
from functools import partial

import pytest

from oprag.compare.workers import Workers


def test_results_come_in_the_sequence_in_which_they_end():
    workers: Workers[int] = Workers(4)

    def waits(number, seconds):
        time.sleep(seconds)
        return number

    for number, seconds in enumerate([0.3, 0.0, 0.15]):
        workers.submit(partial(waits, number, seconds))
    assert workers.running == 3
    assert [workers.take() for _ in range(3)] == [1, 2, 0]
    assert workers.running == 0
    workers.close()


def test_no_more_threads_than_asked_for_and_none_that_are_not_needed():
    workers: Workers[str] = Workers(3)

    def name():
        time.sleep(0.01)
        return threading.current_thread().name

    names = set()
    for _ in range(5):
        workers.submit(name)
        names.add(workers.take())
    assert len(names) == 1
    for _ in range(12):
        workers.submit(name)
    names |= {workers.take() for _ in range(12)}
    assert len(names) == 3
    workers.close()


def test_errors_are_raised_where_results_are_taken():
    workers: Workers[int] = Workers(1)

    def fails():
        raise KeyboardInterrupt("from a thread")

    workers.submit(fails)
    workers.submit(lambda: 7)
    with pytest.raises(KeyboardInterrupt, match="from a thread"):
        workers.take()
    assert workers.take() == 7
    workers.close()


def test_threads_end_when_they_are_closed():
    workers: Workers[int] = Workers(3)
    threads: list[threading.Thread] = []

    def work():
        threads.append(threading.current_thread())
        time.sleep(0.02)
        return 1

    for _ in range(3):
        workers.submit(work)
    for _ in range(3):
        workers.take()
    workers.close()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
        assert thread.daemon
