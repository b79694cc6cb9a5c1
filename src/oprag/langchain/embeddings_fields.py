"""The embeddings of thresholds and methods, as a pydantic field."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, SkipValidation

from oprag.langchain.near_misses import HOW_TO_PASS
from oprag.vector_fields import VectorFields

__all__ = ["EmbeddingsFields"]


class EmbeddingsFields(VectorFields):
    """Where vectors and neighbours come from, and the embeddings."""

    _how_to_pass: ClassVar = HOW_TO_PASS
    _embedder_option: ClassVar = "embeddings"

    embeddings: SkipValidation[Any] = Field(
        default=None,
        description="LangChain embeddings, or an oprag.Embedder. Thresholds use those of the searched store or index "
        'by default; reciprocal and rank_by="cosine" need them.',
        exclude=True,
        repr=False,
    )
