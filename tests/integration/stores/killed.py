"""A program that is killed while it writes positions, and one that finishes; `test_killed_writes` starts them.

python -m tests.integration.stores.killed STORE PLACE fill     prints what is in the store, and is killed
python -m tests.integration.stores.killed STORE PLACE finish   prints what is there then, and after another call
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode

import oprag.stores.chroma
import oprag.stores.postgres
import oprag.stores.qdrant
from oprag import langchain, llama_index
from oprag.errors import PositionWarning
from oprag.stores.adapter import adapter_of
from tests.counting import CountingEmbeddings
from tests.integration.stores.checks import texts_of
from tests.integration.stores.known import NodeEmbeddings

SOURCE = "a.txt"
CHUNKS = 30
DIMENSION = 16
QUESTION = "Where does the river end?"
# So many chunks are written by a request, and so many requests are made before the end.
BATCH, REQUESTS = 7, 2
OURS = ("chunk_index", "chunk_numbering", "start_index", "end_index")


EMBEDDINGS = CountingEmbeddings(DIMENSION)
TEXTS = texts_of(1, CHUNKS)


# Opening a store that may be there.


def chroma(place: str) -> Any:
    from langchain_chroma import Chroma

    return Chroma("chunks", EMBEDDINGS, persist_directory=place)


def qdrant(place: str) -> Any:
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=place)
    if not client.collection_exists("chunks"):
        client.create_collection("chunks", models.VectorParams(size=DIMENSION, distance=models.Distance.DOT))
    return QdrantVectorStore(client, "chunks", EMBEDDINGS, distance=models.Distance.DOT)


def pgvector(place: str) -> Any:
    from langchain_postgres import PGVector

    return PGVector(EMBEDDINGS, connection=place, collection_name="chunks")


def pgvectorstore(place: str) -> Any:
    from langchain_postgres import PGEngine, PGVectorStore
    from sqlalchemy.exc import ProgrammingError

    engine = PGEngine.from_connection_string(place)
    try:
        engine.init_vectorstore_table("killed_chunks", DIMENSION)
    except ProgrammingError as error:
        assert "already exists" in str(error)  # noqa: PT017
    return PGVectorStore.create_sync(engine, EMBEDDINGS, "killed_chunks")


def _index(store: Any) -> Any:
    return VectorStoreIndex.from_vector_store(store, embed_model=NodeEmbeddings(EMBEDDINGS))


def llama_chroma(place: str) -> Any:
    import chromadb
    from llama_index.vector_stores.chroma import ChromaVectorStore

    collection = chromadb.PersistentClient(place).get_or_create_collection("chunks")
    return _index(ChromaVectorStore(chroma_collection=collection))


def llama_qdrant(place: str) -> Any:
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    return _index(QdrantVectorStore("chunks", client=QdrantClient(path=place)))


def llama_postgres(place: str) -> Any:
    from llama_index.vector_stores.postgres import PGVectorStore

    return _index(
        PGVectorStore.from_params(
            connection_string=place.replace("psycopg", "psycopg2"),
            async_connection_string=place.replace("psycopg", "asyncpg"),
            table_name="killed",
            embed_dim=DIMENSION,
        )
    )


# Killing this program in the middle of a write.


def kill_after(owner: Any, name: str, calls: int) -> None:
    """Kill this program when a method is called once more."""
    real = getattr(owner, name)
    left = iter(range(calls))

    def counted(*args: Any, **options: Any) -> Any:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    setattr(owner, name, counted)


def stop_chroma(store: Any) -> None:
    oprag.stores.chroma._BATCH = BATCH
    kill_after(
        type(store.vector_store.client if isinstance(store, VectorStoreIndex) else store._collection),
        "update",
        REQUESTS,
    )


def stop_qdrant(store: Any) -> None:
    oprag.stores.qdrant._BATCH = BATCH
    client = store.vector_store.client if isinstance(store, VectorStoreIndex) else store.client
    kill_after(client, "batch_update_points", REQUESTS)


def stop_postgres(store: Any) -> None:
    from sqlalchemy import Connection

    oprag.stores.postgres._BATCH = BATCH
    kill_after(Connection, "execute", REQUESTS + 1)


def stop_llama_postgres(index: Any) -> None:
    # All is updated then, and nothing committed.
    kill_after(oprag.stores.postgres, "put_rows", 0)


class Store(NamedTuple):
    """A store that outlives a program.

    Attributes:
        open: Opens it: in a folder, or at the address of PostgreSQL.
        stop: Sets when the program is killed.
        written: How many chunks are written before the end.
        by_text: Whether the texts of sources are needed.
        on_server: Whether it is in PostgreSQL.
    """

    open: Callable[[str], Any]
    stop: Callable[[Any], None]
    written: int = 0
    by_text: bool = False
    on_server: bool = False


STORES = {
    "chroma": Store(chroma, stop_chroma, BATCH * REQUESTS),
    "qdrant": Store(qdrant, stop_qdrant, BATCH * REQUESTS, by_text=True),
    "pgvector": Store(pgvector, stop_postgres, by_text=True, on_server=True),
    "pgvectorstore": Store(pgvectorstore, stop_postgres, by_text=True, on_server=True),
    "llama_chroma": Store(llama_chroma, stop_chroma, BATCH * REQUESTS),
    "llama_qdrant": Store(llama_qdrant, stop_qdrant, BATCH * REQUESTS, by_text=True),
    "llama_postgres": Store(llama_postgres, stop_llama_postgres, on_server=True),
}


def fill(store: Any) -> None:
    if isinstance(store, VectorStoreIndex):
        nodes = [TextNode(text=text, metadata={"file_name": SOURCE, "weight": 0.1}) for text in TEXTS]
        store.insert_nodes(nodes)
    else:
        store.add_documents([Document(text, metadata={"source": SOURCE, "weight": 0.1}) for text in TEXTS])


def rows(store: Any) -> Iterator[tuple[str, dict[str, Any], list[float], dict[str, Any]]]:
    """The text, other metadata, the vector and our metadata of each chunk."""
    if isinstance(store, VectorStoreIndex):
        adapter = adapter_of(store.vector_store, {}, {}, store.docstore)
    else:
        adapter = adapter_of(store)
    assert adapter is not None
    chunks = sorted(adapter.chunks() or (), key=lambda chunk: chunk.text)
    vectors = adapter.vectors([chunk.key for chunk in chunks])
    for chunk in chunks:
        ours = {name: value for name, value in chunk.metadata.items() if value is not None and name in OURS}
        others = {name: value for name, value in chunk.metadata.items() if name not in OURS}
        yield chunk.text, others, np.asarray(vectors[chunk.key].vector).tolist(), ours


def write(store: Any, *, by_text: bool) -> Any:
    book = "".join(text[:160] for text in TEXTS[:-1]) + TEXTS[-1]
    module = llama_index if isinstance(store, VectorStoreIndex) else langchain
    return module.write_positions(store, read_source={SOURCE: book} if by_text else None)


def found(store: Any) -> list[str]:
    """The texts that a retriever finds, which does not ask the store for an order."""
    if isinstance(store, VectorStoreIndex):
        inner = store.as_retriever(similarity_top_k=12)
        nodes = llama_index.OrderPreservingRetriever(retriever=inner, store_order=False).retrieve(QUESTION)
        return [one.node.get_content() for one in nodes]
    retriever = langchain.OrderPreservingRetriever(vectorstore=store, k=12, store_order=False)
    return [document.page_content for document in retriever.invoke(QUESTION)]


def main(name: str, place: str, step: str) -> None:
    """A step with a store."""
    known = STORES[name]
    store = known.open(place)
    if step == "fill":
        fill(store)
        tell(list(rows(store)))
        known.stop(store)
        write(store, by_text=known.by_text)
    left = list(rows(store))
    written = write(store, by_text=known.by_text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = found(store)
    told = [str(one.message) for one in caught if issubclass(one.category, PositionWarning)]
    finished = list(rows(store))
    tell({"left": left, "written": written.written, "finished": finished, "found": answer, "told": told})


def tell(what: Any) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
