"""Vector stores of an experiment: LangChain stores by name or from a factory, searched with precomputed vectors."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import describe

__all__ = ["STORE_NAMES", "Store"]

_COLLECTION = "oprag"  # a constant, since each collection is alone in its folder or in memory
_ROW = "oprag_row"  # metadata key
_BATCH = 1_000  # maximum number of chunks added in one call
_PINECONE_SECONDS, _PINECONE_PAUSE = 120.0, 1.0


class Store:
    """The chunks of an index in a LangChain vector store, with rows 0 to n - 1.

    Args:
        name: The name of the store in the experiment.
        texts: One or more chunks.
        vectors: The vectors of the chunks, of shape (number of texts, dimension); they are normalized.
        factory: A function that takes LangChain embeddings and returns an empty store, or a context manager of one;
            None for the built-in store with this name.
    """

    def __init__(
        self, name: str, texts: Sequence[str], vectors: NDArray[np.float32], factory: Callable[[Any], Any] | None = None
    ) -> None:
        # Surrogates cannot be encoded, and PostgreSQL rejects NUL.
        self._texts = [text.encode(errors="replace").decode().replace("\0", "?") for text in texts]
        unit = as_vectors(vectors, len(texts))
        self._name, self._dimension = name, unit.shape[1]
        self._embeddings = _PrecomputedVectors(self._dimension, dict(zip(self._texts, unit, strict=True)))
        with ExitStack() as opened:
            self._store = _opened(name, factory, self._embeddings, opened)
            for start in range(0, len(texts), _BATCH):
                self._add(range(start, min(start + _BATCH, len(texts))))
            self.close = opened.pop_all().close

    def _add(self, rows: range) -> None:
        from langchain_core.documents import Document

        self._store.add_documents([Document(self._texts[row], metadata={_ROW: row}) for row in rows])

    def search(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """Rows of up to k chunks with the highest cosine similarity, best first, with the scores of the store.

        Args:
            vector: The vector of the question, of shape (dimension,).
            k: Maximum number of chunks.
        """
        (unit,) = as_vectors(np.asarray(vector)[None], 1, self._dimension)
        self._embeddings.question = unit.tolist()
        options = _SEARCH_OPTIONS.get(self._name, {})
        found: dict[int, float] = {}
        # The text is a placeholder: the embeddings return the vector of the question.
        for document, score in self._store.similarity_search_with_score("?", k=min(k, len(self._texts)), **options):
            row = int(document.metadata.get(_ROW, -1))  # Pinecone returns numbers as floats
            if not 0 <= row < len(self._texts) or row in found or document.page_content != self._texts[row]:
                raise ExperimentError(
                    f"the store {self._name!r} returned {describe(document.page_content)} twice, or the experiment did "
                    "not add this text; a store must be empty when it is opened, and return texts unchanged",
                    document,
                )
            found[row] = float(score)
        return list(found.items())


class _PrecomputedVectors:
    """LangChain embeddings that return precomputed vectors; a virtual subclass, since LangChain is optional."""

    model = "oprag"  # some stores read it to name their collections

    def __init__(self, dimension: int, known: Mapping[str, NDArray[np.float32]]) -> None:
        self.dimension = dimension
        self.question = [1.0, *([0.0] * (dimension - 1))]
        self._known = known

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The precomputed vectors; a store may embed other texts to find out the dimension."""
        return [self._known[text].tolist() if text in self._known else self.question for text in texts]

    def embed_query(self, text: str) -> list[float]:  # noqa: ARG002
        """The vector of the current question."""
        return self.question


def _opened(name: str, factory: Callable[[Any], Any] | None, embeddings: _PrecomputedVectors, opened: ExitStack) -> Any:
    """An empty store; what must be closed with it is added to `opened`."""
    try:
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import VectorStore

        Embeddings.register(_PrecomputedVectors)
        store = factory(embeddings) if factory else _STORES[name][0](embeddings, opened)
    except ImportError as error:
        if factory:
            raise
        raise MissingExtraError(f"the store {name!r}", name, command=f"pip install {_STORES[name][1]}") from error
    if not isinstance(store, VectorStore) and hasattr(type(store), "__exit__"):
        store = opened.enter_context(store)
    if not isinstance(store, VectorStore):
        raise ExperimentError(f"the store {name!r} must be a LangChain vector store, got {describe(store)}", store)
    return store


