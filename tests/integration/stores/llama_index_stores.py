"""LlamaIndex's stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore

from tests.integration.stores.place import Place

__all__ = ["KINDS", "Kind"]

DIMENSION = 256


@dataclass(frozen=True, eq=False)
class Kind:
    """A store and a distance.

    Attributes:
        name: What the tests call it.
        make: Makes an index over one, of nodes.
        filters: Whether it can filter; one that cannot has a tenant for itself.
        mmr: Whether it knows that search.
        alone: Whether it is the one of its stores that stands for all, where a distance makes no difference.
    """

    name: str
    make: Callable[[list[TextNode], BaseEmbedding, Place], VectorStoreIndex]
    filters: bool = True
    mmr: bool = False
    alone: bool = False

    def __str__(self) -> str:
        return self.name


def _index(store: Any, nodes: list[TextNode], model: BaseEmbedding) -> VectorStoreIndex:
    return VectorStoreIndex(nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=model)


def simple(nodes: list[TextNode], model: BaseEmbedding, place: Place) -> VectorStoreIndex:
    return _index(SimpleVectorStore(), nodes, model)


def chroma(nodes: list[TextNode], model: BaseEmbedding, place: Place, *, space: str) -> VectorStoreIndex:
    import chromadb
    from chromadb.config import Settings
    from llama_index.vector_stores.chroma import ChromaVectorStore

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    collection = client.create_collection(
        f"llama_{place.name}",
        # Wide enough to find what is nearest, and not most of it.
        configuration={"hnsw": {"space": space, "ef_search": 1_000, "ef_construction": 400}},
    )
    return _index(ChromaVectorStore(chroma_collection=collection), nodes, model)


def faiss(nodes: list[TextNode], model: BaseEmbedding, place: Place, *, kind: str) -> VectorStoreIndex:
    import faiss
    from llama_index.vector_stores.faiss import FaissVectorStore

    return _index(FaissVectorStore(faiss_index=getattr(faiss, kind)(DIMENSION)), nodes, model)


def faiss_map(nodes: list[TextNode], model: BaseEmbedding, place: Place) -> VectorStoreIndex:
    import faiss
    from llama_index.vector_stores.faiss import FaissMapVectorStore

    flat = faiss.IndexIDMap2(faiss.IndexFlatL2(DIMENSION))
    return _index(FaissMapVectorStore(faiss_index=flat), nodes, model)


def qdrant(nodes: list[TextNode], model: BaseEmbedding, place: Place) -> VectorStoreIndex:
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import AsyncQdrantClient, QdrantClient

    client, aclient = QdrantClient(":memory:"), AsyncQdrantClient(":memory:")
    place.closing.callback(client.close)
    place.closing.callback(lambda: asyncio.run(aclient.close()))
    store = QdrantVectorStore(place.name, client=client, aclient=aclient)
    # In memory, what the one client has written the other does not see.
    asyncio.run(QdrantVectorStore(place.name, aclient=aclient).async_add([_embedded(node, model) for node in nodes]))
    return _index(store, nodes, model)


def _embedded(node: TextNode, model: BaseEmbedding) -> TextNode:
    return node.model_copy(update={"embedding": model.get_text_embedding(node.text)})


def postgres(nodes: list[TextNode], model: BaseEmbedding, place: Place, **options: Any) -> VectorStoreIndex:
    from llama_index.vector_stores.postgres import PGVectorStore
    from sqlalchemy.pool import NullPool

    store = PGVectorStore.from_params(
        connection_string=place.postgres("psycopg2"),
        async_connection_string=place.postgres("asyncpg"),
        table_name=place.name,
        embed_dim=DIMENSION,
        # Each test has an event loop of its own, and a connection belongs to one.
        create_engine_kwargs={"poolclass": NullPool},
        **options,
    )
    place.closing.callback(lambda: asyncio.run(store.close()))
    return _index(store, nodes, model)


KINDS = [
    Kind("simple", simple, mmr=True, alone=True),
    Kind("chroma_l2", partial(chroma, space="l2"), mmr=True, alone=True),
    Kind("chroma_cosine", partial(chroma, space="cosine"), mmr=True),
    Kind("faiss_l2", partial(faiss, kind="IndexFlatL2"), filters=False, alone=True),
    Kind("faiss_ip", partial(faiss, kind="IndexFlatIP"), filters=False),
    Kind("faiss_map", faiss_map, filters=False),
    Kind("qdrant", qdrant, mmr=True, alone=True),
    Kind("postgres", postgres, mmr=True, alone=True),
    Kind("postgres_jsonb", partial(postgres, use_jsonb=True)),
    Kind("postgres_halfvec", partial(postgres, use_halfvec=True)),
]
