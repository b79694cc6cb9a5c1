"""The options of adapters for vectors and neighbors, as pydantic fields: the cache, and where neighbors come from."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

from pydantic import Field, SkipValidation, field_validator

from oprag.chunk import Chunk
from oprag.embedding.cache import VectorCache
from oprag.errors import ChunkError, OptionError
from oprag.option_fields import OptionFields

__all__ = ["VectorFields", "common_cache", "list_of_neighbors"]


class _OwnCache(VectorCache):
    """The default cache of an object and its copies, told from one that the user gave."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OwnCache, ()


class VectorFields(OptionFields):
    """Where vectors and neighbors come from; each framework adds the embedding model, under its own name."""

    _embedder_option: ClassVar[str]
    """The option that takes the embedding model."""
    _neighbor_sources: ClassVar[str]
    """What `read_neighbors` can be, for messages."""

    # A field, not a private attribute: configurable fields make the object again from its fields.
    vector_cache: SkipValidation[Any] = Field(
        default_factory=_OwnCache,
        description="Cache of computed vectors; 256 MiB in memory by default.",
        exclude=True,
        repr=False,
    )
    read_neighbors: SkipValidation[Any] = Field(
        default=None,
        description="Where neighbors come from: an index or docstore, or a function of a chunk and a number; by "
        "default what is searched, where neighbors can be held to the filter of the search.",
        exclude=True,
        repr=False,
    )

    @classmethod
    def _as_embedder(cls, value: Any) -> Any:
        """An embedding model of the framework as an `oprag.Embedder`."""
        raise NotImplementedError

    @classmethod
    def _reads_neighbors(cls, value: Any) -> bool:
        """Whether `read_neighbors` can be this; each framework adds its own objects."""
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

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some of the fields changed, checked as at construction; pydantic's own checks nothing."""
        # What was embedded for the one need not be embedded for the other.
        given = {name: getattr(self, name) for name in {*self.model_fields_set, "vector_cache"}}
        return type(self)(**{**(deepcopy(given) if deep else given), **(update or {})})

    @property
    def _is_given_a_cache(self) -> bool:
        return not isinstance(self.vector_cache, _OwnCache)

    def cache_for(self, embedder: Any, cache: VectorCache | None = None) -> VectorCache:
        """A cache, its own by default; refused where it is a file and the embedder does not say which model it is.

        Args:
            embedder: The embedder whose vectors are kept; None without one.
            cache: The cache to use in place of its own.
        """
        cache = self.vector_cache if cache is None else cache
        if cache.path is not None and embedder is not None and not getattr(embedder, "lasting", True):
            option = self._embedder_option
            raise OptionError(
                f"a cache in a file needs to know the model, and {embedder.name.partition(' ')[0]} does not say which "
                f"one it is, or has settings that cannot be read; give it a name: {option}=as_embedder({option}, "
                'name="...")',
                getattr(self, option),
            )
        return cache


def common_cache(outer: VectorFields, inner: VectorFields) -> VectorCache:
    """The cache of a chain or engine and its retriever: the one that either was given, refused where they differ."""
    mine, its = outer.vector_cache, inner.vector_cache
    if not outer._is_given_a_cache:  # noqa: SLF001
        return its  # type: ignore[no-any-return]
    same = mine is its or (mine.path is not None and its.path is not None and mine.path.resolve() == its.path.resolve())
    if inner._is_given_a_cache and not same:  # noqa: SLF001
        raise OptionError("its retriever has another vector_cache; give one of them alone", mine)
    return mine  # type: ignore[no-any-return]


def list_of_neighbors(found: Any, kind: str, chunk: Chunk) -> list[Any]:
    """What a function of the user read around a chunk; refused where that is not a list."""
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ChunkError(
            f"read_neighbors must give a list of {kind}, got {type(found).__name__} for a chunk ({chunk.label()})",
            found,
        )
    return list(found)
