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
    """Return the date, the machine and the versions of these packages as a sentence."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    about = [_processor(), f"{os.cpu_count()} cores", _memory(), _system(), python, *map(_version, packages)]
    return f"Measured {datetime.now(UTC):%Y-%m-%d} on {', '.join(filter(None, about))}."


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
        release = platform.freedesktop_os_release()
        return f"{release['ID'].capitalize()} {release['VERSION_ID']}"
    except (OSError, KeyError):
        return platform.platform()


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
