import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from oprag.compare.measure.process import in_fresh_process
from oprag.errors import MeasurementError
from tests.compare.measure import working
from tests.compare.measure.working import gone, twice

pytestmark = pytest.mark.process
linux = pytest.mark.skipif(sys.platform != "linux", reason="signals and forks")


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process and no zombie is there after any of these tests."""
    yield
    assert psutil.Process().children() == []


def test_the_value_comes_from_another_process_with_nothing_of_this_one():
    assert in_fresh_process(twice, 21) == 42
    assert in_fresh_process(working.calls, None) == []
    twice(1)
    assert working.calls(None) == [1]
    assert in_fresh_process(working.calls, None) == []
    working.called.clear()


def test_much_goes_both_ways():
    text = "abcdefghij" * 1_000_000
    assert in_fresh_process(str.upper, text) == text.upper()


def test_printing_does_not_disturb_and_is_not_shown(capfd):
    assert in_fresh_process(working.print_much, 20_000) == "the value"
    assert capfd.readouterr() == ("", "")


def test_there_is_nothing_to_read():
    assert in_fresh_process(working.read_input, None) == ""


def test_what_it_raises_is_told_with_its_traceback():
    with pytest.raises(MeasurementError, match="fail failed in its process: KeyError: 'the reason'") as caught:
        in_fresh_process(working.fail, "the reason")
    assert "working.py" in str(caught.value)
    assert "raise KeyError(message)" in str(caught.value)
    assert "process.py" not in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.args == ("the reason",)
    assert caught.value.value == "fail"


def test_an_error_that_cannot_be_unpickled_is_told_as_text():
    with pytest.raises(MeasurementError, match="OwnError: so much and more") as caught:
        in_fresh_process(working.fail_with_what_cannot_be_unpickled, "so much")
    assert caught.value.__cause__ is None


def test_leaving_is_no_value():
    with pytest.raises(MeasurementError, match="SystemExit: 0"):
        in_fresh_process(working.leave, 0)


def test_a_value_that_cannot_travel():
    with pytest.raises(
        MeasurementError, match=r"(?s)exited with status 1 before it returned.*TypeError: cannot pickle"
    ):
        in_fresh_process(working.return_what_cannot_be_pickled, None)


@linux
@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGKILL, "was killed (SIGKILL), probably by the system because memory ran out"),
        (signal.SIGSEGV, "was killed by signal 11 (Segmentation fault)"),
        (signal.SIGINT, "was killed by signal 2 (Interrupt)"),
    ],
)
def test_a_process_that_is_killed_or_crashes(number, words):
    with pytest.raises(MeasurementError, match="the process of die was killed") as caught:
        in_fresh_process(working.die, int(number))
    assert words in str(caught.value)
    assert "Its output:\nlast words" in str(caught.value)


def test_a_process_that_ends_before_it_returns():
    with pytest.raises(MeasurementError, match="the process of exit_at_once exited with status 3 before it returned"):
        in_fresh_process(working.exit_at_once, 3)


@linux
def test_running_out_of_memory_is_told():
    with pytest.raises(MeasurementError, match="need_too_much failed in its process: MemoryError"):
        in_fresh_process(working.need_too_much, 500 * working.MB)


@linux
def test_a_value_that_has_come_counts_however_the_process_ends():
    assert in_fresh_process(working.crash_after_returning, 7) == 7
    assert in_fresh_process(working.hang_after_returning, 7) == 7


def test_what_the_function_left_running_is_killed():
    assert gone(in_fresh_process(working.leave_a_child, None))


@linux
def test_a_fork_that_lives_on_does_not_hide_a_death(tmp_path):
    with pytest.raises(MeasurementError, match="SIGKILL"):
        in_fresh_process(working.die_beside_a_fork, str(tmp_path / "pid"))
    fork = int((tmp_path / "pid").read_text())
    # It was not waited for.
    assert psutil.pid_exists(fork)
    os.kill(fork, signal.SIGKILL)


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_when_the_program_is_interrupted_or_killed(tmp_path, number):
    pids = tmp_path / "pids"
    code = f"""
from oprag.compare.measure.process import in_fresh_process
from tests.compare.measure.working import sleep_beside_a_child
in_fresh_process(sleep_beside_a_child, {str(pids)!r})
"""
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as program:
        wait_for(pids)
        program.send_signal(number)
        _, errors = program.communicate(timeout=120)
    assert ("KeyboardInterrupt" in errors) == (number == signal.SIGINT)
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def wait_for(path: Path) -> None:
    for _ in range(200):
        if path.exists() and path.read_text():
            return
        time.sleep(0.1)
    pytest.fail("it did not start")
