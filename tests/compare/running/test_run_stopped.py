"""Runs that are killed, interrupted or hang, in processes of their own."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oprag.compare.running.run import run
from tests.compare.endless import made, name_of
from tests.compare.helpers import RecordingModel, rows

ROOT = Path(__file__).parents[2]
SELECT = (
    'SELECT question_id, method, "order", status, answer, calls, input_tokens, scores FROM results ORDER BY 1, 2, 3'
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The results of a run that nobody disturbs, and its calls."""
    path = tmp_path_factory.mktemp("undisturbed") / "results.db"
    model = RecordingModel()
    assert run(made(model), path).complete
    return rows(path, SELECT), sorted(name_of(text) for text in model.calls)


class Process:
    """A run in a process of its own."""

    def __init__(self, folder, *arguments):
        self.path, self.log = folder / "results.db", folder / "calls.log"
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.compare.endless", self.path, self.log, *map(str, arguments)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def asked(self):
        return self.log.read_text().split() if self.log.exists() else []

    def after(self, calls):
        """Wait until so many calls were made; whether they were before it ended."""
        until = time.monotonic() + 60
        while len(self.asked) < calls:
            if self._process.poll() is not None:
                return False
            assert time.monotonic() < until
            time.sleep(0.002)
        return True

    def send(self, number):
        self._process.send_signal(number)

    def ended(self, seconds=60):
        """How it ended, and what it printed."""
        try:
            output, errors = self._process.communicate(timeout=seconds)
        finally:
            self._process.kill()
        return self._process.returncode, output, errors


@pytest.mark.process
def test_killed_again_and_again(undisturbed, tmp_path):
    results, calls = undisturbed
    generator = random.Random(5)
    kills = 0
    for _ in range(20):
        asked_before = kept(tmp_path / "results.db")
        process = Process(tmp_path, 0.004)
        known = len(process.asked)
        alive = process.after(known + generator.randint(20, 90))
        if alive:
            process.send(signal.SIGKILL)
            kills += 1
        code, output, errors = process.ended()
        # What was kept before is not asked for again.
        assert asked_before.isdisjoint(name[:12] for name in process.asked[known:])
        if code == 0:
            assert output.startswith("complete"), errors
            break
        assert code == -signal.SIGKILL, errors
    else:
        pytest.fail("it never came to its end")
    assert kills >= 3
    assert rows(tmp_path / "results.db", SELECT) == results
    assert set(process.asked) == set(calls)
    # What was on its way at a kill alone was asked for twice.
    assert len(process.asked) - len(calls) <= kills * 8
    assert rows(tmp_path / "results.db", "PRAGMA integrity_check") == [("ok",)]


def kept(path):
    """The prompts whose replies are in the file, as the replies name them; "unanswerable" names none."""
    replies = rows(path, "SELECT text FROM replies") if path.exists() else []
    return {found[1] for (text,) in replies if (found := re.search(r"Answer (\w{12})", text))}


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_cleanly(number, undisturbed, tmp_path):
    process = Process(tmp_path, 0.05)
    assert process.after(20)
    process.send(number)
    code, output, errors = process.ended()
    assert code == 0, errors
    assert output.startswith("interrupted")
    # What was on its way came in.
    assert rows(tmp_path / "results.db", "SELECT count(*) FROM replies") == [(len(process.asked),)]
    assert rows(tmp_path / "results.db", "SELECT outcome FROM runs") == [("interrupted",)]
    model = RecordingModel()
    assert run(made(model), tmp_path / "results.db").complete
    assert rows(tmp_path / "results.db", SELECT) == undisturbed[0]
    assert not {name_of(text) for text in model.calls} & set(process.asked)


def test_handlers_of_signals_are_put_back(tmp_path):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert run(made(RecordingModel()), tmp_path / "results.db").complete
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.process
def test_a_second_signal_does_not_wait(undisturbed, tmp_path):
    process = Process(tmp_path, 0, 20)
    assert process.after(21)
    process.send(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process._process.wait(1.5)
    process.send(signal.SIGINT)
    # The call that it waits for takes ten minutes.
    code, _, errors = process.ended()
    assert code != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert rows(tmp_path / "results.db", "SELECT outcome FROM runs") == [("interrupted",)]
    assert run(made(RecordingModel()), tmp_path / "results.db").complete
    assert rows(tmp_path / "results.db", SELECT) == undisturbed[0]
