"""The stores of experiments, by their names and as functions, against what NumPy finds."""

import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oprag.compare.stores.named import STORE_NAMES, open_store
from tests.compare.stores.made_up import check_found
from tests.integration.pinecone_stub import API_KEY, serve_pinecone
from tests.integration.stores.corpus import CHUNKS
from tests.integration.stores.place import serve_postgres

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]


@contextmanager
def qdrant_of_llama_index():
    from llama_index.vector_stores.qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient

    client = QdrantClient(":memory:")
    yield QdrantVectorStore("experiment", client=client)
    client.close()


def faiss_of_llama_index():
    import faiss
    from llama_index.vector_stores.faiss import FaissVectorStore

    return FaissVectorStore(faiss_index=faiss.IndexFlatIP(256))


@contextmanager
def chroma_of_llama_index():
    import chromadb
    from chromadb.config import Settings
    from llama_index.vector_stores.chroma import ChromaVectorStore

    client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
    name = uuid.uuid4().hex
    collection = client.create_collection(name, configuration={"hnsw": {"space": "cosine", "ef_search": 2_000}})
    yield ChromaVectorStore(chroma_collection=collection)
    client.delete_collection(name)


def qdrant_of_langchain(embeddings):
    """As the package makes one itself, with an id of its own for each chunk."""
    from langchain_qdrant import QdrantVectorStore

    return QdrantVectorStore.construct_instance(embedding=embeddings, client_options={"location": ":memory:"})


@contextmanager
def pgvector(embeddings):
    """As the documentation of `open_store` has it."""
    from langchain_postgres import PGVector
    from sqlalchemy import create_engine

    with serve_postgres() as address:
        engine = create_engine(address("psycopg"))
        name = f"oprag_{uuid.uuid4().hex}"
        store = PGVector(embeddings, connection=engine, collection_name=name, create_extension=False)
        try:
            yield store
        finally:
            store.delete_collection()
            engine.dispose()


@contextmanager
def pinecone(embeddings):
    """Against a stand-in."""
    from langchain_pinecone import PineconeVectorStore

    with serve_pinecone() as stub:
        yield PineconeVectorStore(
            embedding=embeddings, host=stub.host, pinecone_api_key=API_KEY, namespace="experiment"
        )


# All but our own index.
NAMED = STORE_NAMES[1:]
OWN = [pinecone, qdrant_of_llama_index, faiss_of_llama_index, chroma_of_llama_index, qdrant_of_langchain, pgvector]


@pytest.fixture(scope="module", params=[*NAMED, *OWN], ids=lambda given: getattr(given, "__name__", given))
def store(request, corpus):
    name = getattr(request.param, "__name__", request.param)
    opened = open_store(request.param, name, corpus.texts, corpus.vectors)
    yield opened
    opened.close()


@pytest.mark.parametrize("k", [1, 8, 128, 1_000])
def test_the_rows_are_those_that_numpy_finds(store, corpus, k):
    assert len(corpus.texts) == CHUNKS == 500
    for question in corpus.questions.values():
        found = store.search(question, k)
        check_found(found, corpus.vectors, question, k)
        assert all(isinstance(score, float) for _, score in found)


def test_the_very_chunk_is_the_nearest(store, corpus):
    for row in (0, 250, CHUNKS - 1):
        assert store.search(corpus.vectors[row], 1)[0][0] == row


@pytest.mark.parametrize("name", NAMED)
def test_two_of_a_kind_are_apart(name, corpus):
    stores = [open_store(name, name, corpus.texts[part], corpus.vectors[part]) for part in (slice(20), slice(20, 50))]
    question = next(iter(corpus.questions.values()))
    check_found(stores[0].search(question, 50), corpus.vectors[:20], question, 50)
    stores[0].close()
    check_found(stores[1].search(question, 50), corpus.vectors[20:50], question, 50)
    stores[1].close()


@pytest.mark.parametrize("name", NAMED)
def test_a_large_one(name):
    generator = np.random.default_rng(4)
    vectors: Any = generator.standard_normal((2_500, 16)).astype(np.float32)
    store = open_store(name, name, [f"chunk {row}" for row in range(len(vectors))], vectors)
    question = generator.standard_normal(16).astype(np.float32)
    check_found(store.search(question, 20), vectors, question, 20)
    store.close()


@pytest.mark.parametrize("given", [*NAMED, pgvector], ids=lambda given: getattr(given, "__name__", given))
def test_odd_chunks(given):
    vectors: Any = np.random.default_rng(6).standard_normal((6, 16)).astype(np.float32)
    # What an embedder makes of white space.
    vectors[4] = 0
    texts = ["half \ud83d of a pair", "nothing \0", "", "\n", " ", "Straße 漢 🙂"]
    store = open_store(given, "odd", texts, vectors)
    for place in (0, 1, 2, 3, 5):
        assert store.search(vectors[place], 1)[0][0] == place
    assert len(store.search(vectors[0], 5)) == 5
    store.close()


@pytest.mark.parametrize("name", ["chroma", "lancedb"])
def test_nothing_is_left_on_the_disk(name, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = open_store(name, name, corpus.texts[:50], corpus.vectors[:50])
    assert list(Path(tmp_path).iterdir())
    store.close()
    assert not list(Path(tmp_path).iterdir())
