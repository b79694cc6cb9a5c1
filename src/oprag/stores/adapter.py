"""The interface to vector stores, and the adapter of each store, found by the name of its class.

A store without an adapter works as well: vectors of chunks are then made by the embedder and kept in the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

from oprag.chunk import Chunk, counted
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.sources import source_name

__all__ = ["StoreAdapter", "StoredVector", "adapter_of", "chunks_with", "has_own_adapter", "parts", "register_store"]

T = TypeVar("T")

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class StoredVector(NamedTuple):
    """A vector as a store keeps it.

    Attributes:
        vector: The numbers, of shape (dimension,).
        text: The text that it belongs to, where the store returns it; a vector of another text is not used.
    """

    vector: Any
    text: str | None = None


@dataclass(frozen=True)
class StoreAdapter(ABC):
    """Everything that is done with a vector store beyond searching it; a subclass for each kind of store.

    Attributes:
        store: LangChain's vector store, LlamaIndex's vector store, or a `DocumentIndex`.
        search: Keywords of the search, among them a namespace, a tenant or a shard.
        nodes: LlamaIndex: the ids of nodes by the numbers of their vectors, for stores that number them.
        docstore: LlamaIndex: the nodes themselves, for stores that keep no texts.
        by_vector: LangChain: the store's method that finds by a vector what its search finds by words, with the same
            scores; its async twin has an "a" before the name. None where there is none.
        by_vector_keywords: What that method needs beside the vector and the keywords of the search.
        in_insertion_order: Whether `chunks` lists them in the sequence in which the store received them.

    Example:
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> class YourStore(InMemoryVectorStore):
        ...     pass
        >>> class YourAdapter(StoreAdapter):
        ...     def vectors(self, keys):
        ...         rows = (self.store.store[key] for key in keys if key in self.store.store)
        ...         return {row["id"]: StoredVector(row["vector"], row["text"]) for row in rows}
        >>> register_store(YourStore, YourAdapter)
    """

    store: Any
    search: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    docstore: Any = None

    by_vector: ClassVar[str | None] = None
    by_vector_keywords: ClassVar[Mapping[str, Any]] = {}
    in_insertion_order: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name of the store's class, for messages."""
        return type(self.store).__name__

    @property
    def dense(self) -> bool:
        """Whether this search compares vectors only; a hybrid search needs the words of the question."""
        return True

    def key(self, chunk: Chunk) -> str | None:
        """The key of a chunk that was found, its id by default; None where it has none.

        Args:
            chunk: The chunk.
        """
        return chunk.id

    @abstractmethod
    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of chunks that were found, in one request.

        Filters need not be applied again.

        Args:
            keys: Distinct keys, at least one.

        Returns:
            The vectors by key, without keys that the store does not know.
        """

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`, async; in a thread where the store has no async client."""
        # Code that is not async does not load it.
        from asyncio import to_thread

        return await to_thread(self.vectors, keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str] | None:  # noqa: ARG002
        """Put keys into the sequence in which the store received their chunks, in one request.

        Args:
            keys: Distinct keys.

        Returns:
            The keys that the store knows, one that several chunks have as often as these; None, as by default, where
            the store does not remember that sequence.
        """
        return None

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:  # noqa: ARG002
        """List the chunks that the search can find with its filter.

        Args:
            field: The metadata key that names the source (for LlamaIndex's documents, `ref_doc_id`); all chunks are
                listed without one.
            sources: Its values; a number or a path is given as text.

        Returns:
            The chunks, in the sequence in which the store received them where it is `in_insertion_order`; None, as by
            default, where the store cannot list them, or cannot apply the filter.
        """
        return None

    @property
    def total(self) -> int | None:
        """How many chunks `chunks` lists; None, as by default, where that is not known without reading them."""
        return None

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:  # noqa: ARG002
        """Add metadata to chunks, whose vectors, texts and other metadata stay as they are.

        All or nothing where the store has transactions; elsewhere an interrupted call has written some of them.

        Args:
            added: What to add, by the id of the chunk (`StoredChunk.id`, else its key).

        Raises:
            OptionError: The store cannot do it.
        """
        raise OptionError(f"oprag cannot write metadata into a {self.name}", self.store)

    @property
    def writable(self) -> bool:
        """Whether `write` is implemented."""
        return type(self).write is not StoreAdapter.write

    def refuse_unknown(self, added: Iterable[str], known: Collection[str]) -> None:
        """Stop a `write` that names chunks which the store does not have.

        Args:
            added: The ids that were given.
            known: The ids that the store has.

        Raises:
            OptionError: One of them is not known.
        """
        unknown = [key for key in added if key not in known]
        if unknown:
            others = f" and {counted(len(unknown) - 1, 'other')}" if len(unknown) > 1 else ""
            raise OptionError(
                f"{self.name} has no chunk with the id {describe(unknown[0])}{others}, so nothing was written; if it "
                "changed meanwhile, try again",
                unknown,
            )

    def docstore_texts(self, ids: Sequence[str]) -> dict[str, str]:
        """LlamaIndex: the text of each node that is in the docstore.

        Args:
            ids: The ids of the nodes.
        """
        from llama_index.core.schema import MetadataMode

        nodes = self.docstore.get_nodes(list(ids), raise_error=False)
        return {node.node_id: node.get_content(MetadataMode.NONE) for node in nodes}


