import subprocess
import sys
import time

import pytest

from oprag.compare.measuring import in_fresh_process, measure, repeat, usable_cores
from oprag.errors import MeasuringError, OptionError
from tests.compare.measuring.working import (
    MB,
    SLEEPER,
    burn,
    burn_in_threads,
    fill,
    measure_after_a_peak,
    measure_after_a_peak_that_cannot_be_reset,
    measure_filling,
    measure_without_a_kernel_mark,
    run_child,
)
from tests.helpers import run_python

# The kernel's own counts may be some dozens of pages late on each core, and the watching thread needs memory too.
SLACK = 3 * MB
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own peak")


def test_the_value_and_the_wall_time():
    measured = measure(lambda: [time.sleep(0.2), "the value"])  # type: ignore[func-returns-value]
    assert measured.value == [None, "the value"]
    assert 0.2 <= measured.wall_seconds < 1


def test_sleeping_uses_no_processor_and_watching_is_not_counted():
    measured = measure(lambda: time.sleep(0.5))
    assert measured.cpu_seconds < 0.02
    assert measured.cpu_percent < 4


def test_one_busy_thread():
    measured = measure(lambda: burn(0.5))
    assert 0.48 < measured.cpu_seconds < 0.6
    assert measured.cores == usable_cores()
    # On a busy machine the wall time is longer, and the share is smaller.
    assert measured.cpu_percent == pytest.approx(100 * measured.cpu_seconds / measured.wall_seconds / usable_cores())
    assert measured.cpu_percent <= 110 / usable_cores()


def test_two_busy_threads_use_twice_as_much():
    assert 0.96 < measure(lambda: burn_in_threads(2, 0.5)).cpu_seconds < 1.2


def test_the_processor_time_of_an_ended_child():
    measured = measure(lambda: run_child("burn(0.5)"))
    assert 0.48 < measured.cpu_seconds < 1.5


def test_the_processor_time_of_a_living_child_is_that_within_the_call():
    burning = "from tests.compare.measuring.working import burn; burn(60)"
    with subprocess.Popen([sys.executable, "-c", burning]) as child:
        try:
            time.sleep(1)
            measured = measure(lambda: time.sleep(1))
        finally:
            child.kill()
    assert 0.3 < measured.cpu_seconds < 1.1
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
    assert measured.wall_seconds < 0.1
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
    measured = measure(lambda: run_child("fill(200 * MB, 0.5)"))
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
from oprag.compare.measuring import in_fresh_process, measure
try:
    {call}
except ImportError as error:
    print(error)
"""
    assert run_python(code) == "Measuring needs an optional dependency: pip install 'oprag[measure]'\n"
