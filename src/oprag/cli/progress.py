"""Progress bars on standard error."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from oprag.cli.console import error_console

if TYPE_CHECKING:
    from oprag.compare.running import report as progress

__all__ = ["LateProgress", "RunProgress"]

_PATIENCE = 1.0  # seconds without a progress bar


class LateProgress:
    """A progress bar on standard error that appears only if the work takes longer than a second."""

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
        """Show the progress."""
        if time.monotonic() - self._started > _PATIENCE and done < total:
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)


_EVERY = 10.0  # seconds between two lines, without a terminal
_PERIOD = 120.0  # seconds over which the speed is averaged


class RunProgress:
    """A progress bar on a terminal; elsewhere a line every ten seconds."""

    def __init__(self, *, priced: bool) -> None:
        self._priced = priced
        self._console = error_console()
        self._bar = Progress(
            BarColumn(bar_width=10),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.description}"),  # last, since what is too long is cut off
            console=self._console,
            transient=True,
            speed_estimate_period=_PERIOD,
        )
        self._began: tuple[float, int] | None = None
        self._told = time.monotonic()

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # One that was never shown would still print an empty line.
        if self._bar.live.is_started:
            self._bar.stop()

    def update(self, now: progress.Progress) -> None:
        """Show the progress."""
        if self._began is None:
            self._began = time.monotonic(), now.done
        if self._console.is_terminal:
            self._update_bar(now)
        elif time.monotonic() - self._told >= _EVERY:
            self._told = time.monotonic()
            self._console.print(
                f"{self._text(now)}{self._remaining(now)}", markup=False, highlight=False, soft_wrap=True
            )

    def _update_bar(self, now: progress.Progress) -> None:
        if not self._bar.tasks:
            # Begin with what earlier runs have done, which says nothing about the speed.
            self._bar.add_task(self._text(now), total=now.total, completed=now.done)
            self._bar.start()
        self._bar.update(self._bar.tasks[0].id, completed=now.done, total=now.total, description=self._text(now))

    def _text(self, now: progress.Progress) -> str:
        from oprag.compare.analysis.wording import money_text

        parts = [] if now.stopping is None else [f"ending, {now.running:,} calls on their way"]
        parts += [f"{now.done:,}/{now.total:,} answers", f"{now.cells:,}/{now.all_cells:,} cells"]
        if now.failed:
            parts.append(f"{now.failed:,} failed")
        if self._priced:
            parts.append(f"{money_text(now.spent.money)} spent")
        if now.spent.calls:
            parts += [f"{now.spent.calls:,} calls", f"{_short(now.spent.tokens)} tokens"]
        return ", ".join(parts)

    def _remaining(self, now: progress.Progress) -> str:
        if self._began is None:
            return ""
        since, done = self._began
        if now.done <= done:
            return ""
        seconds = (time.monotonic() - since) / (now.done - done) * (now.total - now.done)
        minutes, seconds = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f", about {hours}:{minutes:02}:{seconds:02} left"


def _short(count: int) -> str:
    for unit, size in (("M", 1_000_000), ("K", 1_000)):
        if count >= 10 * size:
            return f"{count / size:,.1f}{unit}"
    return f"{count:,}"
