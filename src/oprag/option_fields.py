"""Context options as pydantic fields, for adapters of frameworks that build on pydantic.

The fields of `ContextOptions` are repeated statically for editors and type checkers. Values are not validated here but
by `ContextOptions`, so that all adapters raise the same errors. A test checks that names and defaults match.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import wraps
from inspect import Signature
from operator import is_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SkipValidation, model_validator

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import (
    NAME_HINTS,
    ContextOptions,
    Header,
    OnMissingPosition,
    OnUncertain,
    Order,
    SourceRanking,
    as_context_options,
    check_names,
    descriptions,
    with_plain_numbers,
)
from oprag.positions.readings import PositionKey
from oprag.positions.sources import SourceKey
from oprag.tokens import TokenCounter, approximate_tokens

if TYPE_CHECKING:
    from oprag.profile import Profile

__all__ = ["HELP", "OPTIONS", "ContextFields", "OptionFields", "callables", "given_options"]

HELP = descriptions(ContextOptions)
OPTIONS = tuple(HELP)
_WITH_ANNOTATE = (*OPTIONS, "annotate")

# Options that take framework objects and are easily confused.
_CONFUSABLE = ("llm", "retriever", "vectorstore", "embeddings", "embed_model")


class _Signature:
    """The signature of a class, with plain types in place of pydantic's `Annotated` types."""

    def __init__(self, full: Any) -> None:
        self._full = full

    def __get__(self, instance: Any, owner: type) -> Signature:
        full: Signature = self._full.__get__(instance, owner)
        return full.replace(
            parameters=[
                one.replace(annotation=get_args(one.annotation)[0]) if get_origin(one.annotation) is Annotated else one
                for one in full.parameters.values()
            ]
        )


class OptionFields(BaseModel):
    """Keyword-only options; other arguments are rejected with a hint."""

    # Inputs may contain keys and passwords, so errors do not show them. Mixins are never validated themselves, so their
    # build is deferred. Public classes must override defer_build, since their signature is wrong until they are built,
    # and repeat the other settings, since the base classes of their frameworks set them differently.
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    _name_hints: ClassVar[Mapping[str, str]] = {}
    """Hints for option names that other packages use."""
    _how_to_pass: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Code for passing an object, by "package.Class" of the object, best first; ways without an option are skipped."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if (full := cls.__dict__.get("__signature__")) is not None:
            cls.__signature__ = _Signature(full)  # type: ignore[assignment]

    # Wraps pydantic's __init__, so that the signature contains the options instead of *args.
    @wraps(BaseModel.__init__)  # type: ignore[misc]
    def __init__(self, /, *args: Any, **options: Any) -> None:
        if args:
            raise OptionError(self._as_keywords(args, options), args[0])
        super().__init__(**options)

    @model_validator(mode="before")
    @classmethod
    def _check_given(cls, given: Any) -> Any:
        if isinstance(given, dict):
            check_names(given, cls.model_fields, cls._name_hints)
            for name in _CONFUSABLE:
                others = cls._ways_to_pass(given.get(name))
                if others and not any(way.removeprefix(f"{name}=").isidentifier() for way in others):
                    raise OptionError(
                        f"cannot use {type(given[name]).__name__} as {name}; pass {others[0]}", given[name]
                    )
            missing = cls._missing(given)
            ways = (way for value in given.values() if missing for way in cls._ways_to_pass(value))
            for way in ways:
                if (name := way.partition("=")[0]) in missing:
                    raise OptionError(f"{name} is missing; pass {way}", None)
        return given

    @classmethod
    def _ways_to_pass(cls, value: Any) -> list[str]:
        """Code for passing an object, the best first; empty if unknown."""
        names = (f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(value).__mro__)
        ways = (way for name in names for way in cls._how_to_pass.get(name, ()))
        return [way for way in ways if way.partition("=")[0] in cls.model_fields]

    @classmethod
    def _missing(cls, given: Iterable[str]) -> list[str]:
        """The required options that are missing."""
        return [name for name, field in cls.model_fields.items() if field.is_required() and name not in given]

    @classmethod
    def _as_keywords(cls, args: Sequence[Any], options: Iterable[str]) -> str:
        """Error message for positional arguments, with the equivalent keyword arguments if known."""
        ways = [next(iter(cls._ways_to_pass(value)), "") for value in args]
        missing = iter(cls._missing([*options, *(way.partition("=")[0] for way in ways)]))
        ways = [way or f"{next(missing, '')}=..." for way in ways]
        refusal = f"{cls.__name__} takes keyword arguments only"
        if "=..." in ways:
            return f"{refusal}, got {', '.join(type(value).__name__ for value in args)}"
        return f"{refusal}; write {cls.__name__}({', '.join([*ways, *(f'{name}=...' for name in options)])})"


