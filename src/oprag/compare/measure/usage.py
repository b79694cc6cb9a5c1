"""The wall time, processor time and memory of a call."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["Usage", "measure_usage"]

Value = TypeVar("Value")

INTERVAL = 0.01  # seconds between two samples of the memory
# Sampling and listing descendants are followed by a rest this many times as long: each takes at most 1 % of the time.
REST = 100


@dataclass(frozen=True, kw_only=True)
class Usage(Generic[Value]):
    """The value of a call, and what this process and its descendants used meanwhile.

    Attributes:
        value: The value that it returned.
        seconds: Wall time.
        cpu_seconds: Processor time, user and system, without that of sampling the memory.
        peak_memory_bytes: Highest sampled resident memory, with all that was there before the call, such as the
            interpreter and loaded models. Memory that processes share counts for each of them.
        memory_growth_bytes: The peak less the resident memory at the start. Memory that the process had freed before
            and the call uses again is not in it; in a fresh process there is none.
    """

    value: Value
    seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    memory_growth_bytes: int


def measure_usage(function: Callable[[], Value]) -> Usage[Value]:
    """Call a function and measure it; best in a process that does nothing else."""
    import psutil

    process = psutil.Process()
    # The garbage of earlier calls is not part of this one.
    gc.collect()
    memory = _MemorySampler(process)
    try:
        # The clocks are read next to the call; listing descendants is outside of them.
        descendants = _descendants_seconds(process)
        cpu, wall = time.process_time(), time.perf_counter()
        value = function()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        descendants = _descendants_seconds(process) - descendants
    finally:
        memory.stop()
    return Usage(
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
        began, rest, looking = time.perf_counter(), INTERVAL, 0.0
        descendants: list[Any] = []
        # By processor time: on a busy machine it must not rest for seconds.
        while not self._stop.wait(rest):
            before = time.thread_time()
            # It reads all processes of the system, which takes far longer than a sample.
            if looking * REST <= time.perf_counter() - began:
                descendants = self._descendants()
                looking += time.thread_time() - before
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
    """Processor time so far of living descendants, and of children that ended and were waited for (0 on Windows)."""
    ended = os.times()
    living = sum(_of_living(process.children(recursive=True), _cpu_seconds))
    return ended.children_user + ended.children_system + living


def _of_living(processes: Iterable[Any], figure: Callable[[Any], Value]) -> Iterator[Value]:
    """A figure of each process that is still alive."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            yield figure(process)


def _resident_bytes(process: Any) -> int:
    return int(process.memory_info().rss)


def _cpu_seconds(process: Any) -> float:
    """Processor time of a process, and of its own children that have ended where the system knows it."""
    times = process.cpu_times()
    return float(sum(getattr(times, name, 0.0) for name in ("user", "system", "children_user", "children_system")))
