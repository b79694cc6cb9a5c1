"""Reading profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from oprag._version import __version__
from oprag.checks import check_names
from oprag.errors import InputFileError, OpragError, OptionError, PromptError
from oprag.masking import describe
from oprag.profile.contents import FILE_NAME, FORMAT, KINDS, NOTHING, Profile
from oprag.toml_file import read_toml

__all__ = ["is_profile", "read_profile"]

_TABLES = (*KINDS, "about")
_KEYS = ("format", "written_by", *_TABLES)


def read_profile(path: str | os.PathLike[str] = FILE_NAME) -> Profile:
    """The profile that a TOML file describes; `docs/profiles.md` has an example.

    Args:
        path: The file.

    Raises:
        InputFileError: The file is missing, cannot be read or is no TOML.
        OptionError: The file is of another format, or has a key that is unknown or cannot have its value.
        PromptError: A prompt in it cannot be used.
    """
    given: Any = path
    if not isinstance(given, str | os.PathLike):
        raise OptionError(f"expected the path of a profile, got {describe(given)}", path)
    place = Path(path)
    tables = read_toml(place, "profile")
    _check_format(tables, place.name)
    with _at(place.name, tables):
        _check_keys(tables)
    made: dict[str, Any] = {"about": tables.get("about", {})}
    for table, kind in KINDS.items():
        nothing = {one.name for one in fields(kind) if one.default is None}
        made[table] = {name: _value(value, name in nothing) for name, value in tables.get(table, {}).items()}
    for table in _TABLES:
        # Each by itself, so that a message says where it was.
        with _at(f"{place.name}: in [{table}]", tables):
            Profile(**{table: made[table]})
    return Profile(**made)


def is_profile(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a profile, even one of another format or with keys that cannot be: nothing else is in it."""
    try:
        tables = read_toml(Path(path), "profile")
    except InputFileError:
        return False
    return type(tables.get("format")) is int and tables.keys() <= {*_KEYS}


def _value(value: Any, may_be_nothing: bool) -> Any:  # noqa: FBT001
    if isinstance(value, list):
        return tuple(value)
    return None if may_be_nothing and value == NOTHING else value


def _check_format(tables: Mapping[str, Any], name: str) -> None:
    if "format" not in tables:
        raise OptionError(
            f"{name}: there is no format, which every profile begins with; is this one? This oprag reads and writes "
            f"format = {FORMAT}",
            None,
        )
    given = tables["format"]
    if type(given) is not int or given != FORMAT:
        newer = type(given) is int and given > FORMAT
        what = "a newer oprag wrote it, so upgrade: pip install -U oprag" if newer else "write it anew"
        raise OptionError(
            f"{name}: oprag {__version__} reads format = {FORMAT} of profiles, got "
            f"{describe(given)}{_writer(tables)}; {what}",
            given,
        )


def _check_keys(tables: Mapping[str, Any]) -> None:
    for name in tables:
        for table, kind in KINDS.items():
            if name not in _KEYS and name in kind.__dataclass_fields__:
                raise OptionError(f"{name} belongs into the table [{table}]", name)
    check_names(tables, _KEYS)
    writer = tables.get("written_by", "")
    if not isinstance(writer, str):
        raise OptionError(f"written_by must be a text, got {describe(writer)}", writer)
    for table in _TABLES:
        if not isinstance(tables.get(table, {}), dict):
            raise OptionError(f"{table} must be a table, [{table}], got {describe(tables[table])}", tables[table])


@contextmanager
def _at(place: str, tables: Mapping[str, Any]) -> Iterator[None]:
    """Say where it was what is raised within, as it is written in TOML."""
    try:
        yield
    except (OptionError, PromptError) as error:
        message = str(error).replace("unknown option ", "unknown key ").replace(" or None,", f' or "{NOTHING}",')
        if message.startswith("unknown key ") and (writer := _writer(tables)):
            message += f"{writer}, and this is {__version__}: the key may have another name now, see the changelog"
        raise _kind(error)(f"{place}: {message}", error.value) from error


def _kind(error: OpragError) -> type[OpragError]:
    return PromptError if isinstance(error, PromptError) else OptionError


def _writer(tables: Mapping[str, Any]) -> str:
    """Who wrote it, where that is another version."""
    writer = tables.get("written_by")
    return f"; {writer} wrote it" if isinstance(writer, str) and writer != f"oprag {__version__}" else ""
