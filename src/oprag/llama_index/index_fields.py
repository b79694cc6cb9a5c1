"""The embedding model, and the index that nodes come from, as pydantic fields."""

from __future__ import annotations

from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from pydantic import Field, SkipValidation

from oprag.llama_index.compression import Compression, Searched, compression_of, model_of, searched_by, searched_in
from oprag.llama_index.near_misses import HOW_TO_PASS
from oprag.options import ContextOptions
from oprag.vector_fields import VectorFields

__all__ = ["IndexFields"]


class IndexFields(VectorFields):
    """Where vectors and neighbours come from, and the index that has them all."""

    _how_to_pass: ClassVar = HOW_TO_PASS
    _embedder_option: ClassVar = "embed_model"

    index: SkipValidation[Any] = Field(
        default=None,
        description="Index that the nodes come from, for thresholds and, around its retriever, neighbors: its vectors, "
        "embedding model and docstore.",
        exclude=True,
        repr=False,
    )
    embed_model: SkipValidation[Any] = Field(
        default=None,
        description="LlamaIndex embedding model, or an oprag.Embedder, for thresholds, reciprocal and "
        'rank_by="cosine"; by default that of the index, else Settings.embed_model if you set it.',
        exclude=True,
        repr=False,
    )

    def _compression_over(self, context_options: ContextOptions, retriever: BaseRetriever | None = None) -> Compression:
        """Where vectors and neighbours come from."""
        return compression_of(context_options, self, self._searched(retriever), retriever)

    def embed_model_over(self, retriever: BaseRetriever) -> Any:
        """The embedding model, if there is one."""
        return model_of(self.embed_model, self._searched(retriever))

    def _searched(self, retriever: BaseRetriever | None) -> Searched | None:
        """What is searched: the index that was given, else that of the retriever."""
        if self.index is not None:
            return searched_in(self.index)
        return None if retriever is None else searched_by(retriever)

    def _left_out(self) -> list[str]:
        """The parts that were given, which cannot be saved."""
        names = ("index", "embed_model", "vector_cache", "read_neighbors")
        given = [name for name in names if getattr(self, name) is not None]
        return [name for name in given if name != "vector_cache" or self.vector_cache.path is not None]
