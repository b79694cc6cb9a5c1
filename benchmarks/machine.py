"""The machine and the package versions of a benchmark."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["machine"]


def machine(packages: Iterable[str]) -> str:
    """Return the machine, the versions of these packages and the date as a sentence."""
    versions = ", ".join(filter(None, map(_version, packages)))
    return (
        f"Measured {datetime.now(UTC):%Y-%m-%d} (load average {os.getloadavg()[0]:.1f}) on {_processor()}, "
        f"{os.cpu_count()} cores, {_memory()}; {_system()}; {platform.python_implementation()} "
        f"{platform.python_version()}; {versions}."
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _system() -> str:
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {platform.machine()}"
    except (OSError, KeyError):
        return platform.platform()


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
