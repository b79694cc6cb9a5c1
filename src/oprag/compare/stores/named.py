"""Stores by name: the exact index, LangChain stores that run on this machine, and the user's own."""

from __future__ import annotations

import inspect
import tempfile
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from weakref import ref

from oprag.compare.providers.names import is_instance, load_function
from oprag.compare.stores.store import EmptyStore, ExactStore, Store
from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import describe

__all__ = ["STORE_NAMES", "open_store"]

# Chroma's graph is searched wide enough to find the nearest of a book, up to this many of them.
_CHROMA_GRAPH = {"space": "cosine", "ef_construction": 400, "ef_search": 2_000}
# LlamaIndex stores that were given as objects: each can be filled once.
_used: dict[int, ref[Any]] = {}


def open_store(given: Any, name: str, embedder_name: str) -> Store:
    """An empty store that compares by cosine: a named one, the user's own function, or an empty store of LlamaIndex."""
    if given == "index":
        return ExactStore()
    if is_instance(given, "llama_index", "BasePydanticVectorStore"):
        return _of_llama_index(name, given, ExitStack())
    if isinstance(given, str):
        if given in STORE_NAMES:
            return _of_langchain(name, given, embedder_name)
        given = load_function(given)
    if is_instance(given, "langchain_core", "VectorStore"):
        raise ExperimentError(
            f"a {type(given).__name__} embeds by itself; give a function of Embeddings that gives an empty one", given
        )
    if not callable(given):
        raise ExperimentError(f"a store must be a name or a function that gives one, got {describe(given)}", given)
    if not _takes_embeddings(given):
        opened = ExitStack()
        return _of_llama_index(name, _entered(given(), opened), opened)
    return _of_langchain(name, given, embedder_name)


def _of_langchain(name: str, given: str | Callable[[Any], Any], embedder: str) -> Store:
    try:
        from oprag.compare.stores.langchain_store import LangChainStore
    except ImportError as error:
        raise MissingExtraError(f"The store {name!r}", "langchain") from error
    open_empty = partial(_open_named, given) if isinstance(given, str) else partial(_open_own, name, given)
    return LangChainStore(name, open_empty, embedder)


def _open_own(name: str, function: Callable[[Any], Any], embeddings: Any, _dimension: int) -> EmptyStore:
    """A user's LangChain store, about which nothing is known."""
    opened = ExitStack()
    store = _entered(function(embeddings), opened)
    if not is_instance(store, "langchain_core", "VectorStore"):
        opened.close()
        raise ExperimentError(f"{name} must give a LangChain vector store, got {describe(store)}", store)
    numbered = is_instance(store, "langchain_qdrant", "QdrantVectorStore")
    return EmptyStore(store, opened.close, key=int if numbered else str, threads=False)


def _of_llama_index(name: str, store: Any, opened: ExitStack) -> Store:
    if not is_instance(store, "llama_index", "BasePydanticVectorStore"):
        opened.close()
        raise ExperimentError(
            f"{name} takes no Embeddings, so it must give a LlamaIndex vector store; got {describe(store)}", store
        )
    known = _used.get(id(store))
    if known is not None and known() is store:
        raise ExperimentError(
            f"the store {name!r} is in use already; give a function that gives an empty one each time", store
        )
    _used[id(store)] = ref(store)
    from oprag.compare.stores.llama_index_store import LlamaIndexStore

    return LlamaIndexStore(name, store, opened.close)


def _entered(given: Any, opened: ExitStack) -> Any:
    """A store, or the store of a context manager."""
    if is_instance(given, "langchain_core", "VectorStore") or not hasattr(type(given), "__exit__"):
        return given
    return opened.enter_context(given)


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
    """LangChain's own; it compares by cosine, and cannot do otherwise."""
    from langchain_core.vectorstores import InMemoryVectorStore

    return EmptyStore(InMemoryVectorStore(embeddings))


def _chroma(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """A collection in a temporary folder; its search by a graph is approximate."""
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    # Not in memory: all clients in the memory of a process share one database, and must have the same settings.
    folder = tempfile.TemporaryDirectory(prefix="oprag-chroma-", ignore_cleanup_errors=True)
    client = chromadb.PersistentClient(folder.name, Settings(anonymized_telemetry=False))

    def close() -> None:
        client.close()
        folder.cleanup()

    store = Chroma(_new_name(), embeddings, client=client, collection_configuration={"hnsw": _CHROMA_GRAPH})
    return EmptyStore(store, close, batch_size=min(1_000, client.get_max_batch_size()))


def _faiss(embeddings: Any, dimension: int) -> EmptyStore:
    """A flat index of inner products, which are cosines of the unit vectors that are put in."""
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
    """A collection in Qdrant's local mode, in memory."""
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, VectorParams

    client = QdrantClient(":memory:")
    name = _new_name()
    client.create_collection(name, vectors_config=VectorParams(size=dimension, distance=Distance.COSINE))
    store = QdrantVectorStore(client, name, embeddings, validate_collection_config=False)
    # Its ids are whole numbers or UUIDs. The local mode says nothing of threads.
    return EmptyStore(store, client.close, key=int, threads=False)


def _lancedb(embeddings: Any, dimension: int) -> EmptyStore:  # noqa: ARG001
    """A table in a temporary folder; without an index in it, its search is exact."""
    import lancedb
    from langchain_community.vectorstores import LanceDB

    folder = tempfile.TemporaryDirectory(prefix="oprag-lancedb-", ignore_cleanup_errors=True)
    store = LanceDB(lancedb.connect(folder.name), embeddings, table_name=_new_name(), mode="append", distance="cosine")
    # The distance of the store is that of its relevance scores alone; a search needs to be told.
    return EmptyStore(store, folder.cleanup, search={"metrics": "cosine"})


def _new_name() -> str:
    """A name that no other collection or table has."""
    return f"oprag_{uuid.uuid4().hex}"


# What opens each, and the packages that it needs.
_STORES: dict[str, tuple[Callable[[Any, int], EmptyStore], str]] = {
    "in_memory": (_in_memory, "langchain-core"),
    "chroma": (_chroma, "langchain-chroma"),
    "faiss": (_faiss, "langchain-community faiss-cpu"),
    "qdrant": (_qdrant, "langchain-qdrant"),
    "lancedb": (_lancedb, "langchain-community lancedb"),
}

STORE_NAMES = ("index", *_STORES)
"""The stores that need no function to be made."""
