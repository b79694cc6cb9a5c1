"""Warnings that point at the code that called this package."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from oprag.errors import OpragWarning

__all__ = ["warn"]

# What stands between us and the code that a user wrote.
_BETWEEN = {
    *("oprag", "langchain_core", "langchain_classic", "langchain", "llama_index", "llama_index_instrumentation"),
    *("wrapt", "contextlib", "asyncio", "concurrent", "threading", "pydantic"),
}


def warn(message: str, category: type[OpragWarning]) -> None:
    """Warn, with the file and line of the first caller outside of this package and of the frameworks that call it.

    In a thread or a task there may be none; then it is the first caller outside of this package.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    packages: list[str] = []
    while frame is not None:
        packages.append(frame.f_globals.get("__name__", "").partition(".")[0])
        frame = frame.f_back
    outside = [level for level, package in enumerate(packages, 1) if package != "oprag"]
    users = [level for level in outside if packages[level - 1] not in _BETWEEN]
    warnings.warn(message, category, stacklevel=next(iter(users or outside), 1))