def _folder(opened: ExitStack) -> str:
    return opened.enter_context(tempfile.TemporaryDirectory(prefix="oprag-store-", ignore_cleanup_errors=True))


def _in_memory(embeddings: Any, _: ExitStack) -> Any:
    from langchain_core.vectorstores import InMemoryVectorStore

    return InMemoryVectorStore(embeddings)


def _chroma(embeddings: Any, opened: ExitStack) -> Any:
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    # In a folder, since in-memory clients of a process share one database.
    client = chromadb.PersistentClient(_folder(opened), Settings(anonymized_telemetry=False))
    opened.enter_context(closing(client))
    # Search the graph widely enough to find the exact nearest chunks of a book, for k up to `ef_search`.
    graph = {"space": "cosine", "ef_construction": 400, "ef_search": 2_000}
    return Chroma(_COLLECTION, embeddings, client=client, collection_configuration={"hnsw": graph})


def _faiss(embeddings: Any, _: ExitStack) -> Any:
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    # The inner product of unit vectors is their cosine similarity.
    return FAISS(embeddings, faiss.IndexFlatIP(embeddings.dimension), InMemoryDocstore(), {})


def _qdrant(embeddings: Any, opened: ExitStack) -> Any:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, VectorParams

    client = opened.enter_context(closing(QdrantClient(":memory:")))
    client.create_collection(_COLLECTION, VectorParams(size=embeddings.dimension, distance=Distance.COSINE))
    return QdrantVectorStore(client, _COLLECTION, embeddings, validate_collection_config=False)


def _lancedb(embeddings: Any, opened: ExitStack) -> Any:
    import lancedb
    from langchain_community.vectorstores import LanceDB

    return LanceDB(lancedb.connect(_folder(opened)), embeddings, table_name=_COLLECTION, mode="append")


def _pinecone(embeddings: Any, opened: ExitStack) -> Any:
    """A new namespace in the index `oprag-DIMENSION`, which must exist; the key is `PINECONE_API_KEY`."""
    from langchain_pinecone import PineconeVectorStore

    namespace = f"{_COLLECTION}-{uuid4().hex}"

    class Settled(PineconeVectorStore):  # type: ignore[misc, unused-ignore]
        """Waits until added vectors can be found, which Pinecone does with a delay."""

        def add_documents(self, documents: Any, **options: Any) -> Any:
            ids = super().add_documents(documents, **options)
            latest = time.monotonic() + _PINECONE_SECONDS
            while self.count() <= documents[-1].metadata[_ROW]:
                if time.monotonic() > latest:
                    raise ExperimentError(f"Pinecone has not found all chunks in {namespace}", namespace)
                time.sleep(_PINECONE_PAUSE)
            return ids

        def count(self) -> int:
            found = self.index.describe_index_stats()["namespaces"]
            return int(found[namespace]["vector_count"]) if namespace in found else 0

    store = Settled(index_name=f"{_COLLECTION}-{embeddings.dimension}", embedding=embeddings, namespace=namespace)
    opened.callback(lambda: store.count() and store.delete(delete_all=True))
    return store


# The function that opens each store, and the packages that it needs.
_STORES: Mapping[str, tuple[Callable[[Any, ExitStack], Any], str]] = {
    "in_memory": (_in_memory, "'oprag[langchain]'"),
    "chroma": (_chroma, "langchain-chroma"),
    "faiss": (_faiss, "langchain-community faiss-cpu"),
    "qdrant": (_qdrant, "langchain-qdrant"),
    "lancedb": (_lancedb, "langchain-community lancedb"),
    "pinecone": (_pinecone, "langchain-pinecone"),
}
# A LanceDB table has no metric: it is an argument of a search.
_SEARCH_OPTIONS = {"lancedb": {"metrics": "cosine"}}

STORE_NAMES = ("index", *_STORES)
"""The built-in stores; "index" is a `DocumentIndex`, whose search is exact."""
