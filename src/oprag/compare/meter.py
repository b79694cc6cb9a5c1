"""Wall time, CPU time and memory of this process during an answer, and the cores that it may use."""

from __future__ import annotations

import os
import threading
import time
from math import inf
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

__all__ = ["Measurement", "Meter", "usable_cores"]

_INTERVAL = 0.01  # seconds between memory samples
_MEMBERSHIP = Path("/proc/self/cgroup")
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


class Measurement(NamedTuple):
    """What the process used while an answer was made."""

    seconds: float  # wall time
    cpu_seconds: float  # of all cores, user and system
    peak_memory_mib: float  # resident memory


class Meter:
    """Measures this process between entry and exit; nothing else should run at the same time.

    CPU time is that of all threads, user and system, without the thread that samples memory. Memory is resident memory,
    including what was allocated before, such as loaded models.

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
        self._sampler = threading.Thread(target=self._sample, name="oprag-memory", daemon=True)
        self._sampler.start()
        # The clocks are read last here and first on exit.
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        seconds, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        self._stop.set()
        self._sampler.join()
        self.measurement = Measurement(seconds, max(0.0, cpu - self._own_seconds), self._peak_bytes / 2**20)

    def _sample(self) -> None:
        stopped = False
        while not stopped:
            self._peak_bytes = max(self._peak_bytes, self._process.memory_info().rss)
            stopped = self._stop.wait(_INTERVAL)
        self._peak_bytes = max(self._peak_bytes, self._process.memory_info().rss)
        self._own_seconds = time.thread_time()


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
