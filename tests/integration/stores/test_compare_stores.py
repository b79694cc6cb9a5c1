"""The stores of experiments, by their names and as functions, against what NumPy finds."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oprag.compare.stores import STORE_NAMES, Store
from tests.compare.made_up_stores import check_found
from tests.integration.pinecone_stub import API_KEY, PineconeStub, serve_pinecone
from tests.integration.stores.corpus import CHUNKS
from tests.integration.stores.place import serve_postgres

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]


def qdrant_of_langchain(embeddings):
    """As the package makes one itself, with an id of its own for each chunk."""
    from langchain_qdrant import QdrantVectorStore

    return QdrantVectorStore.construct_instance(embedding=embeddings, client_options={"location": ":memory:"})


@contextmanager
def pgvector(embeddings):
    """As docs/reference/experiment_file.md has it, and emptied."""
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


@pytest.fixture(scope="module", autouse=True)
def pinecone() -> Iterator[PineconeStub]:
    """A stand-in, which the store in Pinecone finds: the service itself was never asked."""
    with serve_pinecone() as stub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PINECONE_API_KEY", API_KEY)
        patch.setenv("PINECONE_HOST", stub.host)
        yield stub


# All but our own index.
NAMED = STORE_NAMES[1:]
OWN = [qdrant_of_langchain, pgvector]


@pytest.fixture(scope="module", params=[*NAMED, *OWN], ids=lambda given: getattr(given, "__name__", given))
def store(request, corpus):
    name = getattr(request.param, "__name__", request.param)
    factory = None if name in NAMED else request.param
    opened = Store(name, corpus.texts, corpus.vectors, factory)
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


# Pinecone takes no vector of zeros.
WITH_ZEROS = [*(name for name in NAMED if name != "pinecone"), pgvector]


@pytest.mark.parametrize("given", WITH_ZEROS, ids=lambda given: getattr(given, "__name__", given))
def test_odd_chunks(given):
    vectors: Any = np.random.default_rng(6).standard_normal((6, 16)).astype(np.float32)
    # What an embedder makes of white space.
    vectors[4] = 0
    texts = ["half \ud83d of a pair", "nothing \0", "", "\n", " ", "Straße 漢 🙂"]
    store = Store(given, texts, vectors) if given in NAMED else Store("odd", texts, vectors, given)
    for place in (0, 1, 2, 3, 5):
        assert store.search(vectors[place], 1)[0][0] == place
    assert len(store.search(vectors[0], 5)) == 5
    store.close()


def test_nothing_is_left_on_the_disk(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = Store("chroma", corpus.texts[:50], corpus.vectors[:50])
    assert list(Path(tmp_path).iterdir())
    store.close()
    assert not list(Path(tmp_path).iterdir())


def test_pinecone_waits_for_what_is_put_in_and_is_emptied(pinecone):
    vectors: Any = np.random.default_rng(1).standard_normal((30, 8)).astype(np.float32)
    before = len(pinecone.requests), list(pinecone.namespaces)
    pinecone.late = 2
    store = Store("pinecone", [f"chunk {row}" for row in range(30)], vectors)
    asked = [request.path for request in pinecone.requests[before[0] :]]
    assert asked.count("/describe_index_stats") == 3
    for row in range(3):
        assert store.search(vectors[row], 5)[0][0] == row
    (namespace,) = {*pinecone.namespaces} - {*before[1]}
    assert namespace.startswith("oprag-")
    store.close()
    assert list(pinecone.namespaces) == before[1]
