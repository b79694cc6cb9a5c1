import sys
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from oprag.errors import OptionError
from oprag.stores import StoreAdapter, StoredVector, adapter, register_store
from oprag.stores.adapter import adapter_of
from oprag.stores.faiss import LlamaIndexFaiss
from oprag.stores.in_memory import LangChainInMemory, OwnIndex
from oprag.stores.retrievers import ListedDocuments


class Store:
    pass


class Special(Store):
    pass


class Empty(StoreAdapter):
    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        return {}


class Other(Empty):
    pass


@pytest.fixture(autouse=True)
def registered_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_registered", dict(adapter._registered))


def test_an_adapter_holds_for_subclasses_and_the_nearest_class_counts():
    register_store(Store, Empty)
    assert type(adapter_of(Special())) is Empty
    register_store(Special, Other)
    assert type(adapter_of(Special())) is Other
    assert type(adapter_of(Store())) is Empty
    assert adapter_of(object()) is None


def test_an_adapter_knows_what_was_searched():
    register_store(Store, Empty)
    store = Store()
    found = adapter_of(store, {"namespace": "a"}, {"0": "node"}, "docstore")
    assert found == Empty(store, {"namespace": "a"}, {"0": "node"}, "docstore")
    assert found.name == "Store"


def test_our_own_adapters_are_loaded_with_their_store_and_can_be_replaced():
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore.__new__(InMemoryVectorStore)
    assert type(adapter_of(store)).__module__ == "oprag.stores.in_memory"
    register_store(InMemoryVectorStore, Empty)
    assert type(adapter_of(store)) is Empty


@pytest.mark.parametrize("path", adapter._ADAPTERS.values())
def test_every_adapter_is_found_without_the_package_of_its_store(path: str, monkeypatch: pytest.MonkeyPatch):
    for package in ("chromadb", "faiss", "lancedb", "llama_index", "pinecone", "qdrant_client"):
        monkeypatch.setitem(sys.modules, package, None)
    name = path.replace(".", "_")
    known: Any = type(name, (), {"__module__": "shelf"})
    monkeypatch.setitem(adapter._ADAPTERS, f"shelf.{name}", path)
    found = adapter_of(known())
    assert found is not None
    assert type(found).__name__ == path.rpartition(".")[2]


@pytest.mark.parametrize("wrong", [lambda keys: {}, Store, Empty(Store()), None])
def test_something_else_than_an_adapter_is_refused(wrong: Any):
    with pytest.raises(OptionError, match="adapter must be a StoreAdapter subclass, got"):
        register_store(Store, wrong)


def test_chunks_are_deleted_only_where_they_can_be():
    stores = [LangChainInMemory(None), ListedDocuments(None), OwnIndex(None)]
    assert [store.deletable for store in stores] == [True, False, False]
    assert not LlamaIndexFaiss(SimpleNamespace()).deletable
    assert LlamaIndexFaiss(SimpleNamespace(_node_id_to_faiss_id_map={})).deletable
