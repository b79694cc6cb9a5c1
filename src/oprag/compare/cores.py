"""How many processor cores this process may use."""

from __future__ import annotations

import os
from math import inf
from pathlib import Path

__all__ = ["describe_cores", "usable_cores"]

MEMBERSHIP = Path("/proc/self/cgroup")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def usable_cores() -> float:
    """Cores that this process may use: its affinity, or the limit of its container (cgroup v2) if that is lower."""
    return min(_affinity(), _container_limit())


def describe_cores() -> str:
    """The usable cores for people, such as "1.5 of 64 (limit of the container)"."""
    usable, there = usable_cores(), os.cpu_count() or 1
    if usable == there:
        return f"{there}"
    limited = " (limit of the container)" if _container_limit() < _affinity() else ""
    return f"{usable:g} of {there}{limited}"


def _affinity() -> int:
    # What os.process_cpu_count() counts as well, from Python 3.13 on.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _container_limit() -> float:
    """Processor time in seconds that the control group of this process gets each second."""
    try:
        groups = [line[3:] for line in MEMBERSHIP.read_text(encoding="utf-8").splitlines() if line.startswith("0::")]
    except OSError:
        return inf
    limit = inf
    # A container sees its own group as the mount, whatever the path of the group is outside.
    for group in (*groups, ""):
        try:
            quota, period = (CONTROL_GROUPS / group.strip("/") / "cpu.max").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            limit = min(limit, int(quota) / int(period))
    return limit
