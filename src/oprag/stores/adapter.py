"""The adapter interface to vector stores, and the lookup of a store's adapter by class name.

A store without an adapter works too: its chunks are then embedded again, and the vectors are cached.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from oprag._internal.masking import describe
from oprag.chunk import Chunk
from oprag.errors import OptionError
from oprag.positions.fields import DOCUMENT_ID_FIELDS
from oprag.positions.source_names import numbers_named, source_name

__all__ = [
    "StoreAdapter",
    "StoredChunk",
    "StoredVector",
    "adapter_of",
    "as_texts",
    "chunks_with",
    "has_own_adapter",
    "is_named",
    "parts",
    "refuse_unknown",
    "register_store",
    "restrictions_of",
    "source_in",
]

_NOTHING: Mapping[str, Any] = MappingProxyType({})
# Keyword arguments of the frameworks' searches that do not restrict which chunks a search can find.
_SETTINGS = frozenset(
    ["fetch_k", "k", "lambda_mult", "mmr_prefetch_factor", "mmr_prefetch_k", "mmr_threshold", "score_threshold"]
)


class StoredChunk(NamedTuple):
    """A chunk as it is stored.

    Attributes:
        key: Its key in the store; `StoreAdapter.key` returns the same key for a retrieved chunk.
        text: Its text.
        metadata: Its metadata.
        id: The id for updating it in the store; empty if it is the same as the key.
        node: The node (LlamaIndex only).
    """

    key: str
    text: str
    metadata: Mapping[str, Any] = MappingProxyType({})
    id: str = ""
    node: Any = None

    def as_chunk(self, rank: int) -> Chunk:
        """Convert to a `Chunk` whose id is the one for updating it in the store.

        Args:
            rank: The rank of the chunk.
        """
        return Chunk(self.text, rank, metadata=self.metadata, id=self.id or self.key)


class StoredVector(NamedTuple):
    """A vector read from a store.

    Attributes:
        vector: The vector, of shape (dimension,).
        text: The text that was embedded, or None if the store does not return it; a vector of another text is ignored.
    """

    vector: Any
    text: str | None = None


@dataclass(frozen=True)
class StoreAdapter:
    """All operations on a vector store other than search; subclass it for each kind of store.

    Attributes:
        store: A LangChain vector store, a LlamaIndex vector store, or a `DocumentIndex`.
        search: Keyword arguments of the search, such as a filter, namespace or tenant.
        nodes: LlamaIndex only: maps vector numbers to node ids, for stores that number their vectors.
        docstore: LlamaIndex only: the docstore with the nodes, for stores that do not store texts.
        by_vector: LangChain only: name of the store's method that returns the same documents and scores for a vector as
            its search for a question, if it has one; the async version has the prefix "a".
        by_vector_keywords: Additional keyword arguments for that method.
        in_insertion_order: Whether `chunks` returns chunks in the order in which they were added to the store.
        filters: The keyword arguments of the search that `chunks` applies; with others, nothing is listed. "doc_ids",
            the ids of LlamaIndex's documents, is applied to what it returns.
        deletable: Whether chunks can be deleted from the store by their ids.
        settings: Other keyword arguments that do not restrict the search, in addition to those of the frameworks.
    """

    store: Any
    search: Mapping[str, Any] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    docstore: Any = None

    by_vector: ClassVar[str | None] = None
    by_vector_keywords: ClassVar[Mapping[str, Any]] = {}
    in_insertion_order: ClassVar[bool] = False
    deletable: ClassVar[bool] = True
    filters: ClassVar[Collection[str]] = ("filter",)
    settings: ClassVar[Collection[str]] = ()

    @property
    def name(self) -> str:
        """The name of the store's class, for messages."""
        return type(self.store).__name__

    @property
    def dense(self) -> bool:
        """Whether the search uses vectors only; a hybrid search also needs the text of the question."""
        return True

    @property
    def restrictions(self) -> frozenset[str]:
        """The names of all keyword arguments that may restrict the search: all but the known settings."""
        return restrictions_of(self.search).difference(self.settings)

    def key(self, chunk: Chunk) -> str | None:
        """Return the key of a retrieved chunk, by default its id; None if it has none.

        Args:
            chunk: A retrieved chunk.
        """
        return chunk.id

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:  # noqa: ARG002
        """Read the vectors of retrieved chunks by key, in one request; none (the default) if the store has no vectors.

        Args:
            keys: Distinct keys, at least one; omit those that are missing in the store. Filters need not be applied.
        """
        return {}

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Async version of `vectors`; by default runs it in a thread."""
        # Imported here so that synchronous programs need not load asyncio.
        from asyncio import to_thread

        return await to_thread(self.vectors, keys)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str] | None:  # noqa: ARG002
        """Sort keys by insertion order, in one request; None (the default) if the store does not remember it.

        Args:
            keys: Distinct keys. Those in the store are returned, each repeated for every chunk with that key.
        """
        return None

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:  # noqa: ARG002
        """List the chunks that match the filter of the search, in insertion order if `in_insertion_order` is True.

        None (the default) if the store cannot list chunks, or cannot apply the filter.

        Args:
            field: The metadata key that contains the source name (`ref_doc_id` for LlamaIndex's documents); empty lists
                the chunks of all sources.
            sources: Names of the sources to list; numbers and paths as strings.
        """
        return None

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:  # noqa: ARG002
        """Add metadata to chunks without changing their vectors, texts and other metadata.

        Atomic if the store has transactions; otherwise an interrupted call may have written some of the chunks.

        Args:
            added: The metadata to add, by id of the chunk (`StoredChunk.id`, or its key if that is empty).

        Raises:
            OptionError: The store does not support it.
        """
        raise OptionError(
            f"oprag cannot write metadata to a {self.name}; pass read_source= instead, or stamp positions before you "
            "add chunks",
            self.store,
        )

    @property
    def writable(self) -> bool:
        """Whether `write` is implemented."""
        return type(self).write is not StoreAdapter.write


def refuse_unknown(adapter: StoreAdapter, added: Iterable[str], known: Collection[str]) -> None:
    """Raise an error if ids that were passed to `StoreAdapter.write` are missing in the store."""
    unknown = [key for key in added if key not in known]
    if unknown:
        raise OptionError(
            f"{adapter.name} has no chunk with the id {describe(unknown[0])}, so nothing was written; if the store "
            "changed in the meantime, try again",
            unknown,
        )


def as_texts(sources: Iterable[str]) -> list[str]:
    """Return source names as a database writes them as text: a name may be stored as an integer or another number."""
    names = list(sources)
    return [*names, *(repr(float(number)) for number in numbers_named(names))]


def parts(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Split values into batches of at most `size`."""
    return (values[start : start + size] for start in range(0, len(values), size))


def is_named(value: Any, sources: Collection[str]) -> bool:
    """Return whether the value of a metadata key names one of these sources."""
    return value in sources if type(value) is str else source_name(value) in sources


def source_in(chunk: StoredChunk, field: str) -> str | None:
    """Return the source name of a chunk; that of its document for a node: stores overwrite `DOCUMENT_ID_FIELDS`."""
    by_document = chunk.node is not None and field in DOCUMENT_ID_FIELDS
    return source_name(chunk.node.ref_doc_id if by_document else chunk.metadata.get(field))


def chunks_with(chunks: Iterable[StoredChunk], field: str, sources: Collection[str]) -> Iterator[StoredChunk]:
    """Yield the chunks of some sources; all chunks if `field` is empty."""
    return (chunk for chunk in chunks if not field or source_in(chunk, field) in sources)


def restrictions_of(search: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the keyword arguments of a search that may restrict it; None values do not restrict it."""
    return frozenset(name for name, value in search.items() if value is not None and name not in _SETTINGS)


def register_store(store_class: type, adapter: type[StoreAdapter]) -> None:
    """Register the adapter for a LangChain or LlamaIndex vector store.

    Args:
        store_class: The class of the store; the adapter is also used for its subclasses.
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
    """Return the adapter for a store, or None; takes the same arguments as `StoreAdapter`."""
    for path in map(_path, type(store).__mro__):
        adapter = _registered.get(path)
        if adapter is None and path in _ADAPTERS:
            module, name = _ADAPTERS[path].split(".")
            adapter = getattr(import_module(f"oprag.stores.{module}"), name)
        if adapter is not None:
            return adapter(store, search, nodes, docstore)
    return None


def has_own_adapter(store: Any) -> bool:
    """Return whether the store's exact class has an adapter; a subclass may search differently from its base class."""
    path = _path(type(store))
    return path in _registered or path in _ADAPTERS


def _path(store_class: type) -> str:
    return f"{store_class.__module__}.{store_class.__qualname__}"


# By name, so that no store has to be imported.
_ADAPTERS = {
    "oprag.DocumentIndex": "in_memory.OwnIndex",
    "oprag.index.document_index.DocumentIndex": "in_memory.OwnIndex",
    "langchain_community.retrievers.bm25.BM25Retriever": "retrievers.ListedDocuments",
    "langchain_community.retrievers.tfidf.TFIDFRetriever": "retrievers.ListedDocuments",
    "langchain_classic.retrievers.multi_vector.MultiVectorRetriever": "retrievers.ListedDocuments",
    "langchain_classic.retrievers.parent_document_retriever.ParentDocumentRetriever": "retrievers.ListedDocuments",
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
