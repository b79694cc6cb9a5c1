"""The local embedder as a LlamaIndex embedding."""

from __future__ import annotations

from llama_index.core.base.embeddings.base import BaseEmbedding
from pydantic import PrivateAttr

from oprag import LocalEmbedder

__all__ = ["LocalEmbedding"]


class LocalEmbedding(BaseEmbedding):
    """Embeds each text once, for all indexes."""

    _embedder: LocalEmbedder = PrivateAttr()
    _known: dict[str, list[float]] = PrivateAttr(default_factory=dict)

    def __init__(self, embedder: LocalEmbedder) -> None:
        super().__init__(model_name=embedder.name, embed_batch_size=256)
        self._embedder = embedder

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed_documents(new).tolist(), strict=True))
        return [self._known[text] for text in texts]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._embedder.embed_questions([query])[0].tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)
