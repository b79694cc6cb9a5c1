"""The options of adapters as pydantic fields, for frameworks that build on pydantic.

The names of `ContextOptions` and `MethodOptions` are repeated statically for editors and type checkers. Values are not
validated here but by these classes, so that all adapters raise the same errors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SkipValidation, StrictBool, model_validator

from oprag._internal.tokens import TokenCounter
from oprag.embedding.vector_cache import VectorCache
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
    "component",
    "given_options",
]

OPTIONS = tuple(descriptions(ContextOptions))
METHOD_OPTIONS = tuple(descriptions(MethodOptions))
HELP = descriptions(ContextOptions) | descriptions(MethodOptions)
_DEFAULTS = {field.name: field.default for kind in (ContextOptions, MethodOptions) for field in fields(kind)}


def _option(name: str, **changes: Any) -> Any:
    """The pydantic field of an option, with the default and the description that its dataclass declares."""
    return Field(**{"default": _DEFAULTS[name], "description": HELP[name], **changes})


def component(description: str) -> Any:
    """The pydantic field of an object that is neither saved nor shown, such as an index; None by default."""
    return Field(default=None, description=description, exclude=True, repr=False)


# Inputs may contain keys and passwords, so errors do not show them.
_CONFIG = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, validate_assignment=True)
PUBLIC_CONFIG = ConfigDict(**_CONFIG, defer_build=False)
"""The settings of public classes: the base classes of their frameworks have others."""


class OptionFields(BaseModel):
    """Keyword-only options; other arguments are rejected with a hint."""

    # Mixins are never validated themselves. The signature of a public class is wrong until it is built.
    model_config = ConfigDict(**_CONFIG, defer_build=True)

    _name_hints: ClassVar[Mapping[str, str]] = {}
    """Hints for option names that other packages use."""

    # The signature of LangChain's own constructor has *args.
    __init__ = BaseModel.__init__

    @model_validator(mode="before")
    @classmethod
    def _check_given(cls, given: Any) -> Any:
        if isinstance(given, dict):
            check_names(given, cls.model_fields, cls._name_hints)
        return given

    def __setattr__(self, name: str, value: Any) -> None:
        # Pydantic keeps a value that a model validator rejects.
        values, private = dict(vars(self)), dict(self.__pydantic_private__ or {})
        try:
            super().__setattr__(name, value)
        except ValueError:
            vars(self).update(values)
            (self.__pydantic_private__ or {}).update(private)
            raise


class ContextFields(OptionFields):
    """The options of `ContextOptions`, and `annotate`; `stitch` is off, as frameworks' objects are not joined."""

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
    annotate: StrictBool = Field(
        default=False, description='Return copies with rank, score, position and span under the metadata key "oprag".'
    )
    # The options without `annotate`, as they are, and with stitch=True, for contexts.
    _context_options: ContextOptions
    _stitching_options: ContextOptions

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
        self._context_options = ContextOptions(**{name: getattr(self, name) for name in OPTIONS})
        self._stitching_options = replace(self._context_options, stitch=True)
        return self


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

    store_order: StrictBool = Field(
        default=True,
        description="Use the order in which chunks were inserted into the store if the order is otherwise unknown.",
    )
    # Set by search tools, whose results are ordered together with the results of other searches.
    _place_each: bool = False

    def _for_many_searches(self) -> Self:
        """A copy that also finds the position of a source's only retrieved chunk."""
        copy = self.model_copy()
        copy._place_each = True  # noqa: SLF001
        return copy


class _OwnCache(VectorCache):
    """The default cache of an object and its copies; its type distinguishes it from a cache that the user passed."""


class SourceFields(OptionFields):
    """What is read besides the search: vectors, and the texts of sources; each framework adds its own sources."""

    # A field, not a private attribute: LangChain's configurable fields recreate the object from its fields.
    vector_cache: VectorCache = Field(
        default_factory=_OwnCache,
        description="Cache of computed vectors; 256 MiB in memory by default.",
        exclude=True,
        repr=False,
    )
    read_source: SkipValidation[ReadSource | None] = component(
        "Full texts of the sources: a folder, a mapping of names to texts, a function of the name, or the documents of "
        "a loader. Used to locate chunks without a position, and required by long_context and self_route."
    )
    _orders: SourceOrders = PrivateAttr(default_factory=SourceOrders)
    _reader: SourceReader | None = None
    _source_texts: SourceTexts | None = None
    _given: Any = None  # the `read_source` of these

    @model_validator(mode="after")
    def _open_sources(self) -> Self:
        if self._given is not self.read_source:
            self._given, self._reader = self.read_source, as_reader(self.read_source)
            self._source_texts = None if self._reader is None else SourceTexts(self._reader)
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with updated fields, validated as at construction (pydantic's `model_copy` does not validate)."""
        # The copy shares the cache, so that nothing is embedded twice.
        given = {name: getattr(self, name) for name in {*self.model_fields_set, "vector_cache"}}
        return type(self)(**{**(deepcopy(given) if deep else given), **(update or {})})


def given_options(model: Any) -> dict[str, Any]:
    """The options of a search that differ from the defaults of these classes (not of the subclass)."""
    fields = ContextFields.model_fields | StoreOrderFields.model_fields
    defaults = {name: field.default for name, field in fields.items()} | {"read_neighbors": None, "index": None}
    given = {name: getattr(model, name, None) for name in defaults}
    cache = {} if isinstance(model.vector_cache, _OwnCache) else {"vector_cache": model.vector_cache}
    return {name: value for name, value in given.items() if value != defaults[name]} | cache
