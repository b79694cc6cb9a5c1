"""Adapter options for vectors and neighbors, as pydantic fields: `vector_cache` and `read_neighbors`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

from pydantic import Field, SkipValidation, field_validator

from oprag.chunk import Chunk
from oprag.embedding.vector_cache import VectorCache
from oprag.errors import ChunkError, OptionError
from oprag.option_fields import OptionFields

__all__ = ["VectorFields", "common_cache", "list_of_neighbors"]


class _OwnCache(VectorCache):
    """The default cache of an object and its copies; its type distinguishes it from a cache that the user passed."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _OwnCache, ()


class VectorFields(OptionFields):
    """The options for vectors and neighbors; each framework adds the option for the embedding model."""

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

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy with updated fields, validated as at construction (pydantic's `model_copy` does not validate)."""
        # The copy shares the cache, so that nothing is embedded twice.
        given = {name: getattr(self, name) for name in {*self.model_fields_set, "vector_cache"}}
        return type(self)(**{**(deepcopy(given) if deep else given), **(update or {})})

    @property
    def _has_user_cache(self) -> bool:
        return not isinstance(self.vector_cache, _OwnCache)


def common_cache(outer: VectorFields, inner: VectorFields) -> VectorCache:
    """The shared cache of a chain or engine and its retriever: the user's cache; rejected if they have different ones.

    Args:
        outer: The chain or engine.
        inner: Its retriever.

    Raises:
        OptionError: Both have a cache from the user, and they differ.
    """
    own, its = outer.vector_cache, inner.vector_cache
    if not outer._has_user_cache:  # noqa: SLF001
        return its  # type: ignore[no-any-return]
    files = [(cache.path and cache.path.resolve(), cache.namespace) for cache in (own, its)]
    same = own is its or (own.path is not None and files[0] == files[1])
    if inner._has_user_cache and not same:  # noqa: SLF001
        raise OptionError("the retriever has a different vector_cache; pass vector_cache to only one of them", own)
    return own  # type: ignore[no-any-return]


def list_of_neighbors(found: Any, kind: str, chunk: Chunk) -> list[Any]:
    """The result of a user's `read_neighbors` function as a list; rejected if it is not iterable."""
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ChunkError(
            f"read_neighbors must return a list of {kind}, got {type(found).__name__} for a chunk ({chunk.label()})",
            found,
        )
    return list(found)
