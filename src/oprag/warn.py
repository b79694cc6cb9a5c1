"""Warnings that point at the code that called this package."""

from __future__ import annotations

import sys
import warnings

from oprag.errors import OpragWarning

__all__ = ["warn"]


def warn(message: str, category: type[OpragWarning]) -> None:
    """Warn, with the file and line of the first caller outside of this package."""
    level, frame = 1, sys._getframe()  # noqa: SLF001
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "oprag":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
