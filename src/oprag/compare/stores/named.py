"""Stores by name: built-in LangChain stores that run on this machine, and custom stores."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.compare.providers.names import is_instance
from oprag.compare.stores.store import EmptyStore, Store
from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import describe

__all__ = ["STORE_NAMES", "open_store"]

_LANGCHAIN = ("langchain_core", "VectorStore")
_LLAMA_INDEX = ("llama_index", "BasePydanticVectorStore")
# A constant, since each collection is alone in its folder or in memory.
_COLLECTION = "oprag"
# Search Chroma's graph widely enough to find the exact nearest chunks of a book, for k up to `ef_search`.
_CHROMA_GRAPH = {"space": "cosine", "ef_construction": 400, "ef_search": 2_000}


def open_store(given: Any, name: str, texts: Sequence[str], vectors: NDArray[np.float32]) -> Store:
    """Open a store that compares by cosine similarity, by name or with a custom function, and fill it with chunks."""
    if isinstance(given, str) and given in _STORES:
        return _langchain_store(name, partial(_open_named, given), texts, vectors)
    if _takes_embeddings(given):
        return _langchain_store(name, lambda embeddings, _: _open_custom(name, given, embeddings), texts, vectors)
    empty = _open_custom(name, given)
    from oprag.compare.stores.llama_index_store import LlamaIndexStore

    return LlamaIndexStore(name, empty, texts, vectors)


def _langchain_store(
    name: str, open_empty: Callable[[Any, int], EmptyStore], texts: Sequence[str], vectors: NDArray[np.float32]
) -> Store:
    try:
        from oprag.compare.stores.langchain_store import LangChainStore
    except ImportError as error:
        raise MissingExtraError(f"The store {name!r}", "langchain") from error
    return LangChainStore(name, open_empty, texts, vectors)


def _open_custom(name: str, function: Callable[..., Any], *embeddings: Any) -> EmptyStore:
    """Open a custom store: of LangChain if its function takes embeddings, else of LlamaIndex; also context managers."""
    framework, kind = ("LangChain", _LANGCHAIN) if embeddings else ("LlamaIndex", _LLAMA_INDEX)
    opened = ExitStack()
    store = function(*embeddings)
    if not is_instance(store, *kind) and hasattr(type(store), "__exit__"):
        store = opened.enter_context(store)
    if not is_instance(store, *kind):
        opened.close()
        raise ExperimentError(
            f"{name} takes {'' if embeddings else 'no '}Embeddings, so it must return a {framework} vector store, got "
            f"{describe(store)}",
            store,
        )
    return EmptyStore(store, opened.close)


def _takes_embeddings(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except (TypeError, ValueError):
        return False
    return True


def _open_named(name: str, embeddings: Any, dimension: int) -> EmptyStore:
    open_empty, packages = _STORES[name]
    try:
        return open_empty(embeddings, dimension)
    except ImportError as error:
        raise MissingExtraError(f"the store {name!r}", name, command=f"pip install {packages}") from error


def _in_memory(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """LangChain's in-memory store, which always compares by cosine similarity."""
    from langchain_core.vectorstores import InMemoryVectorStore

    return EmptyStore(InMemoryVectorStore(embeddings))


def _chroma(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """A Chroma collection in a temporary folder; its graph search (HNSW) is approximate."""
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    # Not in memory: in-memory clients of a process share one database, and must have the same settings.
    folder = tempfile.TemporaryDirectory(prefix="oprag-chroma-", ignore_cleanup_errors=True)
    client = chromadb.PersistentClient(folder.name, Settings(anonymized_telemetry=False))

    def close() -> None:
        client.close()
        folder.cleanup()

    store = Chroma(_COLLECTION, embeddings, client=client, collection_configuration={"hnsw": _CHROMA_GRAPH})
    return EmptyStore(store, close, batch_size=min(1_000, client.get_max_batch_size()))


def _faiss(embeddings: Any, dimension: int) -> EmptyStore:
    """A flat FAISS index by inner product, which is the cosine similarity of unit vectors."""
    import faiss
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    store = FAISS(
        embeddings,
        faiss.IndexFlatIP(dimension),
        InMemoryDocstore(),
        {},
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
    )
    return EmptyStore(store)


def _qdrant(embeddings: Any, dimension: int) -> EmptyStore:
    """An in-memory collection in Qdrant's local mode."""
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, VectorParams

    client = QdrantClient(":memory:")
    client.create_collection(_COLLECTION, vectors_config=VectorParams(size=dimension, distance=Distance.COSINE))
    store = QdrantVectorStore(client, _COLLECTION, embeddings, validate_collection_config=False)
    return EmptyStore(store, client.close)


def _lancedb(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """A LanceDB table in a temporary folder; without an index its search is exact."""
    import lancedb
    from langchain_community.vectorstores import LanceDB

    folder = tempfile.TemporaryDirectory(prefix="oprag-lancedb-", ignore_cleanup_errors=True)
    store = LanceDB(lancedb.connect(folder.name), embeddings, table_name=_COLLECTION, mode="append", distance="cosine")
    # `distance` only affects relevance scores; a search needs the metric as an argument.
    return EmptyStore(store, folder.cleanup, search={"metrics": "cosine"})


# The function that opens each store, and the packages that it needs.
_STORES: dict[str, tuple[Callable[[Any, int], EmptyStore], str]] = {
    "in_memory": (_in_memory, "langchain-core"),
    "chroma": (_chroma, "langchain-chroma"),
    "faiss": (_faiss, "langchain-community faiss-cpu"),
    "qdrant": (_qdrant, "langchain-qdrant"),
    "lancedb": (_lancedb, "langchain-community lancedb"),
}

STORE_NAMES = ("index", *_STORES)
"""The built-in stores; "index" is a `DocumentIndex`, whose search is exact."""
