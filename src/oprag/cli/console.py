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
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from oprag import errors
from oprag.errors import OpragError, OpragWarning
from oprag.masking import CONTROL_CHARACTERS, clean

if TYPE_CHECKING:
    from oprag.compare.running.report import RunReport

__all__ = [
    "EXIT_INCOMPLETE",
    "EXIT_INTERRUPTED",
    "EXIT_PROBLEMS_FOUND",
    "NAME_WIDTH",
    "LateProgress",
    "RunProgress",
    "console",
    "echo_json",
    "error_console",
    "errors_on_one_line",
    "exit_code",
    "print_status",
]

EXIT_INCOMPLETE, EXIT_INVALID_INPUT, EXIT_PROBLEMS_FOUND = 1, 2, 3
NAME_WIDTH = 200  # characters of a source name
EXIT_INTERRUPTED = 130  # 128 plus the signal number, as in shells

_DELAY = 1.0  # seconds before a progress bar appears
_LINE_INTERVAL = 10.0  # seconds between two lines where output is not a terminal
_SPEED_WINDOW = 120.0  # seconds over which the speed is averaged

_INVALID_INPUT_ERRORS = (
    errors.BudgetError,
    errors.DataError,
    errors.ExperimentError,
    errors.InputFileError,
    errors.MissingExtraError,
    errors.MissingPositionError,
    errors.MissingSourceError,
    errors.OptionError,
    errors.PromptError,
    errors.QueryError,
    errors.SourceTooLongError,
    errors.UncertainOrderError,
)


def exit_code(error: OpragError) -> int:
    """Return the exit code for an error: 2 if the command rejected its input, 1 if it failed while running."""
    return EXIT_INVALID_INPUT if isinstance(error, _INVALID_INPUT_ERRORS) else EXIT_INCOMPLETE


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
    return Console(stderr=True)


def print_status(message: str, style: str = "") -> None:
    """Print a message to standard error, with API keys masked."""
    error_console().print(clean(message), style=style, markup=False, highlight=False, soft_wrap=True)


def echo_json(value: Any) -> None:
    """Print a value as JSON, escaping control characters and characters that standard output cannot encode."""
    everything = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not everything, indent=2)
    typer.echo(CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


class _Bar:
    """A progress bar that appears at the first `update` and disappears when the work is done."""

    def __init__(self, *columns: str | ProgressColumn, **options: Any) -> None:
        self._started = time.monotonic()
        self._bar = Progress(*columns, console=error_console(), transient=True, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Stopping a bar that was never shown would print an empty line.
        if self._bar.live.is_started:
            self._bar.stop()


class LateProgress(_Bar):
    """A progress bar that appears only on a terminal and only if the work takes longer than a second."""

    def __init__(self, activity: str, unit: str) -> None:
        columns = (TextColumn(activity), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
        super().__init__(*columns, disable=not error_console().is_terminal)
        self._task = self._bar.add_task(activity, total=None)

    def update(self, done: int, total: int) -> None:
        """Show the progress."""
        if time.monotonic() - self._started > _DELAY and done < total:
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)


class RunProgress(_Bar):
    """The progress of a run: a bar on a terminal, otherwise a line every ten seconds."""

    def __init__(self, *, priced: bool) -> None:
        # The text comes last, because a line that is too long is cut off at the end.
        columns = (BarColumn(bar_width=10), TimeRemainingColumn(compact=True), TextColumn("{task.description}"))
        super().__init__(*columns, speed_estimate_period=_SPEED_WINDOW)
        self._priced = priced
        self._last_printed = self._started

    def update(self, now: RunReport) -> None:
        """Show the progress."""
        if not self._bar.tasks:
            # Answers of earlier runs must not count toward the speed.
            self._bar.add_task("", total=now.total, completed=now.done)
        (task,) = self._bar.tasks
        self._bar.update(task.id, completed=now.done, total=now.total, description=self._text(now))
        if self._bar.console.is_terminal:
            self._bar.start()
        elif time.monotonic() - self._last_printed >= _LINE_INTERVAL:
            self._last_printed = time.monotonic()
            left = (
                "" if task.time_remaining is None else f", about {timedelta(seconds=round(task.time_remaining))} left"
            )
            self._bar.console.print(f"{task.description}{left}", markup=False, highlight=False, soft_wrap=True)

    def _text(self, now: RunReport) -> str:
        from oprag.compare.analysis.wording import money_text

        parts = [] if not now.outcome else [f"stopping, {now.running:,} calls in progress"]
        parts.append(f"{now.done:,}/{now.total:,} answers")
        if now.failed:
            parts.append(f"{sum(now.failed.values()):,} failed")
        if self._priced:
            parts.append(f"{money_text(now.spent.money)} spent")
        if now.spent.calls:
            parts += [f"{now.spent.calls:,} calls", f"{now.spent.tokens:,} tokens"]
        return ", ".join(parts)
