"""What adapters take beside the options of `Assembly` for its thresholds and neighbours, as pydantic fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, Field, PrivateAttr, SkipValidation, model_validator

from oprag.errors import OptionError

if TYPE_CHECKING:
    from oprag.cache import VectorCache

__all__ = ["VectorFields"]


class VectorFields(BaseModel):
    """Where vectors and neighbours come from."""

    embeddings: SkipValidation[Any] = Field(default=None, exclude=True, repr=False)
    vector_cache: SkipValidation[Any] = Field(default=None, exclude=True, repr=False)
    read_neighbors: SkipValidation[Any] = Field(default=None, exclude=True, repr=False)
    # Shared by copies, so that a copy with another k embeds nothing again.
    _memory: list[VectorCache] = PrivateAttr(default_factory=list)

    @model_validator(mode="after")
    def _check_vector_cache(self) -> Self:
        # Looked at by its looks, since the class loads NumPy, and who has no cache needs none.
        if self.vector_cache is not None and not hasattr(self.vector_cache, "put"):
            given = type(self.vector_cache).__name__
            raise OptionError(f"vector_cache must be an oprag.VectorCache or None, got {given}", self.vector_cache)
        return self

    def _given_parts(self) -> dict[str, Any]:
        """Those of these fields that were given, for something that is made with them."""
        names = ("embeddings", "vector_cache", "read_neighbors")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def cache_for(self, embedder: Any) -> VectorCache:
        """The cache that was given, else one in memory.

        Raises:
            OptionError: The cache is a file, and the embedder does not say which model it is.
        """
        if self.vector_cache is None:
            if not self._memory:
                from oprag.cache import VectorCache

                self._memory.append(VectorCache())
            return self._memory[0]
        cache: VectorCache = self.vector_cache
        if cache.path is not None and embedder is not None and not getattr(embedder, "lasting", True):
            raise OptionError(
                f"a cache in a file needs to know the model, and {embedder.name.partition(' ')[0]} does not say which "
                'one it is; give embeddings=as_embedder(embeddings, name="...")',
                self.embeddings,
            )
        return cache
