"""Vector stores of an experiment: LangChain stores by name or from a factory, searched with precomputed vectors."""

from __future__ import annotations

import re
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import describe
from oprag.positions.values import finite
from oprag.steps import run_sync

__all__ = ["STORE_NAMES", "FoundRow", "Store"]

FoundRow = tuple[int, float | None]
"""A row, which is the number of a chunk, and the score of the store; None if it has no scores."""

_COLLECTION = "oprag"  # a constant, since each collection is alone in its folder or in memory
_KEY = "oprag_id"  # metadata key of the document id, since some stores do not return the id itself
_BATCH = 1_000  # maximum number of chunks added in one call
# PostgreSQL rejects NUL, and surrogates cannot be encoded as UTF-8.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# Search Chroma's graph widely enough to find the exact nearest chunks of a book, for k up to `ef_search`.
_CHROMA_GRAPH = {"space": "cosine", "ef_construction": 400, "ef_search": 2_000}
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
        self,
        name: str,
        texts: Sequence[str],
        vectors: NDArray[np.float32],
        factory: Callable[[Any], Any] | None = None,
    ) -> None:
        unit = as_vectors(vectors, len(texts))
        self._name = name
        self._texts = [_UNSTORABLE.sub("\ufffd", text) for text in texts]
        self._dimension = unit.shape[1]
        self._embeddings = _PrecomputedVectors(self._dimension)
        # UUIDs, since some stores accept no other ids; random, so that chunks of another index are detected.
        first = uuid.uuid4().int >> 64 << 64
        keys = [str(uuid.UUID(int=first + row)) for row in range(len(texts))]
        self._rows = {key: row for row, key in enumerate(keys)}
        with ExitStack() as opened:
            self._store = _opened(name, factory, self._embeddings, opened)
            for start in range(0, len(texts), _BATCH):
                part = slice(start, start + _BATCH)
                self._put(keys[part], self._texts[part], unit[part])
            self.close = opened.pop_all().close

    def search(self, vector: NDArray[np.float32], k: int) -> list[FoundRow]:
        """Up to k rows with the highest cosine similarity to a vector of shape (dimension,), best first."""
        (unit,) = as_vectors(np.asarray(vector)[None], 1, self._dimension)
        limit = min(k, len(self._texts))
        found: dict[int, float | None] = {}
        for document, score in self._search(unit, limit):
            key = document.metadata.get(_KEY, document.id)
            row = self._rows.get(str(key))
            if row is None or document.page_content != self._texts[row]:
                raise ExperimentError(
                    f"the store {self._name!r} returned a text that this experiment did not add, with the id "
                    f"{describe(key)}; a store must be empty when it is opened, and return texts unchanged",
                    key,
                )
            if row in found:
                raise ExperimentError(f"the store {self._name!r} returned chunk {row} twice for one question", row)
            found[row] = finite(score)
        return list(found.items())[:limit]

    def _put(self, keys: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        from langchain_core.documents import Document

        documents = [Document(text, metadata={_KEY: key}) for key, text in zip(keys, texts, strict=True)]
        self._embeddings.known = dict(zip(texts, vectors, strict=True))
        self._store.add_documents(documents, ids=list(keys))
        self._embeddings.known = None

    def _search(self, unit: NDArray[np.float32], k: int) -> Iterator[tuple[Any, Any]]:
        from oprag.langchain.search import documents_and_scores, search, search_by_vector, takes_a_vector

        options = {"k": k, **_SEARCH_OPTIONS.get(self._name, {})}
        if takes_a_vector(self._store, "similarity", options):
            found = run_sync(search_by_vector(self._store, unit, "similarity", options))
        else:
            # The text is a placeholder: the embeddings return the vector of the question.
            self._embeddings.question = unit.tolist()
            found = run_sync(search(self._store, "question", "similarity", options))
        documents, scores = documents_and_scores(self._store, found)
        return zip(documents, scores or [None] * len(documents), strict=True)


class _PrecomputedVectors:
    """LangChain embeddings that return precomputed vectors; a virtual subclass, since LangChain is optional."""

    # Some stores read this attribute to name their collections.
    model = "oprag"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        # A store may embed any text to find out the dimension.
        self.question = [1.0, *([0.0] * (dimension - 1))]
        self.known: Mapping[str, NDArray[np.float32]] | None = None  # set while chunks are added

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The precomputed vectors of the texts."""
        known = self.known
        if known is None:
            return [self.question] * len(texts)
        if changed := [text for text in texts if text not in known]:
            raise ExperimentError(
                f"the store requests the vector of a text that was not added to it: {changed[0][:80]!r}; stores that "
                "modify texts are not supported",
                changed[0],
            )
        return [known[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:  # noqa: ARG002
        """The vector of the current question."""
        return self.question


def _opened(name: str, factory: Callable[[Any], Any] | None, embeddings: _PrecomputedVectors, opened: ExitStack) -> Any:
    """An empty store; what it needs to be closed is added to `opened`."""
    try:
        from langchain_core.embeddings import Embeddings
        from langchain_core.vectorstores import VectorStore
    except ImportError as error:
        raise MissingExtraError(f"the store {name!r}", "langchain") from error
    Embeddings.register(_PrecomputedVectors)
    try:
        store = factory(embeddings) if factory else _STORES[name][0](embeddings)
        if not isinstance(store, VectorStore) and hasattr(type(store), "__exit__"):
            store = opened.enter_context(store)
    except ImportError as error:
        if factory:
            raise
        raise MissingExtraError(f"the store {name!r}", name, command=f"pip install {_STORES[name][1]}") from error
    if not isinstance(store, VectorStore):
        raise ExperimentError(f"the store {name!r} must be a LangChain vector store, got {describe(store)}", store)
    return store


def _in_memory(embeddings: Any) -> Any:
    """LangChain's in-memory store, which always compares by cosine similarity."""
    from langchain_core.vectorstores import InMemoryVectorStore

    return InMemoryVectorStore(embeddings)


@contextmanager
def _chroma(embeddings: Any) -> Iterator[Any]:
    """A Chroma collection in a temporary folder; its graph search (HNSW) is approximate."""
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    # Not in memory: in-memory clients of a process share one database, and must have the same settings.
    with (
        tempfile.TemporaryDirectory(prefix="oprag-chroma-", ignore_cleanup_errors=True) as folder,
        closing(chromadb.PersistentClient(folder, Settings(anonymized_telemetry=False))) as client,
    ):
        yield Chroma(_COLLECTION, embeddings, client=client, collection_configuration={"hnsw": _CHROMA_GRAPH})


def _faiss(embeddings: Any) -> Any:
    """A flat FAISS index by inner product, which is the cosine similarity of unit vectors."""
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    index, strategy = faiss.IndexFlatIP(embeddings.dimension), DistanceStrategy.MAX_INNER_PRODUCT
    return FAISS(embeddings, index, InMemoryDocstore(), {}, distance_strategy=strategy)


@contextmanager
def _qdrant(embeddings: Any) -> Iterator[Any]:
    """An in-memory collection in Qdrant's local mode."""
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, VectorParams

    with closing(QdrantClient(":memory:")) as client:
        vectors = VectorParams(size=embeddings.dimension, distance=Distance.COSINE)
        client.create_collection(_COLLECTION, vectors_config=vectors)
        yield QdrantVectorStore(client, _COLLECTION, embeddings, validate_collection_config=False)


@contextmanager
def _lancedb(embeddings: Any) -> Iterator[Any]:
    """A LanceDB table in a temporary folder; without an index its search is exact."""
    import lancedb
    from langchain_community.vectorstores import LanceDB

    with tempfile.TemporaryDirectory(prefix="oprag-lancedb-", ignore_cleanup_errors=True) as folder:
        yield LanceDB(lancedb.connect(folder), embeddings, table_name=_COLLECTION, mode="append", distance="cosine")


# LanceDB's `distance` only affects relevance scores; a search needs the metric as an argument.
_SEARCH_OPTIONS = {"lancedb": {"metrics": "cosine"}}


@contextmanager
def _pinecone(embeddings: Any) -> Iterator[Any]:
    """A new namespace in the index `oprag-DIMENSION`, which must exist; the key is `PINECONE_API_KEY`."""
    from langchain_pinecone import PineconeVectorStore

    namespace = f"oprag-{uuid.uuid4().hex}"

    class Settled(PineconeVectorStore):  # type: ignore[misc, unused-ignore]
        """Waits until added vectors can be found, which Pinecone does with a delay."""

        count = 0

        def add_documents(self, documents: Any, **options: Any) -> Any:
            ids = super().add_documents(documents, **options)
            self.count += len(ids)
            latest = time.monotonic() + _PINECONE_SECONDS
            while (found := _pinecone_count(self.index, namespace)) < self.count:
                if time.monotonic() > latest:
                    raise ExperimentError(f"Pinecone found {found} of {self.count} chunks in {namespace}", namespace)
                time.sleep(_PINECONE_PAUSE)
            return ids

    store = Settled(index_name=f"oprag-{embeddings.dimension}", embedding=embeddings, namespace=namespace)
    try:
        yield store
    finally:
        if store.count:
            store.delete(delete_all=True)


def _pinecone_count(index: Any, namespace: str) -> int:
    namespaces = index.describe_index_stats()["namespaces"]
    return int(namespaces[namespace]["vector_count"]) if namespace in namespaces else 0


# The function that opens each store, and the packages that it needs.
_STORES: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "in_memory": (_in_memory, "langchain-core"),
    "chroma": (_chroma, "langchain-chroma"),
    "faiss": (_faiss, "langchain-community faiss-cpu"),
    "qdrant": (_qdrant, "langchain-qdrant"),
    "lancedb": (_lancedb, "langchain-community lancedb"),
    "pinecone": (_pinecone, "langchain-pinecone"),
}

STORE_NAMES = ("index", *_STORES)
"""The built-in stores; "index" is a `DocumentIndex`, whose search is exact."""
