"""A vector store that nothing is known about: no adapter, no search by a vector."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

__all__ = ["UnknownStore"]


class UnknownStore(VectorStore):
    """Gives what another store finds, without its ids."""

    def __init__(self, inner: VectorStore) -> None:
        self.inner = inner

    @property
    def embeddings(self) -> Any:
        return self.inner.embeddings

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        found = self.inner.similarity_search(query, k, **kwargs)
        return [Document(document.page_content, metadata=document.metadata) for document in found]

    @classmethod
    def from_texts(cls, *given: Any, **kwargs: Any) -> Any:
        raise NotImplementedError