def parts(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The values in parts that fit a request."""
    return (values[start : start + size] for start in range(0, len(values), size))


def chunks_with(
    chunks: Iterable[StoredChunk],
    field: str,
    sources: Collection[str],
    passes: Callable[[StoredChunk], bool] | None = None,
) -> Iterator[StoredChunk]:
    """Those of all chunks of a store that `StoreAdapter.chunks` lists.

    Args:
        chunks: All chunks.
        field: The metadata key that names the source.
        sources: Its values.
        passes: The filter of the search.
    """
    for chunk in chunks:
        wanted = not field or source_name(chunk.metadata.get(field)) in sources
        if wanted and (passes is None or passes(chunk)):
            yield chunk


def register_store(store_class: type, adapter: type[StoreAdapter]) -> None:
    """Set the adapter of a vector store of LangChain or LlamaIndex.

    Args:
        store_class: The class of the store; subclasses are included.
        adapter: A subclass of `StoreAdapter`.

    Raises:
        OptionError: `adapter` is not a subclass of `StoreAdapter`.
    """
    given: Any = adapter
    if not isinstance(given, type) or not issubclass(given, StoreAdapter):
        raise OptionError(f"adapter must be a StoreAdapter subclass, got {describe(given)}", given)
    _registered[_path(store_class)] = adapter


def adapter_of(
    store: Any, search: Mapping[str, Any] = _NOTHING, nodes: Mapping[str, str] = _NOTHING, docstore: Any = None
) -> StoreAdapter | None:
    """The adapter of a store that was searched, or None; the arguments are those of `StoreAdapter`."""
    for path in map(_path, type(store).__mro__):
        adapter = _registered.get(path)
        if adapter is None and path in _ADAPTERS:
            module, name = _ADAPTERS[path].split(".")
            adapter = getattr(import_module(f"oprag.stores.{module}"), name)
        if adapter is not None:
            return adapter(store, search, nodes, docstore)
    return None


def has_own_adapter(store: Any) -> bool:
    """Whether the adapter is that of this very class; a subclass may search in a way that the adapter does not know."""
    path = _path(type(store))
    return path in _registered or path in _ADAPTERS


def _path(store_class: type) -> str:
    return f"{store_class.__module__}.{store_class.__qualname__}"


# By name, so that no store is imported for this.
_ADAPTERS = {
    "oprag.DocumentIndex": "document_index.OwnIndex",
    "oprag.index.document_index.DocumentIndex": "document_index.OwnIndex",
    **dict.fromkeys(
        (
            "langchain_community.retrievers.bm25.BM25Retriever",
            "langchain_community.retrievers.knn.KNNRetriever",
            "langchain_community.retrievers.tfidf.TFIDFRetriever",
            "langchain_classic.retrievers.multi_vector.MultiVectorRetriever",
            "langchain_classic.retrievers.parent_document_retriever.ParentDocumentRetriever",
        ),
        "retrievers.ListedDocuments",
    ),
    "langchain_core.vectorstores.in_memory.InMemoryVectorStore": "in_memory.LangChainInMemory",
    "langchain_chroma.vectorstores.Chroma": "chroma.LangChainChroma",
    "langchain_community.vectorstores.faiss.FAISS": "faiss.LangChainFaiss",
    "langchain_community.vectorstores.lancedb.LanceDB": "lancedb.LangChainLanceDB",
    "langchain_pinecone.vectorstores.PineconeVectorStore": "pinecone.LangChainPinecone",
    "langchain_postgres.vectorstores.PGVector": "postgres.LangChainPGVector",
    "langchain_postgres.v2.vectorstores.PGVectorStore": "postgres.LangChainPGVectorStore",
    "langchain_qdrant.qdrant.QdrantVectorStore": "qdrant.LangChainQdrant",
    "llama_index.core.storage.docstore.keyval_docstore.KVDocumentStore": "docstore.LlamaIndexDocstore",
    "llama_index.core.storage.docstore.simple_docstore.SimpleDocumentStore": "docstore.LlamaIndexSimpleDocstore",
    "llama_index.core.vector_stores.simple.SimpleVectorStore": "in_memory.LlamaIndexSimple",
    "llama_index.vector_stores.chroma.base.ChromaVectorStore": "chroma.LlamaIndexChroma",
    "llama_index.vector_stores.faiss.base.FaissVectorStore": "faiss.LlamaIndexFaiss",
    "llama_index.vector_stores.faiss.map_store.FaissMapVectorStore": "faiss.LlamaIndexFaiss",
    "llama_index.vector_stores.postgres.base.PGVectorStore": "postgres.LlamaIndexPGVectorStore",
    "llama_index.vector_stores.qdrant.base.QdrantVectorStore": "qdrant.LlamaIndexQdrant",
}
_registered: dict[str, type[StoreAdapter]] = {}
