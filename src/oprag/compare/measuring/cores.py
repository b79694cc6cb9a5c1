"""How many processor cores this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["usable_cores"]

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
