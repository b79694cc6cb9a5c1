import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from oprag.compare.stores import Store
from oprag.errors import EmbeddingError, ExperimentError, MissingExtraError
from tests.compare import made_up_stores as made_up
from tests.compare.made_up_stores import CHUNKS, DIMENSION, Faulty, check_found, texts_of, vectors_of
from tests.helpers import run_python

GIVEN = ["in_memory", made_up.plain, made_up.cleaned]
QUESTIONS = vectors_of(5, seed=2)


def name_of(given: Any) -> str:
    return given if isinstance(given, str) else given.__name__


def open_store(given: Any, name: str, texts: Any, vectors: Any) -> Store:
    return Store(given, texts, vectors) if isinstance(given, str) else Store(name, texts, vectors, given)


def opened(given: Any, chunks: int = CHUNKS, name: str | None = None) -> Store:
    return open_store(given, name or name_of(given), texts_of(chunks), vectors_of(chunks))


@pytest.fixture(params=GIVEN, ids=name_of)
def store(request):
    store = opened(request.param)
    yield store
    store.close()


@pytest.mark.parametrize("k", [1, 8, 128, CHUNKS, 1_000])
def test_the_rows_are_those_that_numpy_finds(store, k):
    for question in QUESTIONS:
        check_found(store.search(question, k), vectors_of(), question, k)


@pytest.mark.parametrize("given", GIVEN, ids=name_of)
def test_what_cannot_be_put_in_or_asked(given):
    with pytest.raises(EmbeddingError):
        open_store(given, "mine", ["a"], np.zeros((2, DIMENSION), np.float32))
    store = opened(given)
    with pytest.raises(EmbeddingError, match="finite"):
        store.search(np.full(DIMENSION, np.nan, np.float32), 3)
    with pytest.raises(EmbeddingError, match="dimension"):
        store.search(np.ones(3, np.float32), 3)
    store.close()


def test_a_store_that_cannot_be_filled_is_closed():
    made_up.closed.clear()
    with pytest.raises(OSError, match="the disk is full"):
        opened(made_up.cleaned_full)
    assert made_up.closed == ["full"]


def test_a_store_that_is_not_empty():
    def used(embeddings):
        store = InMemoryVectorStore(embeddings)
        store.add_texts(["of another run"])
        return store

    store = opened(used, name="used")
    with pytest.raises(ExperimentError, match="'used' returned 'of another run' twice, or the experiment did not add"):
        store.search(np.eye(1, DIMENSION, dtype=np.float32)[0], 1_000)


class TestFaults:
    def find(self, fault, k=8):
        class Store(Faulty):
            """With this fault."""

        Store.fault = fault
        return opened(Store, name="faulty").search(QUESTIONS[0], k)

    @pytest.mark.parametrize("fault", ["twice", "stranger", "unknown row", "another row"])
    def test_a_chunk_that_is_found_twice_or_is_somebody_elses(self, fault):
        with pytest.raises(ExperimentError, match=r"the store 'faulty' returned '.*' twice, or the experiment did not"):
            self.find(fault)

    def test_fewer_are_what_it_found(self):
        assert len(self.find("fewer")) == 4


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "module", "packages"),
        [
            ("chroma", "langchain_chroma", "langchain-chroma"),
            ("faiss", "faiss", "langchain-community faiss-cpu"),
            ("qdrant", "langchain_qdrant", "langchain-qdrant"),
            ("lancedb", "lancedb", "langchain-community lancedb"),
            ("pinecone", "langchain_pinecone", "langchain-pinecone"),
        ],
    )
    def test_a_package_that_is_missing(self, name, module, packages, monkeypatch):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=f"the store '{name}' requires .*pip install {packages}"):
            opened(name)

    def test_what_a_factory_fails_to_import_is_its_own_matter(self):
        def broken(embeddings):
            import_module("nothing_of_this_name")

        with pytest.raises(ImportError, match="nothing_of_this_name"):
            opened(broken)

    def test_without_langchain(self):
        code = (
            "import sys; sys.modules['langchain_core'] = None; from oprag.compare.stores import Store\n"
            "from oprag.errors import MissingExtraError\n"
            "try: Store('in_memory', ['a'], [[1]])\nexcept MissingExtraError as error: print(error)"
        )
        assert (
            run_python(code).strip()
            == "the store 'in_memory' requires an optional dependency; install it with: pip install langchain-core"
        )
