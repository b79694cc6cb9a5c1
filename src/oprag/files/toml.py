"""Reading a TOML file, with errors that say which file and what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from oprag.errors import InputFileError, OpragError
from oprag.files.text import file_text

__all__ = ["read_toml"]


def read_toml(path: Path, what: str, error: type[OpragError] = InputFileError) -> dict[str, Any]:
    """What a TOML file says.

    Args:
        path: The file.
        what: What it is to its reader, for the message: "experiment".
        error: What is raised where it is no TOML.

    Raises:
        InputFileError: The file is missing or cannot be read.
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as cause:
        why = "is a folder" if path.is_dir() else getattr(cause, "strerror", None) or str(cause)
        raise InputFileError(f"cannot read the {what} {path}: {why}", str(path)) from cause
    try:
        read = tomllib.loads(file_text(str(path), data))
        _check_integers(read)
    except RecursionError as cause:
        raise error(f"{path.name}: it is nested too deeply", str(path)) from cause
    except ValueError as cause:
        raise error(f"{path.name}: this is no TOML: {cause}", str(path)) from cause
    return read


def _check_integers(value: Any) -> None:
    """Refuse what no integer of TOML is, which Python reads, and cannot always write into a message."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("an integer has more than 64 bits")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_integers(one)
