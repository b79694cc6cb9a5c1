"""Progress on a terminal, and where there is none."""

import io
import re
import time

import pytest
from rich.console import Console

from oprag.cli import progress as progress_module
from oprag.cli.progress import LateProgress, RunProgress
from oprag.compare.db.records import Spent
from oprag.compare.running.run import RunReport


def now(done, *, failed=0, stopping=""):
    spent = Spent(12, 123_456, 1.5)
    return RunReport(
        outcome=stopping,
        total=100,
        answered=done - failed,
        failed={"TimeoutError": failed} if failed else {},
        remaining=100 - done,
        spent=spent,
        running=3,
        seconds=1.0,
    )


@pytest.fixture
def shown(monkeypatch):
    """What is written to standard error."""
    out = io.StringIO()

    def console(*, terminal):
        made = Console(file=out, force_terminal=terminal, width=80, get_time=time.monotonic)
        monkeypatch.setattr(progress_module, "error_console", lambda: made)
        return out

    return console


def test_without_a_terminal_there_is_a_line_now_and_then(shown, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("oprag.cli.progress.time.monotonic", lambda: clock[0])
    out = shown(terminal=False)
    with RunProgress(priced=True) as progress:
        for second in range(31):
            clock[0] = float(second)
            progress.update(now(second, failed=second // 15))
    assert out.getvalue().splitlines() == [
        "10/100 answers, 1.50 spent, 12 calls, 123,456 tokens, about 0:01:30 left",
        "20/100 answers, 1 failed, 1.50 spent, 12 calls, 123,456 tokens, about 0:01:20 left",
        "30/100 answers, 2 failed, 1.50 spent, 12 calls, 123,456 tokens, about 0:01:10 left",
    ]


def test_what_earlier_runs_did_is_no_part_of_the_speed(shown, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("oprag.cli.progress.time.monotonic", lambda: clock[0])
    out = shown(terminal=False)
    with RunProgress(priced=False) as progress:
        for second, done in ((0, 80), (4, 81), (20, 85)):
            clock[0] = float(second)
            progress.update(now(done))
    assert out.getvalue().endswith("about 0:01:00 left\n")
    assert "spent" not in out.getvalue()


def test_on_a_terminal_there_is_a_bar_on_one_line(shown):
    out = shown(terminal=True)
    with RunProgress(priced=True) as progress:
        progress.update(now(40, failed=2, stopping="interrupted"))
        progress._bar.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert "40/100 answers" in plain
    assert "stopping, 3 calls in progress" in re.sub(r"\s+", " ", plain)


def test_a_run_that_has_nothing_to_do_shows_nothing(shown):
    out = shown(terminal=True)
    with RunProgress(priced=False):
        pass
    assert out.getvalue() == ""


def test_the_progress_bar_waits_a_second(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("oprag.cli.progress.time.monotonic", lambda: clock[0])
    with LateProgress("embedding", "chunks") as progress:
        started = []
        monkeypatch.setattr(progress._bar, "start", lambda: started.append(True))
        clock[0] = 0.5
        progress.update(1, 3)
        assert not started
        clock[0] = 1.5
        progress.update(2, 3)
        assert started
