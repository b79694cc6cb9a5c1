import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from oprag.compare.measure.process import in_fresh_process
from oprag.compare.measure.usage import measure_usage
from tests.compare.measure.working import (
    MB,
    SLEEPER,
    burn,
    burn_in_threads,
    measure_a_child,
    measure_after_a_peak,
    run_child,
)

pytestmark = pytest.mark.process

# The kernel's counts may be some dozens of pages late on each core, and the sampling thread needs memory too.
SLACK = 3 * MB
# The kernel counts the processor time of other processes in hundredths of a second.
TICK = 0.03


def used(process: psutil.Process) -> float:
    """The processor time that a process has used, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def used_until(process: psutil.Process, seconds: float) -> None:
    """Wait until it has used so much."""
    while used(process) < seconds:
        time.sleep(0.01)


def test_the_value_and_the_wall_time():
    before = time.perf_counter()
    measured = measure_usage(lambda: [time.sleep(0.2), "the value"])  # type: ignore[func-returns-value]
    assert measured.value == [None, "the value"]
    assert 0.2 <= measured.seconds <= time.perf_counter() - before


def test_sleeping_uses_no_processor_and_watching_is_not_counted():
    before = time.process_time()
    measured = measure_usage(lambda: time.sleep(0.5))
    # All that was used here is the watching.
    assert measured.cpu_seconds < time.process_time() - before
    assert measured.cpu_seconds < measured.seconds / 10


def test_one_busy_thread():
    before = time.process_time()
    measured = measure_usage(lambda: burn(0.5))
    assert 0.48 < measured.cpu_seconds <= time.process_time() - before


def test_two_busy_threads_use_twice_as_much():
    before = time.process_time()
    measured = measure_usage(lambda: burn_in_threads(2, 0.5))
    assert 0.96 < measured.cpu_seconds <= time.process_time() - before


def test_the_processor_time_of_an_ended_child():
    before = os.times()
    measured = measure_usage(lambda: run_child("burn(0.5)"))
    after = os.times()
    assert 0.48 < measured.cpu_seconds <= sum(after[:4]) - sum(before[:4]) + TICK


def test_the_processor_time_of_a_living_child_is_that_within_the_call():
    burning = "from tests.compare.measure.working import burn; burn(60)"
    with subprocess.Popen([sys.executable, "-c", burning]) as child:
        try:
            watched = psutil.Process(child.pid)
            used_until(watched, 1.0)
            own, before = time.process_time(), used(watched)
            measured = measure_usage(lambda: used_until(watched, used(watched) + 0.5))
            own, after = time.process_time() - own, used(watched)
        finally:
            child.kill()
    # The second that it had used before is not in it.
    assert 0.5 - TICK <= measured.cpu_seconds <= after - before + own + TICK


def test_the_peak_is_that_of_the_call_though_it_was_given_back_before_the_end():
    measured = in_fresh_process(measure_after_a_peak, 200 * MB)
    assert measured.memory_growth_bytes == pytest.approx(200 * MB, abs=SLACK)
    # The interpreter was there before, and an earlier peak does not count.
    assert 205 * MB < measured.peak_memory_bytes < 300 * MB


def test_the_memory_of_a_child_counts_while_it_lives():
    # In a small process: until a child runs its own program, it counts as a copy of its parent.
    measured = in_fresh_process(measure_a_child, "fill(200 * MB, 0.5)")
    assert 200 * MB <= measured.memory_growth_bytes < 260 * MB
    with subprocess.Popen(SLEEPER) as child:
        before = measure_usage(lambda: None)
        child.kill()
    assert measure_usage(lambda: None).peak_memory_bytes < before.peak_memory_bytes


def test_what_the_function_raises_is_raised_and_nothing_stays():
    with pytest.raises(ZeroDivisionError):
        measure_usage(lambda: 1 / 0)
    assert not any(thread.name == "oprag-memory" for thread in threading.enumerate())
