"""What a call costs: wall time, processor time and peak memory."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from oprag.compare.measuring.cores import usable_cores
from oprag.compare.measuring.memory import MemoryWatch
from oprag.compare.measuring.processor import descendants_seconds
from oprag.errors import MeasuringError, MissingExtraError
from oprag.options import check_count

__all__ = ["Measured", "measure", "repeat"]

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
