"""Output of all commands: one line for each error or warning, JSON, progress, and the exit codes."""

from __future__ import annotations

import errno
import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from oprag import errors
from oprag._internal.masking import clean
from oprag._internal.text_table import CONTROL_CHARACTERS
from oprag.errors import OpragError, OpragWarning

__all__ = [
    "EXIT_INCOMPLETE",
    "EXIT_INTERRUPTED",
    "EXIT_PROBLEMS_FOUND",
    "WorkProgress",
    "console",
    "echo_json",
    "error_console",
    "errors_on_one_line",
    "exit_code",
    "print_status",
]

EXIT_INCOMPLETE, EXIT_INVALID_INPUT, EXIT_PROBLEMS_FOUND = 1, 2, 3
EXIT_INTERRUPTED = 130  # 128 plus the signal number, as in shells

_LINE_INTERVAL = 10.0  # seconds between two lines where output is not a terminal
_SPEED_WINDOW = 120.0  # seconds over which the speed is averaged

# The other errors mean that a command rejected its input.
_FAILED_WHILE_RUNNING = (
    *(errors.CacheError, errors.ChunkError, errors.EmbeddingError, errors.ModelError, errors.ResultsFileError),
    *(errors.SourceReadError, errors.TokenizerError),
)


def exit_code(error: OpragError) -> int:
    """Return the exit code for an error: 2 if the command rejected its input, 1 if it failed while running."""
    failed = type(error) is OpragError or isinstance(error, _FAILED_WHILE_RUNNING)
    return EXIT_INCOMPLETE if failed else EXIT_INVALID_INPUT


@contextmanager
def errors_on_one_line() -> Iterator[None]:
    """Print each warning, and errors of this package and of the OS, on one line instead of a traceback."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OpragWarning)
        try:
            yield
        except OpragError as error:
            print_status(f"Error: {error}", "red")
            raise typer.Exit(exit_code(error)) from error
        except OSError as error:
            # A closed pipe needs no message; a full disk does.
            if error.errno == errno.EPIPE:
                raise
            print_status(f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", "red")
            raise typer.Exit(EXIT_INCOMPLETE) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            # A prompt raises Abort on Ctrl-C and at the end of its input; the latter means "no".
            if isinstance(error, typer.Abort) and not isinstance(error.__context__, KeyboardInterrupt):
                raise
            print_status("Interrupted.", "yellow")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        finally:
            for warning in caught:
                if issubclass(warning.category, OpragWarning):
                    print_status(f"Warning: {warning.message}", "yellow")


def console() -> Console:
    """Return a console for standard output that never interprets document text as markup."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


@cache
def error_console() -> Console:
    """Return the console for standard error, for progress, warnings and errors."""
    return Console(stderr=True, emoji=False)


def print_status(message: str, style: str = "") -> None:
    """Print a message to standard error, with API keys masked."""
    error_console().print(clean(message), style=style, markup=False, highlight=False, soft_wrap=True)


def echo_json(value: Any) -> None:
    """Print a value as JSON, escaping control characters and characters that standard output cannot encode."""
    everything = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not everything, indent=2)
    typer.echo(CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


class WorkProgress:
    """The progress of work: a bar on a terminal, otherwise a line every ten seconds."""

    def __init__(self, unit: str = "") -> None:
        # The text comes last, because a line that is too long is cut off at the end.
        columns = (BarColumn(bar_width=10), TimeRemainingColumn(compact=True), TextColumn("{task.description}"))
        self._unit = unit
        self._bar = Progress(*columns, console=error_console(), transient=True, speed_estimate_period=_SPEED_WINDOW)
        self._last_printed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Stopping a bar that was never shown would print an empty line.
        if self._bar.live.is_started:
            self._bar.stop()

    def update(self, done: int, total: int, text: str | None = None) -> None:
        """Show the progress, by default as the number of units that are done."""
        if not self._bar.tasks:
            # What was done before must not count toward the speed.
            self._bar.add_task("", total=total, completed=done)
        (task,) = self._bar.tasks
        text = f"{done:,}/{total:,} {self._unit}" if text is None else text
        self._bar.update(task.id, completed=done, total=total, description=text)
        now = time.monotonic()
        if self._bar.console.is_terminal:
            if done < total:
                self._bar.start()
        elif now - self._last_printed >= _LINE_INTERVAL:
            self._last_printed = now
            left = task.time_remaining
            ending = "" if left is None else f", about {timedelta(seconds=round(left))} left"
            self._bar.console.print(f"{text}{ending}", markup=False, highlight=False, soft_wrap=True)
