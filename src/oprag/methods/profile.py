"""Profiles: a set of options, such as the best one of a comparison, in a TOML file.

A profile may come from an untrusted source, so it cannot reference code: token counters are given by name, prompts are
plain text, and tokenizers are loaded only from local files.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from oprag._internal.files.reading import read_toml
from oprag._internal.files.writing import FileKind, begins_with, check_target, replacing
from oprag._internal.masking import reason
from oprag._internal.tokens import approximate_tokens
from oprag._version import __version__
from oprag.errors import MissingExtraError, OptionError
from oprag.index.tokenizers import NamedTokenizer, counter_named
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import OUR_PROMPTS, changed_prompts
from oprag.options import ContextOptions, check_names

try:
    import tomli_w
    from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
except ImportError as error:
    raise MissingExtraError("oprag.methods.profile", "pydantic", "pip install pydantic tomli-w") from error

__all__ = ["FILE_NAME", "Profile", "read_profile", "write_profile"]

FILE_NAME = "oprag.toml"
"""Default file name."""
PROFILE = FileKind("a profile", lambda path: begins_with(path, b"# An oprag profile"))  # for `check_target`

_NONE = "none"  # stands for None in a file, since TOML has no null
_HEAD = f"""\
# An oprag profile: options for order-preserving RAG, loaded by X.from_profile("{FILE_NAME}").
# Options that are not listed keep their defaults. "{_NONE}" means None.
"""
_KINDS: dict[str, Any] = {"context": ContextOptions, "method": MethodOptions}
_NO_CODE = "a profile cannot contain code, so remove the option, and pass it together with the profile"


class Profile(BaseModel):
    """A set of options for deployment, such as the best one of a comparison.

    Options that are not set keep the defaults of the class or command that loads the profile. None is a value: `k=None`
    means no limit, even for vector stores, which have one by default.

    Args:
        context: Options of `oprag.ContextOptions`. Token counters are given by name ("approximate", "words",
            "characters", "local", "tiktoken:ENCODING", "huggingface:PATH"), and loaded.
        method: Options of `oprag.methods.MethodOptions`, including the method itself. Prompts are plain text.
        about: Notes on where the profile came from, under any names, of types that TOML has.
        format: Version of the format.
        written_by: The version of oprag that wrote the profile.

    Raises:
        ValidationError: An option is unknown or invalid, or is a function (pydantic's error, which is a ValueError).
        MissingExtraError: The package of the token counter is not installed.

    Example:
        >>> profile = Profile(context={"k": 32, "order": "source"}, method={"method": "refine"})
        >>> ContextOptions(**profile.context).k
        32
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    format: Literal[1] = 1
    written_by: str = f"oprag {__version__}"
    about: dict[str, Any] = {}
    context: dict[str, Any] = {}
    method: dict[str, Any] = {}

    @field_validator(*_KINDS)
    @classmethod
    def _check_options(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        kind = _KINDS[str(info.field_name)]
        defaults = {one.name: one.default for one in fields(kind)}
        check_names(given, defaults)
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        values |= {name: None for name, value in given.items() if value == _NONE and defaults[name] is None}
        for name, value in values.items():
            if callable(value) and value is not approximate_tokens and not isinstance(value, NamedTokenizer):
                raise OptionError(f"{name} is a function; {_NO_CODE}", value)
        if "count_tokens" in values:
            values["count_tokens"] = _counter(values["count_tokens"])
        made = kind(**values)
        options = {name: getattr(made, name) for name in defaults if name in values}
        if texts := changed_prompts(options.pop("prompts", OUR_PROMPTS)):
            for name, text in texts.items():
                if text is None:
                    raise OptionError(f"the {name} prompt is not plain text; {_NO_CODE}", given["prompts"])
            options["prompts"] = texts
        return options


def _counter(given: Any) -> Any:
    """The token counter with this name, loaded from local files only."""
    name = given.name if isinstance(given, NamedTokenizer) else given
    try:
        known = given is approximate_tokens or name == "approximate"
        return approximate_tokens if known else counter_named(str(name), local_files_only=True)
    except OptionError as error:
        raise OptionError(f"count_tokens: {error}", given) from error


def write_profile(profile: Profile, path: str | os.PathLike[str] = FILE_NAME) -> None:
    """Write a profile to a TOML file atomically; equal profiles produce identical files.

    Args:
        profile: The profile.
        path: The file; an existing profile is replaced.

    Raises:
        OptionError: The file cannot be written, already exists and is not a profile, or TOML cannot represent a value.
    """
    target = check_target(path, kind=PROFILE)
    tables: dict[str, Any] = dict(profile)
    for table in _KINDS:
        tables[table] = {name: _NONE if value is None else value for name, value in tables[table].items()}
    if counter := tables["context"].get("count_tokens"):
        tables["context"]["count_tokens"] = getattr(counter, "name", "approximate")
    try:
        # Prompts over several lines can be edited, but Windows line endings would become those of Unix.
        data = (_HEAD + tomli_w.dumps(tables, multiline_strings="\\r" not in repr(tables))).encode()
        if Profile(**tomllib.loads(data.decode())) != profile:
            raise ValueError("TOML cannot represent one of its values")  # noqa: TRY301
    except (TypeError, ValueError) as error:
        raise OptionError(f"cannot write the profile {path}: {error}", path) from error
    with replacing(target) as file:
        file.write(data)


def read_profile(path: str | os.PathLike[str] = FILE_NAME) -> Profile:
    """Read a profile from a TOML file; see `docs/how_to/profiles.md` for an example.

    Args:
        path: The file.

    Raises:
        InputFileError: The file is missing, cannot be read or is not valid TOML.
        OptionError: The file has an unsupported format, or a key is unknown or invalid.
    """
    content = read_toml(Path(path), "profile")
    try:
        check_names(content, Profile.model_fields, what="table or key")
        return Profile(**content)
    except (OptionError, ValidationError) as error:
        raise OptionError(f"{Path(path).name}: {reason(error)}", path) from error


def options_for(kind: Any, given: Profile | str | os.PathLike[str], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a profile, or its file, for a retriever, chain or engine; keywords override them."""
    profile = given if isinstance(given, Profile) else read_profile(given)
    options = {**profile.context, **profile.method, **keywords}
    answers = "method" in kind.model_fields
    # Retrievers answer nothing, and chains stitch the model's context unless its passages are numbered.
    ignored = [] if answers else [name for name in profile.method if options[name] != getattr(MethodOptions(), name)]
    if answers and profile.context.get("stitch") is False and not ("stitch" in keywords or options.get("cite")):
        ignored = ["stitch"]
    if ignored:
        fix = "remove it, or pass **read_profile(...).context"
        raise OptionError(f"{kind.__name__} would ignore {', '.join(ignored)} of the profile; {fix}", ignored)
    return options if answers else {**profile.context, **keywords}
