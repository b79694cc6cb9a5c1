"""What every command prints in the same way: errors, and progress with and without a terminal."""

import io
import re
import time

import pytest
import typer
from rich.console import Console

from oprag.cli.console import EXIT_INTERRUPTED, WorkProgress, console, errors_on_one_line, print_status


def test_text_is_printed_unchanged(capsys):
    print_status(":m: [bold]")
    console().print(":m: [bold]")
    assert capsys.readouterr() == (":m: [bold]\n",) * 2


# Errors


def read_line(error):
    raise error


def prompt(error):
    """What a prompt of Typer does."""
    try:
        read_line(error)
    except (KeyboardInterrupt, EOFError):
        raise typer.Abort from None


def test_control_c_at_a_prompt_is_no_answer():
    with pytest.raises(typer.Exit) as ended, errors_on_one_line():
        prompt(KeyboardInterrupt())
    assert ended.value.exit_code == EXIT_INTERRUPTED


def test_the_end_of_the_input_at_a_prompt_is_a_no():
    with pytest.raises(typer.Abort), errors_on_one_line():
        prompt(EOFError())


# Progress


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("oprag.cli.console.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def shown(monkeypatch):
    """What is written to standard error."""
    out = io.StringIO()

    def console(*, terminal):
        made = Console(file=out, force_terminal=terminal, width=80, get_time=time.monotonic)
        monkeypatch.setattr("oprag.cli.console.error_console", lambda: made)
        return out

    return console


def test_on_a_terminal_there_is_a_bar_that_goes_in_the_end(shown, clock):
    out = shown(terminal=True)
    with WorkProgress("answers") as progress:
        progress.update(40, 100)
        progress._bar.refresh()
    assert re.search(r"━+ .*40/100 answers", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue()))
    assert out.getvalue().endswith("\x1b[2K")
    before = out.getvalue()
    with WorkProgress("answers") as progress:  # there is nothing to wait for
        progress.update(1, 1)
    assert out.getvalue() == before


def test_without_a_terminal_there_is_a_line_now_and_then(shown, clock):
    out = shown(terminal=False)
    with WorkProgress("chunks") as progress:
        for second in range(31):
            clock[0] = float(second)
            progress.update(second, 100)
    assert out.getvalue().splitlines() == [
        "10/100 chunks, about 0:01:30 left",
        "20/100 chunks, about 0:01:20 left",
        "30/100 chunks, about 0:01:10 left",
    ]


def test_what_earlier_runs_did_is_no_part_of_the_speed(shown, clock):
    out = shown(terminal=False)
    with WorkProgress() as progress:
        for second, done in ((0, 80), (4, 81), (20, 85)):
            clock[0] = float(second)
            progress.update(done, 100, "[bold]so far")
    assert out.getvalue().endswith("[bold]so far, about 0:01:00 left\n")
