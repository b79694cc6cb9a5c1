"""Limits on the work caused by untrusted files, and the environment variables that raise them."""

from __future__ import annotations

import os
import re
from typing import Final

from oprag._internal.masking import describe
from oprag.errors import OptionError

__all__ = ["DEFAULTS", "MEGABYTE", "limit", "variable"]

MEGABYTE: Final = 1_000_000
"""Bytes in a megabyte."""

# Ordinary files stay far below. A test compares the table in docs/reference/data_formats.md with this one.
DEFAULTS: Final = {
    "pdf_pages": 10_000,
    "pdf_characters": 20_000_000,
    "pdf_seconds": 10,
    "pdf_megabytes": 1_000,
    "lines": 1_000_000,
    "line_megabytes": 30,
    "unpacked_megabytes": 500,
    "grid_combinations": 100_000,
}


def variable(name: str) -> str:
    """Return the name of the environment variable that sets a limit."""
    return f"OPRAG_MAX_{name.upper()}"


def limit(name: str, more: float = 0) -> int:
    """Return the value of a limit: its environment variable, or its default plus `more`."""
    given = os.environ.get(variable(name), "").strip()
    if not given:
        return int(DEFAULTS[name] + more)
    if not re.fullmatch(r"(?a:[1-9]\d{0,8})", given.replace("_", "").replace(",", "")):
        raise OptionError(f"{variable(name)} must be an integer from 1 to 999,999,999, got {describe(given)}", given)
    return int(given.replace("_", "").replace(",", ""))
