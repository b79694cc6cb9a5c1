"""Progress bars on standard error."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from oprag.cli.console import error_console

if TYPE_CHECKING:
    from oprag.compare.running.run import RunReport

__all__ = ["LateProgress", "RunProgress"]

_DELAY = 1.0  # seconds before a progress bar appears
_LINE_INTERVAL = 10.0  # seconds between two lines where output is not a terminal
_SPEED_WINDOW = 120.0  # seconds over which the speed is averaged


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
