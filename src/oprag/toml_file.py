"""Reading a TOML file, with errors that say which file and what is wrong with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from oprag.errors import InputFileError, OpragError
from oprag.file_text import file_text

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
        return tomllib.loads(file_text(str(path), data))
    except tomllib.TOMLDecodeError as cause:
        raise error(f"{path.name}: this is no TOML: {cause}", str(path)) from cause
