import os
import subprocess
import sys
import time

import psutil
import pytest

from oprag.compare.measure.process import in_fresh_process
from oprag.compare.measure.usage import measure, repeat, usable_cores
from oprag.errors import MeasuringError, OptionError
from tests.compare.measure.working import (
    MB,
    SLEEPER,
    burn,
    burn_in_threads,
    fill,
    measure_a_child,
    measure_after_a_peak,
    measure_after_a_peak_that_cannot_be_reset,
    measure_filling,
    measure_without_a_kernel_mark,
    run_child,
)
from tests.helpers import run_python

pytestmark = pytest.mark.process

# The kernel's own counts may be some dozens of pages late on each core, and the watching thread needs memory too.
SLACK = 3 * MB
# The kernel counts the processor time of other processes in hundredths of a second.
TICK = 0.03
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own peak")


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
    measured = measure(lambda: [time.sleep(0.2), "the value"])  # type: ignore[func-returns-value]
    assert measured.value == [None, "the value"]
    assert 0.2 <= measured.wall_seconds <= time.perf_counter() - before


def test_sleeping_uses_no_processor_and_watching_is_not_counted():
    before = time.process_time()
    measured = measure(lambda: time.sleep(0.5))
    # All that was used here is the watching.
    assert measured.cpu_seconds < time.process_time() - before
    assert measured.cpu_seconds < measured.wall_seconds / 10


def test_one_busy_thread():
    before = time.process_time()
    measured = measure(lambda: burn(0.5))
    assert 0.48 < measured.cpu_seconds <= time.process_time() - before
    assert measured.cores == usable_cores()
    # On a busy machine the wall time is longer, and the share is smaller.
    assert measured.cpu_percent == pytest.approx(100 * measured.cpu_seconds / measured.wall_seconds / usable_cores())
    assert measured.cpu_percent <= 110 / usable_cores()


def test_two_busy_threads_use_twice_as_much():
    before = time.process_time()
    measured = measure(lambda: burn_in_threads(2, 0.5))
    assert 0.96 < measured.cpu_seconds <= time.process_time() - before


def test_the_processor_time_of_an_ended_child():
    before = os.times()
    measured = measure(lambda: run_child("burn(0.5)"))
    after = os.times()
    assert 0.48 < measured.cpu_seconds <= sum(after[:4]) - sum(before[:4]) + TICK


def test_the_processor_time_of_a_living_child_is_that_within_the_call():
    burning = "from tests.compare.measure.working import burn; burn(60)"
    with subprocess.Popen([sys.executable, "-c", burning]) as child:
        try:
            watched = psutil.Process(child.pid)
            used_until(watched, 1.0)
            own, before = time.process_time(), used(watched)
            measured = measure(lambda: used_until(watched, used(watched) + 0.5))
            own, after = time.process_time() - own, used(watched)
        finally:
            child.kill()
    # The second that it had used before is not in it.
    assert 0.5 - TICK <= measured.cpu_seconds <= after - before + own + TICK
    assert not measured.exact_memory


def test_memory_that_was_given_back_before_the_end():
    measured = in_fresh_process(measure_filling, 200 * MB)
    assert measured.memory_growth_bytes == pytest.approx(200 * MB, abs=SLACK)
    # The interpreter was there before.
    assert 205 * MB < measured.peak_memory_bytes < 300 * MB


@linux
def test_a_peak_between_two_looks_is_found():
    # Ten megabytes are filled and given back in a few milliseconds.
    measured = in_fresh_process(measure_filling, 10 * MB)
    assert measured.exact_memory
    assert measured.memory_growth_bytes == pytest.approx(10 * MB, abs=SLACK)


@linux
def test_an_earlier_peak_does_not_count():
    measured = in_fresh_process(measure_after_a_peak, 100 * MB)
    assert measured.exact_memory
    assert measured.memory_growth_bytes == pytest.approx(100 * MB, abs=SLACK)


@linux
@pytest.mark.parametrize(("size", "exact"), [(100 * MB, False), (500 * MB, True)])
def test_where_the_mark_cannot_be_reset_it_counts_if_it_rose(size, exact):
    measured = in_fresh_process(measure_after_a_peak_that_cannot_be_reset, size)
    assert measured.exact_memory is exact
    assert measured.memory_growth_bytes == pytest.approx(size, abs=SLACK)


def test_without_a_mark_the_peak_is_looked_for():
    measured = in_fresh_process(measure_without_a_kernel_mark, 100 * MB)
    assert not measured.exact_memory
    assert measured.memory_growth_bytes == pytest.approx(100 * MB, abs=SLACK)


def test_the_memory_of_a_child_counts_while_it_lives():
    # In a small process: until a child runs its own program, it counts as a copy of its parent.
    measured = in_fresh_process(measure_a_child, "fill(200 * MB, 0.5)")
    assert 200 * MB <= measured.memory_growth_bytes < 260 * MB
    assert not measured.exact_memory
    with subprocess.Popen(SLEEPER) as child:
        before = measure(lambda: None)
        child.kill()
    assert measure(lambda: None).peak_memory_bytes < before.peak_memory_bytes


def test_what_the_function_raises_is_raised_and_nothing_stays():
    with pytest.raises(ZeroDivisionError):
        measure(lambda: 1 / 0)
    assert measure(lambda: 1).value == 1


def test_one_measurement_at_a_time():
    with pytest.raises(MeasuringError, match="measuring another call already"):
        measure(lambda: measure(lambda: 1))
    assert measure(lambda: 1).value == 1


def test_repeats_come_after_the_warmup():
    values = iter(range(9))
    assert [measured.value for measured in repeat(lambda: next(values), warmup=2, repeats=4)] == [2, 3, 4, 5]
    assert len(repeat(lambda: None)) == 3


def test_each_repeat_is_measured_alone():
    first, second = repeat(lambda: fill(50 * MB), warmup=0, repeats=2)
    assert abs(first.memory_growth_bytes - second.memory_growth_bytes) < 10 * MB


@pytest.mark.parametrize("options", [{"warmup": -1}, {"warmup": None}, {"repeats": 0}, {"repeats": 1.5}])
def test_counts_that_cannot_be(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        repeat(lambda: None, **options)


@pytest.mark.parametrize("call", ["measure(print)", "in_fresh_process(abs, 1)"])
def test_the_missing_extra_is_one_sentence_with_the_command(call):
    code = f"""
import sys
sys.modules["psutil"] = None
from oprag.compare.measure.process import in_fresh_process
from oprag.compare.measure.usage import measure
try:
    {call}
except ImportError as error:
    print(error)
"""
    assert run_python(code) == "Measuring needs an optional dependency: pip install 'oprag[measure]'\n"
