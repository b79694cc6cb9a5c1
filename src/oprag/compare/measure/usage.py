"""Wall time, CPU time and memory of a call."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["ResourceUsage", "measure_usage"]

Value = TypeVar("Value")

INTERVAL = 0.01  # seconds between memory samples
# Pause after sampling, and after listing descendants, relative to their duration: each takes at most 1 % of the time.
REST = 100


@dataclass(frozen=True, kw_only=True)
class ResourceUsage(Generic[Value]):
    """Value of a call, and the resources that this process and its descendants used during it.

    Attributes:
        value: Value that the call returned.
        seconds: Wall time.
        cpu_seconds: CPU time, user and system, excluding that of memory sampling.
        peak_memory_bytes: Highest sampled resident memory, including memory allocated before the call, such as that of
            the interpreter and loaded models. Memory shared by several processes counts once for each of them.
        memory_growth_bytes: Peak minus resident memory at the start. Memory that the process had freed before and the
            call reuses is not included; a fresh process has none.
    """

    value: Value
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    memory_growth_bytes: int


def measure_usage(function: Callable[[], Value]) -> ResourceUsage[Value]:
    """Call a function and measure it; use a process that does nothing else for accurate results."""
    import psutil

    process = psutil.Process()
    # Collect garbage of earlier calls now, so that this call is not charged for it.
    gc.collect()
    memory = _MemorySampler(process)
    try:
        # Read the clocks right before and after the call, so that listing descendants is not measured.
        descendants = _descendants_seconds(process)
        cpu, wall = time.process_time(), time.perf_counter()
        value = function()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        descendants = _descendants_seconds(process) - descendants
    finally:
        memory.stop()
    return ResourceUsage(
        value=value,
        seconds=wall,
        cpu_seconds=max(0.0, cpu - memory.own_seconds) + max(0.0, descendants),
        peak_memory_bytes=memory.peak_bytes,
        memory_growth_bytes=memory.peak_bytes - memory.start_bytes,
    )


class _MemorySampler:
    """Samples the resident memory of a process and its descendants until it is stopped."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._stop = threading.Event()
        self.peak_bytes = 0
        self.own_seconds = 0.0
        self.start_bytes = self._sample(self._descendants())
        self._thread = threading.Thread(target=self._run, name="oprag-memory", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._sample(self._descendants())

    def _run(self) -> None:
        started, rest, listing = time.perf_counter(), INTERVAL, 0.0
        descendants: list[Any] = []
        # CPU time of this thread, not wall time: on a busy machine, the pause must not grow to seconds.
        while not self._stop.wait(rest):
            before = time.thread_time()
            # Listing descendants reads all processes of the system, which takes far longer than a sample.
            if listing * REST <= time.perf_counter() - started:
                descendants = self._descendants()
                listing += time.thread_time() - before
            before = time.thread_time()
            self._sample(descendants)
            rest = max(INTERVAL, REST * (time.thread_time() - before))
        self.own_seconds = time.thread_time()

    def _descendants(self) -> list[Any]:
        found: list[Any] = self._process.children(recursive=True)
        return found

    def _sample(self, descendants: Sequence[Any]) -> int:
        resident = sum(_of_living([self._process, *descendants], _resident_bytes))
        self.peak_bytes = max(self.peak_bytes, resident)
        return resident


def _descendants_seconds(process: Any) -> float:
    """CPU time so far of living descendants, and of children that ended and were waited for (0 on Windows)."""
    ended = os.times()
    living = sum(_of_living(process.children(recursive=True), _cpu_seconds))
    return ended.children_user + ended.children_system + living


def _of_living(processes: Iterable[Any], measure: Callable[[Any], Value]) -> Iterator[Value]:
    """Yield a measurement of each process that is still alive."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            yield measure(process)


def _resident_bytes(process: Any) -> int:
    return int(process.memory_info().rss)


def _cpu_seconds(process: Any) -> float:
    """CPU time of a process, and of its terminated children if the system reports it."""
    times = process.cpu_times()
    return float(sum(getattr(times, name, 0.0) for name in ("user", "system", "children_user", "children_system")))
