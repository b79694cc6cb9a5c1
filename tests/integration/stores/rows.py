"""What LangChain's stores have, read without us."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Row", "rows_of"]


class Row(NamedTuple):
    """A chunk as the store has it, read without us."""

    key: str
    text: str
    vector: str
    metadata: dict[str, Any]


def rows_of(store: Any, server: Callable[[str], str]) -> list[Row]:
    """All that the store has, in its sequence; PostgreSQL has none.

    Args:
        store: The store.
        server: The address of PostgreSQL for a driver.
    """
    rows = _READERS[type(store).__name__](store, server)
    return [Row(str(key), text, _hash(vector), dict(metadata)) for key, text, vector, metadata in rows]


def _hash(vector: Any) -> str:
    content = vector.encode() if isinstance(vector, str) else np.asarray(vector).tobytes()
    return hashlib.sha256(content).hexdigest()


def _in_memory(store: Any, server: Any) -> Any:
    return [(row["id"], row["text"], row["vector"], row["metadata"]) for row in store.store.values()]


def _chroma(store: Any, server: Any) -> Any:
    found = store.get(include=["embeddings", "documents", "metadatas"])
    return zip(found["ids"], found["documents"], found["embeddings"], found["metadatas"], strict=True)


def _faiss(store: Any, server: Any) -> Any:
    vectors = store.index.reconstruct_n(0, store.index.ntotal)
    documents = [store.docstore.search(key) for key in store.index_to_docstore_id.values()]
    keys = store.index_to_docstore_id.values()
    return [
        (key, document.page_content, vector, document.metadata)
        for key, document, vector in zip(keys, documents, vectors, strict=True)
    ]


def _qdrant(store: Any, server: Any) -> Any:
    points, _ = store.client.scroll(store.collection_name, limit=10_000, with_payload=True, with_vectors=True)
    for point in points:
        assert point.payload.keys() == {"page_content", "metadata"}
        vector = next(iter(point.vector.values())) if isinstance(point.vector, dict) else point.vector
        yield point.id, point.payload["page_content"], vector, point.payload["metadata"]


def _pgvector(store: Any, server: Callable[[str], str]) -> Any:
    return _selected(
        server,
        f"""SELECT e.id, e.document, encode(vector_send(e.embedding), 'hex'), e.cmetadata::text
        FROM langchain_pg_embedding e JOIN langchain_pg_collection c ON e.collection_id = c.uuid
        WHERE c.name = '{store.collection_name}' ORDER BY e.id""",
        {},
    )


def _pgvectorstore(store: Any, server: Callable[[str], str]) -> Any:
    inner = store._PGVectorStore__vs
    columns = {name: f'"{name}"' for name in inner.metadata_columns}
    return _selected(
        server,
        f"""SELECT langchain_id, content, encode(vector_send(embedding), 'hex'), langchain_metadata::text
        {"".join(f", {column}" for column in columns.values())} FROM "{inner.table_name}" ORDER BY langchain_id""",
        columns,
    )


def _selected(server: Callable[[str], str], query: str, columns: Mapping[str, str]) -> Any:
    from sqlalchemy import create_engine, text

    engine = create_engine(server("psycopg"))
    with engine.begin() as connection:
        for key, content, vector, about, *values in connection.execute(text(query)):
            yield key, content, vector, {**json.loads(about), **dict(zip(columns, values, strict=True))}
    engine.dispose()


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "InMemoryVectorStore": _in_memory,
    "Chroma": _chroma,
    "FAISS": _faiss,
    "QdrantVectorStore": _qdrant,
    "PGVector": _pgvector,
    "PGVectorStore": _pgvectorstore,
}
