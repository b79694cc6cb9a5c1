"""The options of adapters as pydantic fields, for frameworks that build on pydantic.

The names of `ContextOptions` and `MethodOptions` are repeated statically for editors and type checkers. Values are not
validated here but by these classes, so that all adapters raise the same errors.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import fields
from functools import wraps
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SkipValidation, field_validator, model_validator

from oprag._internal.masking import describe
from oprag._internal.tokens import TokenCounter, approximate_tokens
from oprag.chunk import Chunk
from oprag.embedding.vector_cache import VectorCache
from oprag.errors import ChunkError, OptionError
from oprag.methods.options import MethodOptions, OnError, Overflow, RankBy, as_method_options
from oprag.methods.prompts import Prompts
from oprag.options import (
    NAME_HINTS,
    ContextOptions,
    Header,
    OnMissingPosition,
    OnUncertain,
    Order,
    PositionKey,
    SourceKey,
    SourceRanking,
    as_context_options,
    check_bool,
    check_names,
    descriptions,
    with_plain_numbers,
)
from oprag.positions.source_reader import ReadSource, SourceReader, SourceTexts, as_reader
from oprag.stores.orders import SourceOrders

if TYPE_CHECKING:
    from oprag.methods.profile import Profile

__all__ = [
    "HELP",
    "METHOD_OPTIONS",
    "OPTIONS",
    "PUBLIC_CONFIG",
    "ContextFields",
    "MethodFields",
    "OptionFields",
    "SourceFields",
    "StoreOrderFields",
    "callables",
    "given_options",
    "list_of_neighbors",
]

OPTIONS = tuple(descriptions(ContextOptions))
METHOD_OPTIONS = tuple(descriptions(MethodOptions))
HELP = descriptions(ContextOptions) | descriptions(MethodOptions)
_DEFAULTS = {field.name: field.default for kind in (ContextOptions, MethodOptions) for field in fields(kind)}
_WITH_ANNOTATE = (*OPTIONS, "annotate")
_values_of = itemgetter(*_WITH_ANNOTATE)


def _option(name: str, **changes: Any) -> Any:
    """The pydantic field of an option, with the default and the description that its dataclass declares."""
    return Field(**{"default": _DEFAULTS[name], "description": HELP[name], **changes})


PUBLIC_CONFIG = ConfigDict(
    extra="forbid",
    arbitrary_types_allowed=True,
    hide_input_in_errors=True,
    defer_build=False,
    validate_assignment=True,
)
"""For public classes whose options can be assigned; see `OptionFields`."""


class OptionFields(BaseModel):
    """Keyword-only options; other arguments are rejected with a hint."""

    # Inputs may contain keys and passwords, so errors do not show them. Mixins are never validated themselves, so their
    # build is deferred. Public classes must override defer_build, since their signature is wrong until they are built,
    # and repeat the other settings, since the base classes of their frameworks set them differently.
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    _name_hints: ClassVar[Mapping[str, str]] = {}
    """Hints for option names that other packages use."""

    # Wraps pydantic's __init__, so that the signature contains the options instead of *args.
    @wraps(BaseModel.__init__)  # type: ignore[misc]
    def __init__(self, /, *args: Any, **options: Any) -> None:
        if args:
            kinds = ", ".join(type(value).__name__ for value in args)
            raise OptionError(f"{type(self).__name__} takes keyword arguments only, got {kinds}", args[0])
        super().__init__(**options)

    @model_validator(mode="before")
    @classmethod
    def _check_given(cls, given: Any) -> Any:
        if isinstance(given, dict):
            check_names(given, cls.model_fields, cls._name_hints)
        return given


class ContextFields(OptionFields):
    """The options of `ContextOptions`, and `annotate`.

    Only the default of `stitch` differs: retrievers return the framework's own objects, which are not joined.
    """

    _name_hints: ClassVar = NAME_HINTS

    k: SkipValidation[int | None] = _option("k")
    max_candidates: SkipValidation[int | None] = _option("max_candidates")
    continuity: SkipValidation[float] = _option("continuity")
    token_budget: SkipValidation[int | None] = _option("token_budget")
    count_tokens: SkipValidation[TokenCounter] = _option("count_tokens", exclude=True)
    order: SkipValidation[Order] = _option("order")
    seed: SkipValidation[int] = _option("seed")
    source_ranking: SkipValidation[SourceRanking] = _option("source_ranking")
    on_missing_position: SkipValidation[OnMissingPosition] = _option("on_missing_position")
    on_uncertain: SkipValidation[OnUncertain] = _option("on_uncertain")
    source_key: SkipValidation[SourceKey | None] = _option("source_key")
    position_key: SkipValidation[PositionKey | None] = _option("position_key")
    similarity_threshold: SkipValidation[float | None] = _option("similarity_threshold")
    redundancy_threshold: SkipValidation[float | None] = _option("redundancy_threshold")
    min_chunks: SkipValidation[int] = _option("min_chunks")
    whole_source_tokens: SkipValidation[int | None] = _option("whole_source_tokens")
    neighbors: SkipValidation[int] = _option("neighbors")
    stitch: SkipValidation[bool] = _option("stitch", default=False)
    separator: SkipValidation[str] = _option("separator")
    gap: SkipValidation[str | None] = _option("gap")
    header: SkipValidation[Header | None] = _option("header")
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
        from oprag.methods.profile import options_for

        return cls(**options_for(cls, profile, options))

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        with_plain_numbers(self)
        self._context_options()
        return self

    def _context_options(self, *, stitch: bool = False) -> ContextOptions:
        """The options as `ContextOptions`, with `stitch=True` for a context; cached until a field changes."""
        values = _values_of(self.__dict__)
        cached = self._cached  # read once: access to private attributes is slow in pydantic
        if cached is None or not all(map(is_, cached[0], values)):
            if type(self.annotate) is not bool:
                raise OptionError(f"annotate must be True or False, got {describe(self.annotate)}", self.annotate)
            options = as_context_options(None, dict(zip(OPTIONS, values, strict=False)))
            cached = values, options, as_context_options(options, {} if options.stitch else {"stitch": True})
            self._cached = cached
        return cached[2] if stitch else cached[1]


class MethodFields(OptionFields):
    """The options of `oprag.methods.MethodOptions`."""

    method: SkipValidation[str] = _option("method")
    inner_method: SkipValidation[str] = _option("inner_method")
    prompts: SkipValidation[Prompts | Mapping[str, Any]] = _option("prompts", exclude=True)
    passage_tokens: SkipValidation[int] = _option("passage_tokens")
    collapse_tokens: SkipValidation[int | None] = _option("collapse_tokens")
    rank_by: SkipValidation[RankBy] = _option("rank_by")
    variants: SkipValidation[int] = _option("variants")
    answer_threshold: SkipValidation[float] = _option("answer_threshold")
    source_token_budget: SkipValidation[int | None] = _option("source_token_budget")
    overflow: SkipValidation[Overflow] = _option("overflow")
    cite: SkipValidation[bool] = _option("cite")
    condense: SkipValidation[bool] = _option("condense")
    empty_answer: SkipValidation[str] = _option("empty_answer")
    on_error: SkipValidation[OnError] = _option("on_error")
    max_concurrency: SkipValidation[int] = _option("max_concurrency")

    def _method_options(self, **changes: Any) -> MethodOptions:
        """The options as `MethodOptions`, with changes."""
        return as_method_options(None, {name: getattr(self, name) for name in METHOD_OPTIONS} | changes)


class StoreOrderFields(OptionFields):
    """The `store_order` option, for classes that have access to the searched store."""

    store_order: SkipValidation[bool] = Field(
        default=True,
        description="Use the order in which chunks were inserted into the store if the order is otherwise unknown.",
    )
    # Set by search tools, whose results are ordered together with the results of other searches.
    _place_each: bool = PrivateAttr(default=False)

    def _for_many_searches(self) -> Self:
        """A copy that also finds the position of a source's only retrieved chunk."""
        copy = self.model_copy()
        copy._place_each = True  # noqa: SLF001
        return copy

    @field_validator("store_order", mode="before")
    @classmethod
    def _check_store_order(cls, value: Any) -> Any:
        check_bool("store_order", value)
        return value


