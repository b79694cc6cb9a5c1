"""Writing profiles, with comments for their readers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from oprag._version import __version__
from oprag.errors import OptionError
from oprag.profile.contents import FILE_NAME, FORMAT, KINDS, NOTHING, Profile
from oprag.profile.reading import is_profile
from oprag.profile.toml_text import key_text, value_text
from oprag.whole_file import FileKind, check_target, replacing

__all__ = ["PROFILE", "write_profile"]

PROFILE = FileKind("a profile", is_profile)
"""What a profile is."""

_HEAD = f"""\
# A profile of oprag: options for order-preserving RAG, loaded by X.from_profile("{FILE_NAME}").
# What is not said here is what it is by default. "{NOTHING}" stands for no value at all.
"""


def write_profile(profile: Profile, path: str | os.PathLike[str] = FILE_NAME) -> None:
    """Write a profile as a TOML file, whole or not at all; equal profiles give equal files.

    Args:
        profile: The profile.
        path: The file; a profile that is there is replaced.

    Raises:
        OptionError: The file cannot be written, something else than a profile is there, or a text in the profile is
            none that a file can hold.
    """
    given: Any = profile
    if not isinstance(given, Profile):
        raise OptionError(f"expected an oprag.profile.Profile, got {type(given).__name__}", profile)
    text = "".join(f"{line}\n" for line in _lines(profile)).encode()
    target = check_target(path, kind=PROFILE)
    try:
        with replacing(target) as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"cannot write the profile {path}: {getattr(error, 'strerror', None) or error}", path
        ) from error


def _lines(profile: Profile) -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    yield f"format = {FORMAT}"
    yield f"written_by = {value_text(f'oprag {__version__}')}"
    if profile.about:
        yield from ("", "[about]", "# Where this came from; it changes nothing.")
        yield from (f"{key_text(name)} = {value_text(value)}" for name, value in profile.about.items())
    for table, kind in KINDS.items():
        options = dict(getattr(profile, table))
        prompts = options.pop("prompts", None)
        helps = {one.name: one.metadata["help"] for one in fields(kind)}
        if options:
            yield from ("", f"[{table}]")
        for name, value in options.items():
            yield f"# {helps[name]}"
            yield f"{name} = {value_text(NOTHING if value is None else value)}"
        if prompts:
            yield from ("", f"[{table}.prompts]", f"# {helps['prompts']}")
            yield from (f"{name} = {value_text(text)}" for name, text in prompts.items())
