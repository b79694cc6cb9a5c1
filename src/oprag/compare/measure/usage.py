"""What a call costs: wall time, processor time and peak memory."""

from __future__ import annotations

import gc
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from oprag.errors import MeasuringError, MissingExtraError
from oprag.options import check_count

__all__ = ["Measured", "measure", "repeat", "usable_cores"]

Value = TypeVar("Value")
_measuring = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Measured(Generic[Value]):
    """What a call returned, and what it cost.

    Attributes:
        value: What it returned.
        wall_seconds: From its start to its end.
        cpu_seconds: The processor time, user and system, of this process and its descendants meanwhile; without that
            of watching the memory.
        cores: The cores that this process may use, see `usable_cores`.
        peak_memory_bytes: The most resident memory that this process and its descendants held at one time during the
            call, with all that was there before it, such as the interpreter and loaded models.
        memory_growth_bytes: By how much that is above what they held at the start. What the call fills of memory
            that was free in the process before is not in it: a fresh process shows it all.
        exact_memory: Whether the peak is the kernel's own mark, which misses nothing but some dozens of pages that
            were not yet counted; else it was looked for every 10 ms or less often, and a short one may be missed.
    """

    value: Value
    wall_seconds: float
    cpu_seconds: float
    cores: float
    peak_memory_bytes: int
    memory_growth_bytes: int
    exact_memory: bool

    @property
    def cpu_percent(self) -> float:
        """The used share of the usable cores: 100 x `cpu_seconds` / `wall_seconds` / `cores`."""
        return 100 * self.cpu_seconds / self.wall_seconds / self.cores


def measure(function: Callable[[], Value]) -> Measured[Value]:
    """Call a function and measure what that costs this process and its descendants.

    Whatever else the process does meanwhile is measured with it, so measure one thing at a time, best in a process of
    its own (`in_fresh_process`). Garbage is collected first, so that earlier calls are not paid for by this one.

    Args:
        function: What to call; what it raises is raised.

    Raises:
        MissingExtraError: The extra `measure` is not installed.
        MeasuringError: This process is measuring something already.
    """
    try:
        import psutil
    except ImportError as error:
        raise MissingExtraError("Measuring", "measure") from error
    if not _measuring.acquire(blocking=False):
        raise MeasuringError(
            "this process is measuring another call already, and each would be measured with the other; measure one "
            "after the other, or each in a process of its own with in_fresh_process()",
            function,
        )
    try:
        process = psutil.Process()
        gc.collect()
        with MemoryWatch(process) as memory:
            # The clocks are read nearest to the call, and looking for descendants is outside of them.
            descendants = descendants_seconds(process)
            cpu, wall = time.process_time(), time.perf_counter()
            value = function()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            descendants = descendants_seconds(process) - descendants
    finally:
        _measuring.release()
    return Measured(
        value=value,
        wall_seconds=wall,
        cpu_seconds=max(0.0, cpu - memory.watching_seconds) + max(0.0, descendants),
        cores=usable_cores(),
        peak_memory_bytes=memory.peak_bytes,
        memory_growth_bytes=memory.peak_bytes - memory.start_bytes,
        exact_memory=memory.exact,
    )


def repeat(function: Callable[[], Value], warmup: int = 1, repeats: int = 3) -> list[Measured[Value]]:
    """Measure a function several times, after calls that only warm it up.

    Args:
        function: What to call each time.
        warmup: How many calls are not measured: the first ones load code, files and models.
        repeats: How many are measured.

    Returns:
        The measured calls, in their sequence.

    Raises:
        OptionError: A number is none that it can be.
        MissingExtraError: The extra `measure` is not installed.
        MeasuringError: This process is measuring something already.
    """
    check_count("warmup", warmup, optional=False, least=0)
    check_count("repeats", repeats, optional=False)
    for _ in range(warmup):
        function()
    return [measure(function) for _ in range(repeats)]


MEMBERSHIPS = Path("/proc/self/cgroup")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def usable_cores(memberships: Path = MEMBERSHIPS, control_groups: Path = CONTROL_GROUPS) -> float:
    """The cores that this process may run on, or the share of them that its container is given, if that is less.

    The first is the processor affinity where the system has one, else the number of cores. The second is the tightest
    quota of the control groups (Linux, versions 1 and 2) that the process is in: processor time a period of wall time,
    which need not be whole.

    Args:
        memberships: The file that names the control groups of the process.
        control_groups: The folder that the control groups are mounted in.

    Returns:
        The number of cores, more than 0.
    """
    # What os.process_cpu_count() counts as well, from Python 3.13 on.
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    return min([cores, *_quotas(memberships, control_groups)])


def _quotas(memberships: Path, control_groups: Path) -> Iterator[float]:
    try:
        lines = memberships.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            mounts = [control_groups]
        elif "cpu" in controllers.split(","):
            mounts = [control_groups / controllers, control_groups / "cpu"]
        else:
            continue
        for mount in mounts:
            # A group has at most what the groups around it have. A container may see its own group as the mount.
            group = mount / path.lstrip("/")
            for folder in (group, *group.parents):
                if not folder.is_relative_to(mount):
                    break
                yield from _quota(folder)


def _quota(folder: Path) -> Iterator[float]:
    """The quota of one group, if it has one: microseconds of processor time over microseconds of wall time."""
    quota, period = "max", ""
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
        except OSError:
            return
    if quota != "max" and float(quota) > 0:
        yield float(quota) / float(period)


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


def descendants_seconds(process: Any) -> float:
    """User and system time of the ended children of this process and of its living descendants, so far.

    A descendant that ended is counted once its parent has waited for it. One that was left by its parent before it
    ended is not a descendant any more.

    Args:
        process: This process, a `psutil.Process`.

    Returns:
        Seconds, in clock ticks: 0.01 s on Linux.
    """
    return ended_children_seconds() + sum(map(_seconds, process.children(recursive=True)))


def ended_children_seconds() -> float:
    """User and system time of the children that have ended and were waited for; always 0 on Windows."""
    times = os.times()
    return times.children_user + times.children_system


def _seconds(descendant: Any) -> float:
    import psutil

    try:
        times = descendant.cpu_times()
    except psutil.Error:
        # It has ended meanwhile.
        return 0.0
    # Its own children that have ended; not known everywhere.
    ended: float = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    seconds: float = times.user + times.system + ended
    return seconds
