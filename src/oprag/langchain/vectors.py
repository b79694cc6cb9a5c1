"""The sources of vectors and neighbors: those given as options, or the searched store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from langchain_core.documents import Document
from pydantic import SkipValidation, field_validator

from oprag.adapters.fields import SourceFields, component
from oprag.chunk import Chunk, changed
from oprag.embedding.embedder import model_of
from oprag.errors import OptionError
from oprag.langchain.documents import chunks_of
from oprag.langchain.embeddings import as_embedder
from oprag.options import ContextOptions, requires
from oprag.pipeline.neighbors import NeighborReader
from oprag.stores.adapter import StoreAdapter, StoredChunk, adapter_of
from oprag.stores.listing import can_list
from oprag.stores.stored_neighbors import StoredNeighbors

if TYPE_CHECKING:
    from oprag.stores.vectors import VectorSources

__all__ = ["EmbeddingsFields", "check_sources", "chunk_of_stored", "neighbor_reader", "store_reader", "vector_sources"]


@runtime_checkable
class IndexWithNeighbors(Protocol):
    """Such as `oprag.DocumentIndex`."""

    def neighbors(self, chunk: Chunk, number: int) -> Iterable[Chunk]:
        """Return the chunks around one."""


class EmbeddingsFields(SourceFields):
    """The options for embeddings, the vector cache and neighbors, as pydantic fields."""

    embeddings: SkipValidation[Any] = component(
        "LangChain embeddings, or an oprag.Embedder. By default, thresholds use those of the searched store or index; "
        'reciprocal and rank_by="cosine" require this option.'
    )

    @field_validator("embeddings", mode="before")
    @classmethod
    def _check_embeddings(cls, value: Any) -> Any:
        if value is not None:
            as_embedder(value)
        return value

    read_neighbors: Callable[..., Any] | IndexWithNeighbors | None = component(
        "A function of a document and a number, or an oprag.DocumentIndex; by default the searched store or index."
    )


def check_sources(
    options: ContextOptions, sources: Callable[[], VectorSources], neighbors: Callable[[], NeighborReader | None]
) -> None:
    """Reject thresholds without a source of vectors, and `neighbors` without a reader, before the first question."""
    if options.needs_vectors:
        sources().check(options)
    if options.reads_around and neighbors() is None:
        raise OptionError(
            f"{options.reads_around} requires read_neighbors; pass read_neighbors=..., a function that returns "
            "the documents around one, or a DocumentIndex. Only a store whose chunks oprag can list with the filter of "
            "the search needs none",
            options.neighbors,
        )


def vector_sources(
    fields: EmbeddingsFields, store: Any = None, search: Mapping[str, Any] | None = None
) -> VectorSources:
    """The sources of vectors for documents."""
    # Imports NumPy.
    from oprag.stores.vectors import VectorSources

    given, own = fields.embeddings, getattr(store, "embeddings", None) or getattr(store, "embedder", None)
    used = own if given is None else given
    embedder = None if used is None else as_embedder(used)
    same = given is None or (own is not None and model_of(as_embedder(given)) is model_of(as_embedder(own)))
    adapter = adapter_of(store, search or {}) if store is not None and same else None
    return VectorSources(embedder, fields.vector_cache, adapter)


def neighbor_reader(source: Any, filter: Callable[[], Any]) -> NeighborReader | None:
    """A function that reads the neighbors of a chunk; None without a source."""
    if source is None:
        return None
    if isinstance(source, IndexWithNeighbors):
        return lambda chunk, number: [
            changed(near, origin=Document(near.text, id=near.id, metadata=dict(near.metadata)))
            for near in source.neighbors(chunk, number)
        ]

    needs_filter = requires(source, "filter")

    def read(chunk: Chunk, number: int) -> list[Chunk]:
        documents = source(chunk.origin, number, **({"filter": filter()} if needs_filter else {}))
        return chunks_of(documents)

    return read


def store_reader(store: StoreAdapter, options: ContextOptions, *, store_order: bool) -> NeighborReader | None:
    """A function that reads the neighbors of a chunk from the searched store; None if it cannot list its chunks."""
    return StoredNeighbors(store, options, chunk_of_stored, store_order) if can_list(store) else None


def chunk_of_stored(stored: StoredChunk, rank: int) -> Chunk:
    """Convert a stored chunk, with a document as a search would return it."""
    # In stores whose keys are the texts, documents need not have ids.
    key = stored.id or (None if stored.key == stored.text else stored.key)
    document = Document(stored.text, id=key, metadata=dict(stored.metadata))
    return Chunk(stored.text, rank, metadata=document.metadata, id=key, origin=document)
