"""The peak of the memory that this process and its descendants hold, while something runs."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from oprag.compare.measuring.processor import ended_children_seconds

__all__ = ["MemoryWatch"]

INTERVAL = 0.01  # seconds
# A sample that takes long is followed by a rest so many times as long.
REST = 50
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


class MemoryWatch:
    """Watches the resident memory of this process and its descendants from `with` to the end of the block.

    A thread looks every 10 ms, or less often where looking takes more than 2 % of the time. On Linux the peak of this
    process itself is the kernel's high-water mark, which misses nothing: it is set back at the start (`clear_refs`)
    or, where that is not allowed, used if it has risen.

    Attributes:
        start_bytes: The resident memory at the start.
        peak_bytes: The most resident memory at one time, that of the start included. Memory that processes share
            counts for each of them.
        exact: Whether the peak is the kernel's mark, and no descendant was there that only the thread looked at.
        watching_seconds: The processor time that watching took.

    Args:
        process: This process, a `psutil.Process`.
    """

    def __init__(self, process: Any) -> None:
        self._process = process
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="oprag-memory", daemon=True)
        self._alone = True
        self.start_bytes = 0
        self.peak_bytes = 0
        self.exact = False
        self.watching_seconds = 0.0

    def __enter__(self) -> MemoryWatch:
        self._children_seconds = ended_children_seconds()
        self._was_reset = _reset_high_water_mark()
        self._mark = _high_water_mark()
        self.start_bytes = self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()
        mark = _high_water_mark()
        if mark is None or self._mark is None or not (self._was_reset or mark > self._mark):
            return
        self.peak_bytes = max(self.peak_bytes, mark)
        self.exact = self._alone and ended_children_seconds() == self._children_seconds

    def _watch(self) -> None:
        rest = INTERVAL
        while not self._stop.wait(rest):
            before = self.watching_seconds
            self._sample()
            self.watching_seconds = time.thread_time()
            # By processor time: a busy machine must not make it look away for seconds.
            rest = max(INTERVAL, REST * (self.watching_seconds - before))

    def _sample(self) -> int:
        descendants = self._process.children(recursive=True)
        self._alone = self._alone and not descendants
        resident = sum(map(_resident_bytes, [self._process, *descendants]))
        self.peak_bytes = max(self.peak_bytes, resident)
        return resident


def _resident_bytes(process: Any) -> int:
    import psutil

    try:
        resident: int = process.memory_info().rss
    except psutil.Error:
        # It has ended meanwhile.
        return 0
    return resident


def _high_water_mark() -> int | None:
    """The kernel's own peak of this process's resident memory, in bytes; None where there is none (not Linux)."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def _reset_high_water_mark() -> bool:
    """Set the mark to what is resident now (the value 5, see proc_pid_clear_refs(5)); whether that was possible."""
    try:
        # Only a file that is there: nothing is created on other systems.
        with CLEAR.open("r+", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return False
    return True
