"""A progress bar for work that may take long."""

from __future__ import annotations

import time

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from oprag.cli.show import error_console

__all__ = ["LateProgress"]

_PATIENCE = 1.0  # seconds without a progress bar


class LateProgress:
    """A progress bar on standard error that shows up only when the work takes longer than a second.

    Args:
        activity: What takes long.
        unit: What it is counted in.
    """

    def __init__(self, activity: str, unit: str) -> None:
        self._started = time.monotonic()
        self._bar = Progress(
            TextColumn(activity),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeRemainingColumn(),
            console=error_console(),
            transient=True,
            disable=not error_console().is_terminal,
        )
        self._task = self._bar.add_task(activity, total=None)

    def __enter__(self) -> LateProgress:
        return self

    def __exit__(self, *_: object) -> None:
        # One that was never shown would still print an empty line.
        if self._bar.live.is_started:
            self._bar.stop()

    def update(self, done: int, total: int) -> None:
        """Show how far it is."""
        if time.monotonic() - self._started > _PATIENCE and done < total:
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)
