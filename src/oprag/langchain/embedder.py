"""LangChain's embeddings as an `oprag.Embedder`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oprag.checks import check_text
from oprag.errors import OptionError
from oprag.vectors.identity import identity_of

__all__ = ["LangChainEmbedder", "as_embedder"]


@dataclass(frozen=True)
class LangChainEmbedder:
    """An `Embedder` around LangChain's `Embeddings`, or anything with its two methods.

    Attributes:
        embeddings: What embeds.
        name: The identity of the model and its settings.
        lasting: Whether the name means the same in another process.
    """

    embeddings: Any
    name: str
    lasting: bool = True

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return [self.embeddings.embed_query(text) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Vectors of shape (number of texts, dimension)."""
        return self.embeddings.embed_documents(list(texts))


class _AsyncLangChainEmbedder(LangChainEmbedder):
    """One around embeddings that are async as well."""

    async def aembed_questions(self, texts: Sequence[str]) -> Any:
        """As `embed_questions`, async."""
        return await asyncio.gather(*map(self.embeddings.aembed_query, texts))

    async def aembed_documents(self, texts: Sequence[str]) -> Any:
        """As `embed_documents`, async."""
        return await self.embeddings.aembed_documents(list(texts))


def as_embedder(embeddings: Any, name: str | None = None) -> Any:
    """LangChain's embeddings as an `oprag.Embedder`; one of those as it is.

    Args:
        embeddings: LangChain's `Embeddings`, or an `oprag.Embedder`.
        name: What the model and its settings are called; vectors that are kept under one name must come from one model.
            By default the class, with the settings that may change a vector.

    Raises:
        OptionError: It cannot embed.
    """
    if name is not None:
        check_text("name", name)
    if hasattr(embeddings, "embed_questions") and not isinstance(embeddings, type):
        if name not in (None, embeddings.name):
            raise OptionError(f"this embedder has the name {embeddings.name!r} already, got {name!r}", name)
        return embeddings
    if isinstance(embeddings, type) or not all(hasattr(embeddings, one) for one in ("embed_query", "embed_documents")):
        raise OptionError(f"embeddings must be LangChain embeddings, got {type(embeddings).__name__}", embeddings)
    asynchronous = hasattr(embeddings, "aembed_query") and hasattr(embeddings, "aembed_documents")
    kind = _AsyncLangChainEmbedder if asynchronous else LangChainEmbedder
    if name is not None:
        return kind(embeddings, name)
    return kind(embeddings, *identity_of(embeddings))
