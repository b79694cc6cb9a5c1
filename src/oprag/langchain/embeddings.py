"""LangChain embeddings as an `oprag.Embedder`, and the local embedder as LangChain embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from oprag.embedding.embedder import FrameworkEmbedder
from oprag.errors import OptionError

if TYPE_CHECKING:
    from oprag.embedding.static import LocalEmbedder

__all__ = ["LocalEmbeddings", "as_embedder"]


def as_embedder(embeddings: Any) -> Any:
    """Wrap LangChain embeddings as an `oprag.Embedder`; return an `Embedder` unchanged.

    Args:
        embeddings: LangChain's `Embeddings`, or an `oprag.Embedder`.

    Raises:
        OptionError: The object cannot embed texts.
    """
    if isinstance(embeddings, Embeddings):
        return FrameworkEmbedder(embeddings, "embed_query", "embed_documents")
    if hasattr(embeddings, "embed_questions") and not isinstance(embeddings, type):
        return embeddings
    raise OptionError(f"embeddings must be LangChain embeddings, got {type(embeddings).__name__}", embeddings)


class LocalEmbeddings(Embeddings):
    """LangChain `Embeddings` that need no API key, no download and no torch: `oprag.LocalEmbedder`.

    For examples, tests and first tries; a sentence encoder finds more. Vectors have 256 dimensions. All instances share
    one model. The async methods run in a thread.

    Raises:
        MissingExtraError: The extra `local` is not installed.

    Example:
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> texts = ["She left port in May.", "Bread is baked daily."]
        >>> store = InMemoryVectorStore.from_texts(texts, LocalEmbeddings())
        >>> store.similarity_search("When did the ship sail?", k=1)[0].page_content
        'She left port in May.'
    """

    def __init__(self) -> None:
        _shared()  # fails here without the extra

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed documents.

        Args:
            texts: The texts of the documents.

        Returns:
            One vector of 256 numbers for each text.
        """
        return _shared().embed_documents(texts).tolist()  # type: ignore[no-any-return]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question.

        Args:
            text: The question.

        Returns:
            A vector of 256 numbers.
        """
        return self.embed_documents([text])[0]


def _shared() -> LocalEmbedder:
    # Imports NumPy.
    from oprag.embedding.static import local_embedder

    return local_embedder()
