"""Profiles: the options of one setting, such as the best one of a comparison, in a TOML file.

A profile may come from somebody else, so nothing in it names code: token counters go by their names, prompts are plain
texts, and a tokenizer is loaded from this machine only.
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

__all__ = [
    "FILE_NAME",
    "FORMAT",
    "KINDS",
    "NOTHING",
    "PROFILE",
    "Profile",
    "check_stitching",
    "is_profile",
    "made_of_profile",
    "read_profile",
    "write_profile",
]

FILE_NAME = "oprag.toml"
"""What a profile is called by default."""

FORMAT = 1
"""The format of profiles that is read and written here; in another one a key may mean another thing."""

KINDS: Mapping[str, type[ContextOptions | MethodOptions]] = {"context": ContextOptions, "method": MethodOptions}
"""What declares the options of each table."""

NOTHING = "none"
"""What stands for None in a file, since TOML has no word for it."""

# What is said even where it is the default: the heart of a setting, and what some surfaces have other defaults for.
_ALWAYS = {"context": (*OP_RAG_16K, "order"), "method": ("method",)}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Options of one setting, such as the best one of a comparison, to be deployed.

    What it does not say is what it is by default where the profile is loaded. None is a value: `k=None` says that there
    is no such limit, also where a vector store would be searched with one.

    Args:
        context: Options of `oprag.ContextOptions`. Token counters go by their names ("approximate", "words",
            "characters", "local", "tiktoken:ENCODING", "huggingface:PATH").
        method: Options of `oprag.methods.MethodOptions`, the method itself among them. Prompts are plain texts.
        about: Where the profile came from, for people: texts, numbers, dates and lists of them, by any name.

    Raises:
        OptionError: An option is unknown, has a value that it cannot have, or is a function.
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
        """The profile of a setting: all that is not as by default, and k, the token budget, the order and the method.

        Args:
            context: How contexts are made.
            options: How answers are made of them; left out for retrieval alone.
            about: Where the setting came from.

        Raises:
            OptionError: An option is a function, or a prompt is no plain text.
        """
        said = {
            table: {
                one.name: value
                for one in fields(kind)
                if (value := getattr(given, one.name)) != one.default or one.name in _ALWAYS[table]
            }
            for (table, kind), given in zip(KINDS.items(), (context, options), strict=True)
            if given is not None
        }
        return cls(**said, about=about or {})

    def as_context_options(self, **changes: Any) -> ContextOptions:
        """The options as `ContextOptions`, some of them changed.

        Args:
            **changes: Options of `ContextOptions`; they win over those of the profile.

        Raises:
            OptionError: The token counter cannot be loaded, or a change is unknown or cannot be.
            MissingExtraError: What counts tokens is not installed.
        """
        return as_context_options(None, self.context_keywords(changes) | changes)

    def as_method_options(self, **changes: Any) -> MethodOptions:
        """The options as `MethodOptions`, some of them changed.

        Args:
            **changes: Options of `MethodOptions`; they win over those of the profile.

        Raises:
            OptionError: A change is unknown or cannot be.
        """
        return as_method_options(None, {**self.method, **changes})

    def context_keywords(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The context options as keywords, its token counter loaded.

        Args:
            given: Options that are not wanted, since they are given otherwise.

        Raises:
            OptionError: The token counter cannot be loaded.
            MissingExtraError: What counts tokens is not installed.
        """
        wanted = {name: value for name, value in self.context.items() if name not in (given or {})}
        if "count_tokens" in wanted:
            wanted["count_tokens"] = _counter(wanted["count_tokens"])
        return wanted

    def without_method(self) -> Profile:
        """The profile for retrieval alone, where something else makes the answers."""
        return replace(self, method={})


