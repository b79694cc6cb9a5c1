"""What every command prints in the same way: errors and warnings as one line each, and JSON; and the exit codes."""

from __future__ import annotations

import errno
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import typer
from rich.console import Console

from oprag import errors
from oprag.errors import OpragError, OpragWarning
from oprag.masking import OBEYED, clean

__all__ = [
    "INTERRUPTED",
    "UNFINISHED",
    "console",
    "echo_json",
    "error_console",
    "exit_code",
    "plain_errors",
    "tell",
]

UNFINISHED, REFUSED = 1, 2
INTERRUPTED = 130  # as a shell has it, 128 and the number of the signal

_REFUSALS = (
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
)


def exit_code(error: OpragError) -> int:
    """The exit code of a command that ends with this error: refused before anything was begun, or not finished."""
    return REFUSED if isinstance(error, _REFUSALS) else UNFINISHED


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print errors and warnings of this package as one line each, in place of a traceback; those of the system, too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OpragWarning)
        try:
            yield
        except OpragError as error:
            tell(f"Error: {error}", "red")
            raise typer.Exit(exit_code(error)) from error
        except OSError as error:
            # Who reads no more of a pipe needs no message; a disk that is full, or the like, does.
            if error.errno == errno.EPIPE:
                raise
            tell(f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", "red")
            raise typer.Exit(UNFINISHED) from error
        except (KeyboardInterrupt, typer.Abort) as error:
            # A prompt makes the same of Ctrl-C as of the end of its input, which is an answer: no.
            if isinstance(error, typer.Abort) and not isinstance(error.__context__, KeyboardInterrupt):
                raise
            tell("Interrupted.", "yellow")
            raise typer.Exit(INTERRUPTED) from None
        finally:
            for warning in caught:
                if issubclass(warning.category, OpragWarning):
                    tell(f"Warning: {warning.message}", "yellow")


def console() -> Console:
    """Standard output; document text is never read as markup."""
    return Console(markup=False, highlight=False, emoji=False, soft_wrap=True)


@cache
def error_console() -> Console:
    """Standard error, for progress, warnings and errors."""
    return Console(stderr=True)


def tell(message: str, style: str = "") -> None:
    """Print a message on standard error; keys that an error repeats are masked."""
    error_console().print(clean(message), style=style, markup=False, highlight=False, soft_wrap=True)


def echo_json(value: Any) -> None:
    """Print a value as JSON; escaped is what a terminal obeys, or what standard output does not take."""
    everything = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not everything, indent=2)
    typer.echo(OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))
