"""What a profile holds: options of a context and of the methods, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime, time, timedelta
from numbers import Real
from typing import Any

from oprag.assembly import OP_RAG_16K, ContextOptions, as_context_options
from oprag.checks import check_names, plain
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.methods.options import MethodOptions, as_method_options
from oprag.methods.prompts import OUR_PROMPTS, Prompts
from oprag.methods.template import TextTemplate
from oprag.profile.counters import counter_name, counter_named

__all__ = ["FILE_NAME", "FORMAT", "KINDS", "NOTHING", "Profile"]

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
            "characters",
            "local", "tiktoken:ENCODING", "huggingface:PATH").
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

        Raises:
            OptionError: The token counter cannot be loaded, or a change is unknown or cannot be.
            MissingExtraError: What counts tokens is not installed.
        """
        return as_context_options(None, self.context_keywords(changes) | changes)

    def as_method_options(self, **changes: Any) -> MethodOptions:
        """The options as `MethodOptions`, some of them changed.

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
            wanted["count_tokens"] = counter_named(wanted["count_tokens"])
        return wanted

    def without_method(self) -> Profile:
        """The profile for retrieval alone, where something else makes the answers."""
        return replace(self, method={})


def _options(table: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options of a table, checked by what declares them, as plain values."""
    declared = {one.name: one for one in fields(KINDS[table])}
    _check_table(table, given, declared)
    if "count_tokens" in given:
        given["count_tokens"] = counter_name(given["count_tokens"])
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
    return {name: plain(given[name]) for name in declared if name in given}


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
    return plain(value)


def _is_of_toml(value: time | datetime) -> bool:
    if isinstance(value, time):
        return value.tzinfo is None
    offset = value.utcoffset()
    return offset is None or not offset % timedelta(minutes=1)