class ContextFields(OptionFields):
    """The options of `ContextOptions`, and `annotate`.

    Only the default of `stitch` differs: retrievers return the framework's own objects, which are not joined.
    """

    _name_hints: ClassVar = NAME_HINTS

    k: SkipValidation[int | None] = Field(default=None, description=HELP["k"])
    max_candidates: SkipValidation[int | None] = Field(default=None, description=HELP["max_candidates"])
    continuity: SkipValidation[float] = Field(default=0.0, description=HELP["continuity"])
    token_budget: SkipValidation[int | None] = Field(default=None, description=HELP["token_budget"])
    count_tokens: SkipValidation[TokenCounter] = Field(
        default=approximate_tokens, description=HELP["count_tokens"], exclude=True
    )
    order: SkipValidation[Order] = Field(default="source", description=HELP["order"])
    seed: SkipValidation[int] = Field(default=0, description=HELP["seed"])
    source_ranking: SkipValidation[SourceRanking] = Field(default="best_first", description=HELP["source_ranking"])
    on_missing_position: SkipValidation[OnMissingPosition] = Field(
        default="last", description=HELP["on_missing_position"]
    )
    on_uncertain: SkipValidation[OnUncertain] = Field(default="warn", description=HELP["on_uncertain"])
    source_key: SkipValidation[SourceKey | None] = Field(default=None, description=HELP["source_key"])
    position_key: SkipValidation[PositionKey | None] = Field(default=None, description=HELP["position_key"])
    similarity_threshold: SkipValidation[float | None] = Field(default=None, description=HELP["similarity_threshold"])
    redundancy_threshold: SkipValidation[float | None] = Field(default=None, description=HELP["redundancy_threshold"])
    min_chunks: SkipValidation[int] = Field(default=0, description=HELP["min_chunks"])
    whole_source_tokens: SkipValidation[int | None] = Field(default=None, description=HELP["whole_source_tokens"])
    neighbors: SkipValidation[int] = Field(default=0, description=HELP["neighbors"])
    stitch: SkipValidation[bool] = Field(default=False, description=HELP["stitch"])
    separator: SkipValidation[str] = Field(default="\n\n", description=HELP["separator"])
    gap: SkipValidation[str | None] = Field(default=None, description=HELP["gap"])
    header: SkipValidation[Header | None] = Field(default=None, description=HELP["header"])
    annotate: SkipValidation[bool] = Field(
        default=False, description='Return copies with rank, score, position and span under the metadata key "oprag".'
    )
    # Cache: the field values, the options made from them, and the same options with stitch=True.
    _cached: tuple[tuple[Any, ...], ContextOptions, ContextOptions] | None = PrivateAttr(default=None)

    @classmethod
    def from_profile(cls, profile: Profile | str | os.PathLike[str], **options: Any) -> Self:
        """Create an instance with the options of a profile, such as `oprag.toml`; see `docs/how_to/profiles.md`.

        Args:
            profile: The path of the file, or a `Profile`.
            **options: Arguments of the constructor; they override the profile.

        Raises:
            InputFileError: The file is missing, cannot be read or is not valid TOML.
            OptionError: The file has an unsupported format, or an unknown or invalid key, or sets an option that this
                class would ignore, such as the method for a class that does not answer.
            ValidationError: The constructor rejects a value (pydantic's error, a subclass of ValueError).
        """
        from oprag.profile import options_for

        return cls(**options_for(cls, profile, options))

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        with_plain_numbers(self)
        self._context_options()
        return self

    def _context_options(self, *, stitch: bool = False) -> ContextOptions:
        """The options as `ContextOptions`, with `stitch=True` for a context; cached until a field changes."""
        values = tuple(map(self.__dict__.get, _WITH_ANNOTATE))
        cached = self._cached  # read once: access to private attributes is slow in pydantic
        if cached is None or not all(map(is_, cached[0], values)):
            if type(self.annotate) is not bool:
                raise OptionError(f"annotate must be True or False, got {describe(self.annotate)}", self.annotate)
            options = as_context_options(None, dict(zip(OPTIONS, values, strict=False)))
            cached = values, options, as_context_options(options, {} if options.stitch else {"stitch": True})
            self._cached = cached
        return cached[2] if stitch else cached[1]


def given_options(model: ContextFields) -> dict[str, Any]:
    """The options, including `annotate`, that differ from the defaults of `ContextFields` (not of the subclass)."""
    fields = ContextFields.model_fields
    return {name: value for name in _WITH_ANNOTATE if (value := getattr(model, name)) != fields[name].default}


def callables(model: ContextFields, names: Iterable[str] = OPTIONS) -> list[str]:
    """The names of options that are user-defined functions, which cannot be serialized."""
    return [name for name in names if callable(value := getattr(model, name)) and value is not approximate_tokens]
