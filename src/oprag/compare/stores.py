"""Vector stores of an experiment: LangChain stores by name or from a factory, searched with precomputed vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from oprag._internal.masking import describe
from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError, MissingExtraError

__all__ = ["STORE_NAMES", "Store"]

STORE_NAMES = ("index", "in_memory", "chroma", "faiss", "qdrant", "lancedb", "pinecone")
"""The built-in stores; "index" is a `DocumentIndex`, whose search is exact."""

_ROW = "oprag_row"  # metadata key
_BATCH = 1_000  # maximum number of chunks added in one call
_folder = partial(TemporaryDirectory, prefix="oprag-store-", ignore_cleanup_errors=True)
_PINECONE_SECONDS = 120


class Store:
    """The chunks of an index (one or more texts with their vectors) in a LangChain vector store, by row from 0.

    A factory takes LangChain embeddings, and returns an empty store or a context manager of one.
    """

    def __init__(
        self, name: str, texts: Sequence[str], vectors: NDArray[np.float32], factory: Callable[[Any], Any] | None = None
    ) -> None:
        # Surrogates cannot be encoded, and PostgreSQL rejects NUL.
        self._texts = [text.encode(errors="replace").decode().replace("\0", "?") for text in texts]
        self._name, unit = name, as_vectors(vectors, len(texts))
        self._embeddings = _PrecomputedVectors(unit.shape[1], dict(zip(self._texts, unit, strict=True)))
        with ExitStack() as opened:
            self._store = _opened(name, factory, self._embeddings, opened)
            for start in range(0, len(texts), _BATCH):
                part = self._texts[start : start + _BATCH]
                self._store.add_texts(part, [{_ROW: row} for row in range(start, start + len(part))])
            if factory is None and name == "pinecone":
                _await_pinecone(self._store, len(texts))
            self.close = opened.pop_all().close

    def search(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """Rows of up to k chunks with the highest cosine similarity, best first, with the scores of the store."""
        (unit,) = as_vectors(np.asarray(vector)[None], 1, self._embeddings.dimension)
        self._embeddings.question = unit.tolist()
        found: dict[int, float] = {}
        # The text is a placeholder: the embeddings return the vector of the question.
        for document, score in self._store.similarity_search_with_score("?", k=min(k, len(self._texts))):
            row = int(document.metadata.get(_ROW, -1))  # Pinecone returns numbers as floats
            if row in found or self._texts[row : row + 1] != [document.page_content]:
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


def _opened(name: str, factory: Callable[[Any], Any] | None, embeddings: Any, opened: ExitStack) -> Any:
    """An empty store; what must be closed with it is added to `opened`."""
    try:
        from langchain_core.embeddings import Embeddings

        Embeddings.register(_PrecomputedVectors)
        store = factory(embeddings) if factory else _built_in(name, embeddings, opened)
    except ImportError as error:
        if factory:
            raise
        package = "faiss-cpu" if error.name == "faiss" else str(error.name).partition(".")[0].replace("_", "-")
        raise MissingExtraError(f"the store {name!r}", name, command=f"pip install {package}") from error
    return opened.enter_context(store) if hasattr(type(store), "__exit__") else store


def _built_in(name: str, embeddings: Any, opened: ExitStack) -> Any:
    if name == "chroma":
        import chromadb
        from langchain_chroma import Chroma

        # In a folder, since in-memory clients of a process share one database.
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(opened.enter_context(_folder()), settings)
        opened.enter_context(closing(client))
        # Search the graph widely enough to find the exact nearest chunks of a book, for k up to `ef_search`.
        graph = {"space": "cosine", "ef_construction": 400, "ef_search": 2_000}
        return Chroma("oprag", embeddings, client=client, collection_configuration={"hnsw": graph})
    if name == "faiss":
        import faiss
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS

        # The inner product of unit vectors is their cosine similarity.
        return FAISS(embeddings, faiss.IndexFlatIP(embeddings.dimension), InMemoryDocstore(), {})
    if name == "qdrant":
        from langchain_qdrant import QdrantVectorStore

        return QdrantVectorStore.construct_instance(embedding=embeddings, client_options={"location": ":memory:"})
    if name == "lancedb":
        import lancedb
        from langchain_community.vectorstores import LanceDB

        return LanceDB(lancedb.connect(opened.enter_context(_folder())), embeddings, mode="append")
    if name == "pinecone":
        from langchain_pinecone import PineconeVectorStore

        # A new namespace in an index for this dimension, which must exist; the key is `PINECONE_API_KEY`.
        index, namespace = f"oprag-{embeddings.dimension}", f"oprag-{uuid4().hex}"
        pinecone = PineconeVectorStore(index_name=index, embedding=embeddings, namespace=namespace)
        opened.callback(pinecone.delete, delete_all=True)
        return pinecone
    from langchain_core.vectorstores import InMemoryVectorStore

    return InMemoryVectorStore(embeddings)


def _await_pinecone(store: Any, count: int) -> None:
    """Wait until added vectors can be found, which Pinecone does with a delay."""
    name = store._namespace  # noqa: SLF001
    for _ in range(_PINECONE_SECONDS):
        if store.index.describe_index_stats()["namespaces"].get(name, {}).get("vector_count", 0) >= count:
            return
        time.sleep(1)
    raise ExperimentError(f"Pinecone has not found all chunks in {name}", name)
