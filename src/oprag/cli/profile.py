"""Options of a profile on the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from oprag.cli.options import TypedOptions
from oprag.errors import MissingExtraError, OptionError
from oprag.files.writing import check_target
from oprag.masking import describe
from oprag.options import ContextOptions
from oprag.profile import PROFILE, Profile, read_profile

__all__ = ["ProfilePath", "check_profile_target", "context_options_of", "profile_for_answers"]

ProfilePath = Annotated[
    str | None, typer.Option("--profile", help="A profile, such as oprag.toml; options that are typed win over it.")
]


def profile_for_answers(path: str | None, *typed: TypedOptions) -> Profile:
    """The profile that answers are made with; one that says nothing where there is no path.

    Args:
        path: The file.
        *typed: The options, which win over it.

    Raises:
        InputFileError: The file is missing, cannot be read or is no TOML.
        OptionError: The file is of another format, says what cannot be, or what would be lost.
        MissingExtraError: LangChain is not installed.
    """
    if path is None:
        return Profile()
    profile = read_profile(path)
    if "stitch" in profile.context:
        # What checks it needs pydantic, which comes with what makes answers.
        try:
            from oprag.profile import check_stitching
        except ImportError as error:
            raise MissingExtraError("oprag ask", "ask") from error
        given = {name: options.typed[name] for options in typed for name in options.given}
        check_stitching(profile, path, given, "oprag ask")
    return profile


def context_options_of(options: TypedOptions, path: str | None) -> ContextOptions:
    """How a context is made that is looked at: as the method of the profile would read it.

    Raises:
        InputFileError: The file is missing, cannot be read or is no TOML.
        OptionError: The file is of another format, or an option has a value that it cannot have.
    """
    profile = Profile() if path is None else read_profile(path)
    context_options = options.value(profile.context_keywords(dict.fromkeys(options.given)))
    return profile.as_method_options().numbered(context_options)


def check_profile_target(path: str, *others: str) -> None:
    """Refuse a file that a profile cannot be written to, or that is something else and would be lost.

    Args:
        path: The file.
        others: Files and folders that are read.

    Raises:
        OptionError: It has no name, cannot be written, is one of the others, or is no profile.
    """
    if not path.strip():
        raise OptionError(f"--write-profile must name a file, or be none for nowhere, got {describe(path)}", path)
    check_target(path, *others, kind=PROFILE, advice="name another file with --write-profile, or none")
