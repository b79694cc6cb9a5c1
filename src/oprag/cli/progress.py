"""Progress bars on standard error."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from oprag.cli.console import error_console

if TYPE_CHECKING:
    from oprag.compare.running.report import RunReport

__all__ = ["LateProgress", "RunProgress"]

_PATIENCE = 1.0  # seconds without a progress bar
_EVERY = 10.0  # seconds between two lines, without a terminal
_PERIOD = 120.0  # seconds over which the speed is averaged


class _Bar:
    """A bar that disappears when the work is done; it is not shown before the first `update`."""

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
    """A progress bar that appears only on a terminal, and only if the work takes longer than a second."""

    def __init__(self, activity: str, unit: str) -> None:
        columns = (TextColumn(activity), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
        super().__init__(*columns, disable=not error_console().is_terminal)
        self._task = self._bar.add_task(activity, total=None)

    def update(self, done: int, total: int) -> None:
        """Show the progress."""
        if time.monotonic() - self._started > _PATIENCE and done < total:
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)


class RunProgress(_Bar):
    """A progress bar on a terminal; elsewhere a line every ten seconds."""

    def __init__(self, *, priced: bool) -> None:
        # The text is last, since what is too long is cut off.
        columns = (BarColumn(bar_width=10), TimeRemainingColumn(compact=True), TextColumn("{task.description}"))
        super().__init__(*columns, speed_estimate_period=_PERIOD)
        self._priced = priced
        self._told = self._started

    def update(self, now: RunReport) -> None:
        """Show the progress."""
        if not self._bar.tasks:
            # The work of earlier runs does not count for the speed.
            self._bar.add_task("", total=now.total, completed=now.done)
        (task,) = self._bar.tasks
        self._bar.update(task.id, completed=now.done, total=now.total, description=self._text(now))
        if self._bar.console.is_terminal:
            self._bar.start()
        elif time.monotonic() - self._told >= _EVERY:
            self._told = time.monotonic()
            left = (
                "" if task.time_remaining is None else f", about {timedelta(seconds=round(task.time_remaining))} left"
            )
            self._bar.console.print(f"{task.description}{left}", markup=False, highlight=False, soft_wrap=True)

    def _text(self, now: RunReport) -> str:
        from oprag.compare.analysis.wording import money_text

        parts = [] if not now.outcome else [f"ending, {now.running:,} calls on their way"]
        parts.append(f"{now.done:,}/{now.total:,} answers")
        if now.failed:
            parts.append(f"{sum(now.failed.values()):,} failed")
        if self._priced:
            parts.append(f"{money_text(now.spent.money)} spent")
        if now.spent.calls:
            parts += [f"{now.spent.calls:,} calls", f"{now.spent.tokens:,} tokens"]
        return ", ".join(parts)