def _options(table: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a table, checked by what declares them, as plain values."""
    declared = {one.name: one for one in fields(KINDS[table])}
    _check_table(table, given, declared)
    if "count_tokens" in given:
        given["count_tokens"] = _counter_name(given["count_tokens"])
    for name, value in given.items():
        if callable(value):
            raise OptionError(
                f"{name} is a function, and a profile holds none; leave it out, and give {name}= beside the profile",
                value,
            )
        if isinstance(value, str) and value == NOTHING and declared[name].default is None:
            raise OptionError(f"{name} cannot be the text {NOTHING!r}, which stands for None in a profile", value)
    KINDS[table](**{name: value for name, value in given.items() if name != "count_tokens"})
    if "prompts" in given:
        given["prompts"] = _texts(given["prompts"])
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
                    f"{error.value} is no option of {table}; it belongs to {other}", error.value
                ) from None
        raise


def _counter_name(given: Any) -> str:
    """The name of a token counter; functions and names of functions are rejected."""
    from oprag.token_counters import COUNTERS, Counter

    if given is approximate_tokens:
        return "approximate"
    name = given.name if isinstance(given, Counter) else given
    function = callable(name)
    if isinstance(name, str):
        kind, colon, which = name.partition(":")
        alike = [one.partition(":")[1] for one in COUNTERS if one.partition(":")[0] == kind]
        if alike == [colon] and bool(which.strip()) is bool(colon):
            return name
        function = bool(colon) and not alike
    why = "; a profile holds no functions, so leave it out, and give count_tokens= beside the profile"
    raise OptionError(
        f"count_tokens must be one of {', '.join(COUNTERS)} in a profile, got {describe(name)}"
        f"{why if function else ''}",
        given,
    )


def _counter(name: str) -> TokenCounter:
    """The token counter of a profile, loaded from this machine."""
    if name == "approximate":
        return approximate_tokens
    from oprag.token_counters import counter_named

    try:
        return counter_named(name, local_files_only=True)
    except OptionError as error:
        raise OptionError(f"count_tokens: {error}", name) from error


def _texts(prompts: Any) -> dict[str, str]:
    """Prompts by their names, as plain texts."""
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
                f"the {one.name} prompt is no plain text, and a profile holds no other; leave it out, and give "
                "prompts= beside the profile",
                value,
            )
        texts[one.name] = value
    return texts


def _note(name: Any, value: Any) -> Any:
    if not isinstance(name, str):
        raise OptionError(f"the names in about must be texts, got {describe(name)}", name)
    if isinstance(value, list | tuple):
        return [_note(name, one) for one in value]
    if isinstance(value, time | datetime) and not _is_of_toml(value):
        raise OptionError(
            f"about.{name} must be a time without a zone, or a date and time that is whole minutes from UTC, as TOML "
            f"has them; got {value}",
            value,
        )
    if not isinstance(value, str | Real | date | time):
        raise OptionError(
            f"about.{name} must be a text, a number, a date or a list of them, got {type(value).__name__}", value
        )
    return plain_number(value)


def _is_of_toml(value: time | datetime) -> bool:
    if isinstance(value, time):
        return value.tzinfo is None
    offset = value.utcoffset()
    return offset is None or not offset % timedelta(minutes=1)


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
        yield "\n[about]\n# Where this came from; it changes nothing.\n"
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
    """A key and its value; a text with inner line breaks, such as a prompt, as lines."""
    import tomli_w

    _check_storable(value)
    # tomli-w would write the line breaks of Windows as those of Unix.
    as_lines = isinstance(value, str) and "\n" in value.strip("\n") and "\r" not in value
    return tomli_w.dumps({name: value}, multiline_strings=as_lines)


def _check_storable(value: Any) -> None:
    """Reject what TOML cannot hold."""
    if isinstance(value, list | tuple):
        for one in value:
            _check_storable(one)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OptionError("an integer has more than 64 bits, which TOML does not have", value)
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise OptionError(
                f"half a character in a text, which no file can hold: {describe(value)}", value
            ) from error


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
    """Whether a file is a profile, even one of another format or with keys that cannot be: nothing else is in it.

    Args:
        path: The file.
    """
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


Made = TypeVar("Made")

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
    if "method" in getattr(kind, "model_fields", ()):
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
    if not hasattr(own, "from_profile"):
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


PROFILE = FileKind("a profile", is_profile)
"""What a profile is."""
