"""The index that nodes come from, as a pydantic field."""

from __future__ import annotations

from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from pydantic import Field, SkipValidation

from oprag.assembly import ContextOptions
from oprag.llama_index.compression import Compression, compression_of, searched_by, searched_in
from oprag.llama_index.near_misses import HOW_TO_PASS
from oprag.llama_index.stores import Searched
from oprag.vectors.fields import PARTS, VectorFields

__all__ = ["IndexFields"]


class IndexFields(VectorFields):
    """Where vectors and neighbours come from, and the index that has them all."""

    _how_to_pass: ClassVar = HOW_TO_PASS

    index: SkipValidation[Any] = Field(
        default=None,
        description="Index that the nodes come from, for thresholds and, around its retriever, neighbors: its vectors, "
        "embedding model and docstore.",
        exclude=True,
        repr=False,
    )

    def _compression_over(self, context_options: ContextOptions, retriever: BaseRetriever | None = None) -> Compression:
        """Where vectors and neighbours come from: the index that was given, else that of the retriever."""
        if self.index is not None:
            searched: Searched | None = searched_in(self.index)
        else:
            searched = None if retriever is None else searched_by(retriever)
        return compression_of(context_options, self, searched, retriever)

    def _left_out(self) -> list[str]:
        """The parts that were given, which cannot be saved."""
        given = [name for name in ("index", *PARTS) if getattr(self, name) is not None]
        return [name for name in given if name != "vector_cache" or self.vector_cache.path is not None]
