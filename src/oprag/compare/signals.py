"""Ending a run when its user wants that."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

__all__ = ["Stoppable", "stopped_by_signals"]


class Stoppable(Protocol):
    """Work that can be told to end.

    Attributes:
        stopped: Why it ends; None while it goes on.
    """

    stopped: str | None

    def stop(self, reason: str) -> None:
        """Begin nothing more; may be called between any two steps."""
        ...


@contextmanager
def stopped_by_signals(work: Stoppable, stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and a request to end stop the work cleanly; a second one leaves at once.

    Args:
        work: What is stopped, with the reason "interrupted".
        stop: Set as well.

    Raises:
        KeyboardInterrupt: At the second one.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(*_: object) -> None:
        if work.stopped is not None:
            raise KeyboardInterrupt
        work.stop("interrupted")
        stop.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # A handler that was not set by Python cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
