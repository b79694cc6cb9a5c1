"""Wall time, CPU time and memory of this process during an answer, and the cores that it may use."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

__all__ = ["Measurement", "Meter", "usable_cores"]

_INTERVAL = 0.01  # seconds between memory samples
_RELIST = 0.5  # seconds between two listings of the children, which read all processes of the system
_MEMBERSHIP = Path("/proc/self/cgroup")
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


class Measurement(NamedTuple):
    """What the process and its children used while an answer was made."""

    seconds: float  # wall time
    cpu_seconds: float  # of all cores, user and system
    peak_memory_mib: float  # resident memory


class Meter:
    """Measures this process and its children between entry and exit; nothing else should run at the same time.

    CPU time is that of all threads, user and system, without the thread that samples memory. Memory is resident memory,
    including what was allocated before, such as loaded models; memory that processes share counts once for each.

    Attributes:
        measurement: The measurement, set on exit.
    """

    measurement: Measurement

    def __enter__(self) -> Self:
        import psutil

        self._process = psutil.Process()
        self._stop = threading.Event()
        self._peak_bytes = 0
        self._own_seconds = 0.0
        self._children: list[Any] = self._process.children(recursive=True)
        self._sample()
        self._sampler = threading.Thread(target=self._run, name="oprag-memory", daemon=True)
        self._sampler.start()
        # The clocks are read last here and first on exit, so that listing the children is not measured.
        self._children_seconds = self._seconds_of_children()
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        seconds, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self._stop.set()
        self._sampler.join()
        self._children = self._process.children(recursive=True)
        self._sample()
        children = self._seconds_of_children() - self._children_seconds
        self.measurement = Measurement(
            seconds=seconds,
            cpu_seconds=max(0.0, cpu - self._own_seconds) + max(0.0, children),
            peak_memory_mib=self._peak_bytes / 2**20,
        )

    def _run(self) -> None:
        listed = time.perf_counter()
        while not self._stop.wait(_INTERVAL):
            if time.perf_counter() - listed > _RELIST:
                self._children = self._process.children(recursive=True)
                listed = time.perf_counter()
            self._sample()
        self._own_seconds = time.thread_time()

    def _sample(self) -> None:
        resident = self._of_living([self._process, *self._children], lambda process: process.memory_info().rss)
        self._peak_bytes = max(self._peak_bytes, int(sum(resident)))

    def _seconds_of_children(self) -> float:
        """CPU time so far of the living children, and of those that ended and were waited for (0 on Windows)."""
        ended = os.times()
        living = self._of_living(self._children, lambda process: sum(process.cpu_times()[:4]))
        return ended.children_user + ended.children_system + sum(living)

    def _of_living(self, processes: list[Any], value: Callable[[Any], float]) -> Iterator[float]:
        import psutil

        for process in processes:
            with suppress(psutil.Error):
                yield value(process)


def usable_cores() -> float:
    """Cores that this process may use: its CPU affinity, or the limit of its container (cgroup v2) if lower."""
    # The affinity is os.process_cpu_count(), which needs Python 3.13.
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(affinity, _container_limit())


def _container_limit() -> float:
    """CPU seconds per second that the cgroup of this process may use."""
    try:
        groups = [line[3:] for line in _MEMBERSHIP.read_text(encoding="utf-8").splitlines() if line.startswith("0::")]
    except OSError:
        return inf
    limit = inf
    # Inside a container its own cgroup is mounted as the root, whatever its path is on the host.
    for group in (*groups, ""):
        try:
            quota, period = (_CONTROL_GROUPS / group.strip("/") / "cpu.max").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            limit = min(limit, int(quota) / int(period))
    return limit
