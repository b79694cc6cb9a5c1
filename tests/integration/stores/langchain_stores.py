"""LangChain's stores, with each distance that they have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from tests.integration.pinecone_stub import API_KEY
from tests.integration.stores.place import Place

__all__ = ["KINDS", "Kind"]

Metadata = dict[str, Any]
BOTH = ("sync", "async")
DIMENSION = 256


@dataclass(frozen=True, eq=False)
class Kind:
    """A store and a distance.

    Attributes:
        name: What the tests call it.
        make: Makes one of documents with ids.
        only: The filter that lets a tenant's chunks through.
        search: What each search needs beside.
        ways: Whether it is asked sync, async or both.
        puts: What it can be given of metadata.
        gives: What it makes of metadata that it was given.
        alone: Whether it is the one of its stores that stands for all, where a distance makes no difference.
    """

    name: str
    make: Callable[[list[Document], Embeddings, Place], Any]
    only: Callable[[str], Any] = lambda tenant: {"tenant": tenant}
    search: Mapping[str, Any] = field(default_factory=dict)
    ways: tuple[str, ...] = BOTH
    puts: Callable[[Metadata], Metadata] = dict
    gives: Callable[[Metadata], Metadata] = dict
    alone: bool = False

    def __str__(self) -> str:
        return self.name


def _ids(documents: list[Document]) -> list[str]:
    return [str(document.id) for document in documents]


def in_memory(documents: list[Document], embeddings: Embeddings, place: Place) -> Any:
    return InMemoryVectorStore.from_documents(documents, embeddings)


def chroma(documents: list[Document], embeddings: Embeddings, place: Place, *, space: str) -> Any:
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    return Chroma.from_documents(
        documents,
        embeddings,
        collection_name=place.name,
        client=chromadb.EphemeralClient(Settings(anonymized_telemetry=False)),
        # Wide enough to find what is nearest, and not most of it.
        collection_configuration={"hnsw": {"space": space, "ef_search": 1_000, "ef_construction": 400}},
    )


def faiss(documents: list[Document], embeddings: Embeddings, place: Place, *, strategy: str, **options: Any) -> Any:
    from langchain_community.vectorstores import FAISS

    return FAISS.from_documents(documents, embeddings, ids=_ids(documents), distance_strategy=strategy, **options)


def qdrant(
    documents: list[Document], embeddings: Embeddings, place: Place, *, distance: str, vector_name: str = ""
) -> Any:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client.models import Distance

    store = QdrantVectorStore.from_documents(
        documents,
        embeddings,
        ids=_ids(documents),
        location=":memory:",
        collection_name=place.name,
        distance=Distance(distance),
        vector_name=vector_name,
    )
    place.closing.callback(store.client.close)
    return store


def lancedb(documents: list[Document], embeddings: Embeddings, place: Place) -> Any:
    import lancedb
    from langchain_community.vectorstores import LanceDB

    connection = lancedb.connect(str(place.folder))
    store = LanceDB(connection=connection, embedding=embeddings, table_name=place.name, mode="append")
    store.add_documents(documents, ids=_ids(documents))
    return store


def pgvector(documents: list[Document], embeddings: Embeddings, place: Place, *, distance: str) -> Any:
    from langchain_postgres import PGVector
    from langchain_postgres.vectorstores import DistanceStrategy
    from sqlalchemy import create_engine

    engine = create_engine(place.postgres("psycopg"))
    place.closing.callback(engine.dispose)
    store = PGVector(
        embeddings,
        connection=engine,
        collection_name=place.name,
        distance_strategy=DistanceStrategy(distance),
        create_extension=False,
    )
    store.add_documents(documents, ids=_ids(documents))
    return store


def async_pgvector(documents: list[Document], embeddings: Embeddings, place: Place) -> Any:
    from langchain_postgres import PGVector
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    # Each test has an event loop of its own, and a connection belongs to one.
    engine = create_async_engine(place.postgres("psycopg"), poolclass=NullPool)
    store = PGVector(embeddings, connection=engine, collection_name=place.name, async_mode=True, create_extension=False)
    asyncio.run(store.aadd_documents(documents, ids=_ids(documents)))
    return store


def pgvectorstore(
    documents: list[Document], embeddings: Embeddings, place: Place, *, distance: str, driver: str, **columns: str
) -> Any:
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy

    engine = PGEngine.from_connection_string(place.postgres(driver))
    place.closing.callback(lambda: asyncio.run(engine.close()))
    engine.init_vectorstore_table(
        place.name, DIMENSION, metadata_columns=[Column(name, kind) for name, kind in columns.items()]
    )
    store = PGVectorStore.create_sync(
        engine,
        embeddings,
        place.name,
        metadata_columns=list(columns),
        distance_strategy=DistanceStrategy[distance],
    )
    store.add_documents(documents, ids=_ids(documents))
    return store


def pinecone(documents: list[Document], embeddings: Embeddings, place: Place) -> Any:
    from langchain_pinecone import PineconeVectorStore

    store = PineconeVectorStore(
        embedding=embeddings, host=place.pinecone(), pinecone_api_key=API_KEY, namespace=place.name
    )
    store.add_documents(documents, ids=_ids(documents))
    return store


def _tenant_of_document(tenant: str) -> Any:
    return lambda document: document.metadata["tenant"] == tenant


def _tenant_of_payload(tenant: str) -> Any:
    from qdrant_client import models

    match = models.MatchValue(value=tenant)
    return models.Filter(must=[models.FieldCondition(key="metadata.tenant", match=match)])


def _tenant_of_struct(tenant: str) -> Any:
    return f"metadata.tenant = '{tenant}'"


def without_none(metadata: Metadata) -> Metadata:
    return {key: value for key, value in metadata.items() if value is not None}


def with_floats(metadata: Metadata) -> Metadata:
    return {key: float(value) if type(value) is int else value for key, value in metadata.items()}


# FAISS filters what it found, so it has to find enough; LanceDB can filter before.
_ENOUGH = {"fetch_k": 1_000}
_BEFORE = {"prefilter": True}

KINDS = [
    Kind("in_memory", in_memory, only=_tenant_of_document, alone=True),
    *(
        Kind(f"chroma_{space}", partial(chroma, space=space), gives=without_none, alone=space == "l2")
        for space in ("l2", "cosine", "ip")
    ),
    Kind("faiss_l2", partial(faiss, strategy="EUCLIDEAN_DISTANCE"), search=_ENOUGH, alone=True),
    Kind("faiss_ip", partial(faiss, strategy="MAX_INNER_PRODUCT"), search=_ENOUGH),
    Kind("faiss_cosine", partial(faiss, strategy="EUCLIDEAN_DISTANCE", normalize_L2=True), search=_ENOUGH),
    *(
        Kind(
            f"qdrant_{distance.lower()}",
            partial(qdrant, distance=distance),
            only=_tenant_of_payload,
            alone=distance == "Cosine",
        )
        for distance in ("Cosine", "Dot", "Euclid")
    ),
    Kind("qdrant_named", partial(qdrant, distance="Cosine", vector_name="dense"), only=_tenant_of_payload),
    Kind("lancedb_l2", lancedb, only=_tenant_of_struct, search=_BEFORE, alone=True),
    Kind("lancedb_cosine", lancedb, only=_tenant_of_struct, search={**_BEFORE, "metrics": "cosine"}),
    *(
        Kind(f"pgvector_{distance}", partial(pgvector, distance=distance), ways=("sync",), alone=distance == "cosine")
        for distance in ("cosine", "l2", "inner")
    ),
    Kind("pgvector_async", async_pgvector, ways=("async",)),
    Kind(
        "pgvectorstore_cosine",
        partial(pgvectorstore, distance="COSINE_DISTANCE", driver="psycopg", page="INTEGER", tenant="TEXT"),
    ),
    Kind("pgvectorstore_l2", partial(pgvectorstore, distance="EUCLIDEAN", driver="psycopg"), alone=True),
    Kind("pgvectorstore_ip", partial(pgvectorstore, distance="INNER_PRODUCT", driver="asyncpg")),
    # Against a stand-in: what it does to metadata is what Pinecone's documentation says.
    Kind("pinecone", pinecone, puts=without_none, gives=with_floats, alone=True),
]
