import asyncio
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from oprag.embedding.single_flight import SingleFlight, wait_for
from oprag.files.fork_safe import ForkSafeLock
from oprag.steps import Steps, run_async, run_sync
from tests.meeting import Clock


def waiting(flights: dict[Any, Any]) -> Steps[list[Any]]:
    """A body that waits for others."""
    landed: list[Any] = yield wait_for(list(flights.values()))
    return landed


def test_who_comes_first_makes_it_and_the_others_wait():
    flights = SingleFlight()
    first, nothing = flights.claim(["a", "b"])
    assert (list(first), nothing) == (["a", "b"], {})
    mine, others = flights.claim(["b", "c"])
    assert list(mine) == ["c"]
    assert list(others) == ["b"]
    landed: list[list[Any]] = []
    thread = threading.Thread(target=lambda: landed.append(run_sync(waiting(others))))
    thread.start()
    time.sleep(0.05)
    assert landed == []
    flights.resolve(first, {"a": "made a", "b": "made b"})
    thread.join()
    assert landed == [["made b"]]
    # What has landed can be made again.
    assert list(flights.claim(["a", "b"])[0]) == ["a", "b"]


def test_what_takes_too_long_is_taken_over(monkeypatch):
    clock, flights = Clock(monkeypatch), SingleFlight()
    slow, _ = flights.claim(["a"])
    clock.jump(59)
    assert list(flights.claim(["a"])[1]) == ["a"]
    clock.jump(1)
    second, _ = flights.claim(["a"])
    assert list(second) == ["a"]
    flights.resolve(slow, {"a": "late"})
    # Whoever is late does not take away what another one is making.
    _, others = flights.claim(["a"])
    flights.resolve(second, {"a": "made"})
    assert run_sync(waiting(others)) == ["made"]


def test_a_task_that_is_cancelled_while_it_waits_cancels_nothing():
    flights = SingleFlight()
    mine, _ = flights.claim(["a"])

    async def run() -> list[Any]:
        _, others = flights.claim(["a"])
        first = asyncio.create_task(run_async(waiting(others)))
        second = asyncio.create_task(run_async(waiting(others)))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        flights.resolve(mine, {"a": "made"})
        return await second

    assert asyncio.run(asyncio.wait_for(run(), 120)) == ["made"]


def test_who_holds_an_event_loop_does_not_wait():
    flights = SingleFlight()
    flights.claim(["a"])
    _, others = flights.claim(["a"])

    async def blocking() -> list[Any]:
        return run_sync(waiting(others))

    assert asyncio.run(asyncio.wait_for(blocking(), 120)) == [None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_leaves_neither_locks_nor_flights_behind():
    code = """
import os
from oprag.embedding.single_flight import SingleFlight
from oprag.files.fork_safe import ForkSafeLock
lock, flights = ForkSafeLock(), SingleFlight()
flights.claim(["a"])
with lock:
    child = os.fork()
    if not child:
        os._exit(0 if lock.try_enter() and list(flights.claim(["a"])[0]) == ["a"] else 1)
    assert os.waitpid(child, 0)[1] == 0
print("both went on")
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "both went on\n"


def test_a_lock_keeps_others_out():
    lock, seen = ForkSafeLock(), []

    def work() -> None:
        with lock:
            seen.append("in")
            time.sleep(0.01)
            seen.append("out")

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["in", "out"] * 5
