"""The progress of a long run."""

from __future__ import annotations

import sys
import time

from oprag.compare.running.run import ProgressCallback, RunReport

__all__ = ["told"]


def told(every: float = 60.0) -> ProgressCallback:
    """A watch that prints the progress, at most once per `every` seconds."""
    last = time.monotonic()

    def on_progress(progress: RunReport) -> None:
        nonlocal last
        if time.monotonic() - last > every:
            last = time.monotonic()
            print(
                f"{progress.done} of {progress.total} answers, {progress.spent.calls} calls",
                file=sys.stderr,
                flush=True,
            )

    return on_progress
