"""The local embedder as LangChain's `Embeddings`."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from oprag import LocalEmbedder

__all__ = ["LocalEmbeddings"]


class LocalEmbeddings(Embeddings):
    """Embeds each text once, for all stores."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        self._embedder = embedder
        self._known: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed_documents(new).tolist(), strict=True))
        return [self._known[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._embedder.embed_questions([text])[0].tolist()
        return vector
