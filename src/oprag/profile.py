"""Profiles: a set of options, such as the best one of a comparison, in a TOML file.

A profile may come from an untrusted source, so it cannot reference code: token counters are given by name, prompts are
plain text, and tokenizers are loaded only from local files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from oprag._version import __version__
from oprag.errors import InputFileError, OpragError, OptionError, PromptError
from oprag.files.reading import read_toml
from oprag.files.writing import FileKind, check_target, replacing
from oprag.masking import describe
from oprag.methods.options import MethodOptions, as_method_options
from oprag.methods.prompts import OUR_PROMPTS, Prompts, TextTemplate
from oprag.options import OP_RAG_16K, ContextOptions, as_context_options, check_names, plain_number
from oprag.tokens import TokenCounter, approximate_tokens

__all__ = ["FILE_NAME", "FORMAT", "Profile", "read_profile", "write_profile"]

FILE_NAME = "oprag.toml"
"""Default file name."""

FORMAT = 1
"""Format version of the profiles that this version reads and writes; keys may differ in others."""

KINDS: Mapping[str, type[ContextOptions | MethodOptions]] = {"context": ContextOptions, "method": MethodOptions}
"""The dataclass that declares the options of each table."""

NOTHING = "none"
"""Stands for None in a file, since TOML has no null."""

# Options that are written even if they have their defaults: the main ones, and those with other defaults in some
# classes and commands.
_ALWAYS = {"context": (*OP_RAG_16K, "order"), "method": ("method",)}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A set of options for deployment, such as the best one of a comparison.

    Options that are not set keep the defaults of the class or command that loads the profile. None is a value: `k=None`
    means no limit, even for vector stores, which have one by default.

    Args:
        context: Options of `oprag.ContextOptions`. Token counters are given by name ("approximate", "words",
            "characters", "local", "tiktoken:ENCODING", "huggingface:PATH").
        method: Options of `oprag.methods.MethodOptions`, including the method itself. Prompts are plain text.
        about: Notes on where the profile came from, under any names: strings, numbers, dates, times and lists of these.

    Raises:
        OptionError: An option is unknown or invalid, or is a function.
        PromptError: A prompt cannot be used.

    Example:
        >>> profile = Profile(context={"k": 32, "order": "source"}, method={"method": "refine"})
        >>> profile.as_context_options(k=16).k
        16
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    method: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for table in (*KINDS, "about"):
            if not isinstance(getattr(self, table), Mapping):
                raise OptionError(
                    f"{table} must be a mapping, got {describe(getattr(self, table))}", getattr(self, table)
                )
        for table in KINDS:
            object.__setattr__(self, table, _options(table, dict(getattr(self, table))))
        object.__setattr__(self, "about", {name: _note(name, value) for name, value in self.about.items()})

    @classmethod
    def of(
        cls, context: ContextOptions, options: MethodOptions | None = None, about: Mapping[str, Any] | None = None
    ) -> Profile:
        """Create a profile of all options that differ from their defaults, and of k, token_budget, order and method.

        Args:
            context: The context options.
            options: The method options; omitted for retrieval only.
            about: Notes on where the options came from.

        Raises:
            OptionError: An option is a function, or a prompt is not plain text.
        """
        tables = {
            table: {
                one.name: value
                for one in fields(kind)
                if (value := getattr(given, one.name)) != one.default or one.name in _ALWAYS[table]
            }
            for (table, kind), given in zip(KINDS.items(), (context, options), strict=True)
            if given is not None
        }
        return cls(**tables, about=about or {})

    def as_context_options(self, **changes: Any) -> ContextOptions:
        """The options as `ContextOptions`, with changes.

        Args:
            **changes: Options of `ContextOptions`; they override the profile.

        Raises:
            OptionError: The token counter cannot be loaded, or a changed option is unknown or invalid.
            MissingExtraError: The package of the token counter is not installed.
        """
        return as_context_options(None, self.context_keywords(changes) | changes)

    def as_method_options(self, **changes: Any) -> MethodOptions:
        """The options as `MethodOptions`, with changes.

        Args:
            **changes: Options of `MethodOptions`; they override the profile.

        Raises:
            OptionError: A changed option is unknown or invalid.
        """
        return as_method_options(None, {**self.method, **changes})

    def context_keywords(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The context options as keyword arguments, with the token counter loaded.

        Args:
            given: Options to exclude, because the caller sets them.

        Raises:
            OptionError: The token counter cannot be loaded.
            MissingExtraError: The package of the token counter is not installed.
        """
        keywords = {name: value for name, value in self.context.items() if name not in (given or {})}
        if "count_tokens" in keywords:
            keywords["count_tokens"] = _counter(keywords["count_tokens"])
        return keywords

    def without_method(self) -> Profile:
        """A copy without the method options, for retrieval only."""
        return replace(self, method={})


