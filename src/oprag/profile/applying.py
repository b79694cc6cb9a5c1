"""Making retrievers, postprocessors, chains and engines of a profile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from oprag.errors import OptionError
from oprag.fields import ContextFields
from oprag.masking import describe
from oprag.methods.options import MethodOptions
from oprag.profile.contents import Profile
from oprag.profile.reading import read_profile

__all__ = ["check_stitching", "made_of_profile"]

Made = TypeVar("Made", bound=ContextFields)

# How fast calls are made changes no answer.
_WITHOUT_EFFECT = {"max_concurrency"}


def made_of_profile(kind: type[Made], given: Profile | str | os.PathLike[str], keywords: Mapping[str, Any]) -> Made:
    """An object of a surface with the options of a profile.

    What the surface has no use for is left out where that changes no answer, and else refused.

    Args:
        kind: The class of the surface; one that has a `method` makes answers.
        given: The profile, or the path of one.
        keywords: What the constructor is given otherwise; it wins.

    Raises:
        OptionError: The profile cannot be used, or says what would be ignored.
        InputFileError: The file is missing, cannot be read or is no TOML.
        ValidationError: The constructor refuses what it is given (pydantic's error, with a note of the profile).
    """
    profile = given if isinstance(given, Profile) else read_profile(given)
    name = "the profile" if given is profile else os.fspath(given)  # type: ignore[arg-type]
    if "method" in kind.model_fields:
        options = _of_answers(profile, name, keywords, kind.__name__)
    else:
        _refuse_method(profile, name, kind.__name__)
        options = profile.context_keywords(keywords)
    try:
        return kind(**options, **keywords)
    except ValueError as error:
        error.add_note(f"{name} gives {_shown(options) or 'no options'}")
        raise


def check_stitching(profile: Profile, name: str, keywords: Mapping[str, Any], kind: str) -> None:
    """Refuse a profile of contexts that were not stitched where the model reads stitched ones.

    Args:
        profile: The profile.
        name: What it is called in the message.
        keywords: What is given otherwise; it wins.
        kind: What makes the answers.

    Raises:
        OptionError: The profile says `stitch=False`, and no passages are numbered, which are not stitched.
    """
    cites = keywords.get("cite", profile.method.get("cite", False))
    if profile.context.get("stitch") is False and "stitch" not in keywords and not cites:
        raise OptionError(
            f"{name} says stitch = false, and {kind} always stitches what the model reads; take it out of the profile, "
            "or give stitch=, which is about the documents that come back",
            False,  # noqa: FBT003
        )


def _of_answers(profile: Profile, name: str, keywords: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """What a chain or an engine takes of a profile."""
    method = {option: value for option, value in profile.method.items() if option not in keywords}
    check_stitching(profile, name, keywords, kind)
    own = keywords.get("retriever")
    if not isinstance(own, ContextFields):
        return profile.context_keywords(keywords) | method
    # Its options are its own, and a chain has no part in them: they must be those of the profile already.
    said = profile.context_keywords({**keywords, "stitch": None})
    others = {option: value for option, value in said.items() if getattr(own, option) != value}
    if others:
        raise OptionError(
            f"the retriever is an {type(own).__name__} with options of its own, and {name} says {_shown(others)}; "
            f"make the retriever of the profile too: {type(own).__name__}.from_profile(...)",
            own,
        )
    return method


def _refuse_method(profile: Profile, name: str, kind: str) -> None:
    """Refuse options that would be lost: what answers in place of the profile's method would answer otherwise."""
    defaults = {option.name: option.default for option in fields(MethodOptions)}
    lost = {
        option: value
        for option, value in profile.method.items()
        if value != defaults[option] and option not in _WITHOUT_EFFECT
    }
    if lost:
        raise OptionError(
            f"{name} says {_shown(lost)}, and {kind} makes no answers, so that would be lost; load it with a chain or "
            "an engine, or, where something else takes care of it, give "
            f"{kind}.from_profile(read_profile(...).without_method(), ...)",
            lost,
        )


def _shown(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={describe(value)}" for name, value in options.items())