class _OwnCache(VectorCache):
    """The default cache of an object and its copies; its type distinguishes it from a cache that the user passed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OwnCache, ()


class SourceFields(OptionFields):
    """What is read besides the search: vectors, neighbors, and the texts of sources.

    Each framework adds the option for the embedding model.
    """

    _embedder_option: ClassVar[str]
    """Name of the option for the embedding model."""
    _neighbor_sources: ClassVar[str]
    """Valid values of `read_neighbors`, for messages."""

    # A field, not a private attribute: LangChain's configurable fields recreate the object from its fields.
    vector_cache: SkipValidation[Any] = Field(
        default_factory=_OwnCache,
        description="Cache of computed vectors; 256 MiB in memory by default.",
        exclude=True,
        repr=False,
    )
    read_neighbors: SkipValidation[Any] = Field(
        default=None,
        description="Where to read neighbors: an index, a docstore, or a function of a chunk and a number; by default "
        "the searched store or index, if the filter of the search can be applied to the neighbors.",
        exclude=True,
        repr=False,
    )

    read_source: SkipValidation[ReadSource | None] = Field(
        default=None,
        description="Full texts of the sources: a folder, a mapping of names to texts, a function of the name, or the "
        "documents of a loader. Used to locate chunks without a position, and required by long_context and self_route.",
        exclude=True,
        repr=False,
    )
    _orders: SourceOrders = PrivateAttr(default_factory=SourceOrders)
    # The value of `read_source`, and the texts that it reads.
    _texts: tuple[Any, SourceTexts | None] = PrivateAttr(default=(None, None))

    @classmethod
    def _as_embedder(cls, value: Any) -> Any:
        """Wrap an embedding model of the framework as an `oprag.Embedder`."""
        raise NotImplementedError

    @classmethod
    def _reads_neighbors(cls, value: Any) -> bool:
        """Whether this is a valid value of `read_neighbors`; each framework adds its own objects."""
        return callable(value) and not inspect.iscoroutinefunction(value)

    @field_validator("embeddings", "embed_model", mode="before", check_fields=False)
    @classmethod
    def _check_embedder(cls, value: Any) -> Any:
        if value is not None:
            cls._as_embedder(value)
        return value

    @field_validator("read_neighbors", mode="before")
    @classmethod
    def _check_read_neighbors(cls, value: Any) -> Any:
        if value is None or cls._reads_neighbors(value):
            return value
        raise OptionError(f"read_neighbors must be {cls._neighbor_sources}, got {type(value).__name__}", value)

    @field_validator("vector_cache", mode="before")
    @classmethod
    def _check_vector_cache(cls, value: Any) -> VectorCache:
        if value is None:
            return _OwnCache()
        if not isinstance(value, VectorCache):
            raise OptionError(f"vector_cache must be an oprag.VectorCache or None, got {type(value).__name__}", value)
        return value

    @field_validator("read_source", mode="before")
    @classmethod
    def _check_read_source(cls, value: Any) -> Any:
        as_reader(value)
        return value

    @property
    def _source_texts(self) -> SourceTexts | None:
        # Created on first access, and again after another value was assigned.
        if self._texts[0] is not self.read_source:
            reader = as_reader(self.read_source)
            self._texts = self.read_source, None if reader is None else SourceTexts(reader)
        return self._texts[1]

    @property
    def _reader(self) -> SourceReader | None:
        texts = self._source_texts
        return None if texts is None else texts.reader

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with updated fields, validated as at construction (pydantic's `model_copy` does not validate)."""
        # The copy shares the cache, so that nothing is embedded twice.
        given = {name: getattr(self, name) for name in {*self.model_fields_set, "vector_cache"}}
        return type(self)(**{**(deepcopy(given) if deep else given), **(update or {})})

    @property
    def _has_user_cache(self) -> bool:
        return not isinstance(self.vector_cache, _OwnCache)


def list_of_neighbors(found: Any, kind: str, chunk: Chunk) -> list[Any]:
    """The result of a user's `read_neighbors` function as a list; rejected if it is not iterable."""
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ChunkError(
            f"read_neighbors must return a list of {kind}, got {type(found).__name__} for a chunk ({chunk.label()})",
            found,
        )
    return list(found)


def given_options(model: ContextFields) -> dict[str, Any]:
    """The options, including `annotate`, that differ from the defaults of `ContextFields` (not of the subclass)."""
    fields = ContextFields.model_fields
    return {name: value for name in _WITH_ANNOTATE if (value := getattr(model, name)) != fields[name].default}


def callables(model: ContextFields, names: Iterable[str] = OPTIONS) -> list[str]:
    """The names of options that are user-defined functions, which cannot be serialized."""
    return [name for name in names if callable(value := getattr(model, name)) and value is not approximate_tokens]
