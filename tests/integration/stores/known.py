"""Embeddings that hand out the vectors of the corpus, and count what they are asked for; those of LlamaIndex."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode
from pydantic import PrivateAttr

from tests.counting import CountingEmbeddings
from tests.integration.stores.corpus import Corpus

__all__ = ["KnownEmbeddings", "NodeEmbeddings", "node_of"]


class KnownEmbeddings(CountingEmbeddings):
    """Hands out the vectors of a corpus, and counts what it is asked for."""

    def __init__(self, corpus: Corpus) -> None:
        super().__init__(corpus.vectors.shape[1], "known")
        self._known = {**dict(zip(corpus.texts, corpus.vectors, strict=True)), **corpus.questions}

    @property
    def chunks(self) -> list[str]:
        """The chunks that were embedded."""
        return [text for text in self.documents if text in self._known]

    def _vector(self, text: str) -> list[float]:
        if text not in self._known:
            # Qdrant's store asks for the vector of a text of its own, to see how long it is.
            return super()._vector(text)
        return [float(number) for number in self._known[text]]


class NodeEmbeddings(BaseEmbedding):
    """The vectors of LangChain's embeddings, as LlamaIndex wants them."""

    _inner: Embeddings = PrivateAttr()

    def __init__(self, inner: Embeddings) -> None:
        super().__init__(model_name="known")
        self._inner = inner

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._inner.embed_query(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._inner.embed_query(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._inner.embed_documents([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._inner.embed_documents(texts)


def node_of(text: str, id_: str, metadata: dict[str, Any]) -> TextNode:
    """A node whose text is embedded without its metadata."""
    return TextNode(text=text, id_=id_, metadata=metadata, excluded_embed_metadata_keys=list(metadata))