def _options(table: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a table as plain values, validated by the dataclass that declares them."""
    declared = {one.name: one for one in fields(KINDS[table])}
    _check_table(table, given, declared)
    if "count_tokens" in given:
        given["count_tokens"] = _counter_name(given["count_tokens"])
    for name, value in given.items():
        if callable(value):
            raise OptionError(
                f"{name} is a function, which a profile cannot contain; remove it, and pass {name}= together with the "
                "profile",
                value,
            )
        if isinstance(value, str) and value == NOTHING and declared[name].default is None:
            raise OptionError(f"{name} cannot be the string {NOTHING!r}, which means None in a profile", value)
    KINDS[table](**{name: value for name, value in given.items() if name != "count_tokens"})
    if "prompts" in given:
        given["prompts"] = _prompt_texts(given["prompts"])
        if not given["prompts"]:
            del given["prompts"]
    return {name: plain_number(given[name]) for name in declared if name in given}


def _check_table(table: str, given: Mapping[str, Any], declared: Mapping[str, Any]) -> None:
    try:
        check_names(given, declared)
    except OptionError as error:
        for other, kind in KINDS.items():
            if error.value in kind.__dataclass_fields__:
                raise OptionError(
                    f"{error.value} is not an option of {table}; it belongs in {other}", error.value
                ) from None
        raise


def _counter_name(given: Any) -> str:
    """The name of a token counter; functions and import paths of functions are rejected."""
    from oprag.token_counters import COUNTERS, Counter

    if given is approximate_tokens:
        return "approximate"
    name = given.name if isinstance(given, Counter) else given
    is_function = callable(name)
    if isinstance(name, str):
        kind, colon, which = name.partition(":")
        known = [one.partition(":")[1] for one in COUNTERS if one.partition(":")[0] == kind]
        if known == [colon] and bool(which.strip()) is bool(colon):
            return name
        is_function = bool(colon) and not known
    hint = "; a profile cannot contain functions: remove it, and pass count_tokens= together with the profile"
    raise OptionError(
        f"count_tokens must be one of {', '.join(COUNTERS)} in a profile, got {describe(name)}"
        f"{hint if is_function else ''}",
        given,
    )


def _counter(name: str) -> TokenCounter:
    """The token counter of a profile, loaded from local files."""
    if name == "approximate":
        return approximate_tokens
    from oprag.token_counters import counter_named

    try:
        return counter_named(name, local_files_only=True)
    except OptionError as error:
        raise OptionError(f"count_tokens: {error}", name) from error


def _prompt_texts(prompts: Any) -> dict[str, str]:
    """The text of each prompt that differs from the default, by name; only plain-text prompts are accepted."""
    if isinstance(prompts, Prompts):
        all_prompts = {one.name: getattr(prompts, one.name) for one in fields(Prompts)}
        prompts = {name: value for name, value in all_prompts.items() if value != getattr(OUR_PROMPTS, name)}
    texts = {}
    for one in fields(Prompts):
        if one.name not in prompts:
            continue
        value = prompts[one.name]
        if isinstance(value, TextTemplate) and value.system is None:
            value = value.user
        if not isinstance(value, str):
            raise OptionError(
                f"the {one.name} prompt is not plain text, and a profile cannot contain other prompts; remove it, and "
                "pass prompts= together with the profile",
                value,
            )
        texts[one.name] = value
    return texts


def _note(name: Any, value: Any) -> Any:
    if not isinstance(name, str):
        raise OptionError(f"the names in about must be strings, got {describe(name)}", name)
    if isinstance(value, list | tuple):
        return [_note(name, one) for one in value]
    if isinstance(value, time | datetime) and not _fits_toml(value):
        raise OptionError(
            f"about.{name} is not supported by TOML: a time must have no time zone, and a datetime must have a UTC "
            f"offset in whole minutes, or none; got {value}",
            value,
        )
    if not isinstance(value, str | Real | date | time):
        raise OptionError(
            f"about.{name} must be a string, a number, a date, a time or a list of these, got {type(value).__name__}",
            value,
        )
    return plain_number(value)


def _fits_toml(value: time | datetime) -> bool:
    if isinstance(value, time):
        return value.tzinfo is None
    offset = value.utcoffset()
    return offset is None or not offset % timedelta(minutes=1)


_HEAD = f"""\
# An oprag profile: options for order-preserving RAG, loaded by X.from_profile("{FILE_NAME}").
# Options that are not listed keep their defaults. "{NOTHING}" means None.
"""


def write_profile(profile: Profile, path: str | os.PathLike[str] = FILE_NAME) -> None:
    """Write a profile to a TOML file atomically; equal profiles produce identical files.

    Args:
        profile: The profile.
        path: The file; an existing profile is replaced.

    Raises:
        OptionError: The file cannot be written, already exists and is not a profile, or a value in the profile cannot
            be written to TOML.
    """
    given: Any = profile
    if not isinstance(given, Profile):
        raise OptionError(f"expected an oprag.profile.Profile, got {type(given).__name__}", profile)
    text = "".join(_profile_lines(profile)).encode()
    target = check_target(path, kind=PROFILE)
    try:
        with replacing(target) as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"cannot write the profile {path}: {getattr(error, 'strerror', None) or error}", path
        ) from error


def _profile_lines(profile: Profile) -> Iterator[str]:
    yield _HEAD
    yield _line("format", FORMAT)
    yield _line("written_by", f"oprag {__version__}")
    if profile.about:
        yield "\n[about]\n# Where this profile came from; has no effect.\n"
        yield from map(_line, profile.about.keys(), profile.about.values())
    for table, kind in KINDS.items():
        options = dict(getattr(profile, table))
        prompts = options.pop("prompts", None)
        helps = {one.name: one.metadata["help"] for one in fields(kind)}
        if options:
            yield f"\n[{table}]\n"
        for name, value in options.items():
            yield f"# {helps[name]}\n"
            yield _line(name, NOTHING if value is None else value)
        if prompts:
            yield f"\n[{table}.prompts]\n# {helps['prompts']}\n"
            yield from map(_line, prompts.keys(), prompts.values())


def _line(name: str, value: Any) -> str:
    """A key and its value in TOML; text with inner line breaks, such as a prompt, becomes a multi-line string."""
    import tomli_w

    _check_storable(name, value)
    # In multi-line strings, tomli-w would convert Windows line endings to Unix ones.
    as_lines = isinstance(value, str) and "\n" in value.strip("\n") and "\r" not in value
    return tomli_w.dumps({name: value}, multiline_strings=as_lines)


def _check_storable(name: str, value: Any) -> None:
    """Reject values that TOML cannot represent."""
    if isinstance(value, list | tuple):
        for one in value:
            _check_storable(name, one)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OptionError(f"{name} contains an integer of more than 64 bits, which TOML does not support", value)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise OptionError(
                f"{name} contains a lone surrogate, which cannot be encoded as UTF-8: {describe(value)}", value
            ) from error


_TABLES = (*KINDS, "about")
_KEYS = ("format", "written_by", *_TABLES)


def read_profile(path: str | os.PathLike[str] = FILE_NAME) -> Profile:
    """Read a profile from a TOML file; see `docs/how_to/profiles.md` for an example.

    Args:
        path: The file.

    Raises:
        InputFileError: The file is missing, cannot be read or is not valid TOML.
        OptionError: The file has an unsupported format, or a key is unknown or invalid.
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
    values: dict[str, Any] = {"about": tables.get("about", {})}
    for table, kind in KINDS.items():
        optional = {one.name for one in fields(kind) if one.default is None}
        values[table] = {name: _value(value, name in optional) for name, value in tables.get(table, {}).items()}
    for table in _TABLES:
        # Validate each table separately, so that the message names it.
        with _at(f"{place.name}: in [{table}]", tables):
            Profile(**{table: values[table]})
    return Profile(**values)


def is_profile(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a profile, possibly with another format version or invalid options.

    A profile contains only the top-level keys of profiles, and its format is an integer.

    Args:
        path: The file.
    """
    try:
        tables = read_toml(Path(path), "profile")
    except InputFileError:
        return False
    return type(tables.get("format")) is int and tables.keys() <= {*_KEYS}


def _value(value: Any, optional: bool) -> Any:  # noqa: FBT001
    if isinstance(value, list):
        return tuple(value)
    return None if optional and value == NOTHING else value


def _check_format(tables: Mapping[str, Any], name: str) -> None:
    if "format" not in tables:
        raise OptionError(
            f"{name}: the key format is missing, so this may not be a profile; if it is, add format = {FORMAT}",
            None,
        )
    given = tables["format"]
    if type(given) is not int or given != FORMAT:
        newer = type(given) is int and given > FORMAT
        fix = "upgrade oprag: pip install -U oprag" if newer else "write the file again"
        raise OptionError(
            f"{name}: oprag {__version__} reads profiles with format = {FORMAT}, got "
            f"{describe(given)}{_writer(tables)}; {fix}",
            given,
        )


def _check_keys(tables: Mapping[str, Any]) -> None:
    for name in tables:
        for table, kind in KINDS.items():
            if name not in _KEYS and name in kind.__dataclass_fields__:
                raise OptionError(f"{name} belongs in the table [{table}]; move it there", name)
    check_names(tables, _KEYS)
    writer = tables.get("written_by", "")
    if not isinstance(writer, str):
        raise OptionError(f"written_by must be a string, got {describe(writer)}", writer)
    for table in _TABLES:
        if not isinstance(tables.get(table, {}), dict):
            raise OptionError(f"{table} must be a table, [{table}], got {describe(tables[table])}", tables[table])


@contextmanager
def _at(place: str, tables: Mapping[str, Any]) -> Iterator[None]:
    """Add the place in the file to errors, and express them in terms of TOML."""
    try:
        yield
    except (OptionError, PromptError) as error:
        message = str(error).replace("unknown option ", "unknown key ").replace(" or None,", f' or "{NOTHING}",')
        if message.startswith("unknown key ") and (writer := _writer(tables)):
            message += f"{writer}, and this is {__version__}: the key may have been renamed, see the changelog"
        raise _kind(error)(f"{place}: {message}", error.value) from error


def _kind(error: OpragError) -> type[OpragError]:
    return PromptError if isinstance(error, PromptError) else OptionError


def _writer(tables: Mapping[str, Any]) -> str:
    """Clause for messages about the version that wrote the file; empty if it is this version."""
    writer = tables.get("written_by")
    return f"; {writer} wrote it" if isinstance(writer, str) and writer != f"oprag {__version__}" else ""


Made = TypeVar("Made")

# Concurrency does not change answers.
_WITHOUT_EFFECT = {"max_concurrency"}


def create_from_profile(kind: type[Made], given: Profile | str | os.PathLike[str], keywords: Mapping[str, Any]) -> Made:
    """Create an object of an adapter class with the options of a profile.

    Options that the class does not use are ignored if they do not affect answers, and rejected otherwise.

    Args:
        kind: The adapter class; one with a field `method` answers questions, others only retrieve.
        given: The profile, or its path.
        keywords: Other arguments of the constructor; they override the profile.

    Raises:
        OptionError: The profile is invalid, or sets options that would be ignored.
        InputFileError: The file is missing, cannot be read or is not valid TOML.
        ValidationError: The constructor rejects a value (pydantic's error, with a note that lists the profile's
            options).
    """
    profile = given if isinstance(given, Profile) else read_profile(given)
    name = "the profile" if given is profile else os.fspath(given)  # type: ignore[arg-type]
    if "method" in getattr(kind, "model_fields", ()):
        options = _answering_options(profile, name, keywords, kind.__name__)
    else:
        _reject_method(profile, name, kind.__name__)
        options = profile.context_keywords(keywords)
    try:
        return kind(**options, **keywords)
    except ValueError as error:
        error.add_note(f"{name} sets {_as_keywords(options) or 'no options'}")
        raise


def check_stitching(profile: Profile, name: str, keywords: Mapping[str, Any], kind: str) -> None:
    """Reject a profile with `stitch=False` for a class that always stitches.

    Args:
        profile: The profile.
        name: Name of the profile for the message.
        keywords: Other arguments of the constructor; they override the profile.
        kind: Name of the class that answers questions.

    Raises:
        OptionError: The profile sets `stitch=False`, and `cite` is off (numbered passages are never stitched).
    """
    cites = keywords.get("cite", profile.method.get("cite", False))
    if profile.context.get("stitch") is False and "stitch" not in keywords and not cites:
        raise OptionError(
            f"{name} sets stitch = false, but {kind} always stitches the model's context; remove it from the profile, "
            "or pass stitch=, which affects only the returned documents",
            False,  # noqa: FBT003
        )


def _answering_options(profile: Profile, name: str, keywords: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The options of a profile as arguments of a chain or an engine."""
    method = {option: value for option, value in profile.method.items() if option not in keywords}
    check_stitching(profile, name, keywords, kind)
    retriever = keywords.get("retriever")
    if not hasattr(retriever, "from_profile"):
        return profile.context_keywords(keywords) | method
    # A retriever of this package has its own context options, which a chain does not change: they must match.
    expected = profile.context_keywords({**keywords, "stitch": None})
    different = {option: value for option, value in expected.items() if getattr(retriever, option) != value}
    if different:
        raise OptionError(
            f"the retriever is an {type(retriever).__name__} with its own options, but {name} sets "
            f"{_as_keywords(different)}; create the retriever from the profile, too: "
            f"{type(retriever).__name__}.from_profile(...)",
            retriever,
        )
    return method


def _reject_method(profile: Profile, name: str, kind: str) -> None:
    """Reject method options, which a class that does not answer would silently ignore."""
    defaults = {option.name: option.default for option in fields(MethodOptions)}
    ignored = {
        option: value
        for option, value in profile.method.items()
        if value != defaults[option] and option not in _WITHOUT_EFFECT
    }
    if ignored:
        raise OptionError(
            f"{name} sets {_as_keywords(ignored)}, but {kind} does not answer questions; use a chain or an engine, or "
            "remove the method options: "
            f"{kind}.from_profile(read_profile(...).without_method(), ...)",
            ignored,
        )


def _as_keywords(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={describe(value)}" for name, value in options.items())


PROFILE = FileKind("a profile", is_profile)
"""The file kind of profiles, for `check_target`."""
