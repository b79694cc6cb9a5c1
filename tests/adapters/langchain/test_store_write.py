"""Chunks of stores in memory are listed, and get metadata while all else stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.retrievers import MultiVectorRetriever
from langchain_classic.storage import create_kv_docstore
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore

from oprag.errors import OptionError
from oprag.stores import StoreAdapter, StoredVector
from oprag.stores.adapter import adapter_of
from oprag.stores.listing import chunks_in_search
from oprag.stores.retrievers import ListedDocuments


def documents_of(*sources: str) -> list[Document]:
    return [
        Document(
            f"text {number}", id=f"id {number}", metadata={"source": source, "tenant": ("red", "blue")[number % 2]}
        )
        for number, source in enumerate(sources)
    ]


def store_with(documents: list[Document]) -> InMemoryVectorStore:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents)
    return store


def adapter(store: Any, search: dict[str, Any] | None = None) -> StoreAdapter:
    found = adapter_of(store, search or {})
    assert found is not None
    return found


def listed(chunks: Any) -> list[str]:
    return [chunk.key for chunk in chunks]


class Listed(BaseRetriever):
    """A retriever of a list, as that of BM25 is."""

    docs: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return list(self.docs)


def test_a_store_in_memory_keeps_all_but_the_new_keys():
    store = store_with(documents_of("a", "b", "a"))
    before = {key: dict(row) for key, row in store.store.items()}
    found = store.similarity_search_with_score("words", k=3)
    adapter(store).write({"id 2": {"chunk_index": 1, "chunk_numbering": "x"}, "id 0": {"chunk_index": 0}})
    assert list(store.store) == list(before)
    for key, row in store.store.items():
        assert {**row, "metadata": None} == {**before[key], "metadata": None}
    assert store.store["id 1"] == before["id 1"]
    assert store.store["id 2"]["metadata"] == {
        **before["id 2"]["metadata"],
        "chunk_index": 1,
        "chunk_numbering": "x",
    }
    # Those that were found before share their metadata with the store.
    assert all("chunk_index" not in document.metadata for document, _ in found)
    again = store.similarity_search_with_score("words", k=3)
    assert [(one.page_content, score) for one, score in again] == [(one.page_content, score) for one, score in found]


def test_unknown_ids_are_an_error_before_anything_is_written():
    store = store_with(documents_of("a", "b"))
    with pytest.raises(OptionError, match="InMemoryVectorStore has no chunk with the id 'id 7'"):
        adapter(store).write({"id 0": {"chunk_index": 0}, "id 7": {"chunk_index": 1}, "id 8": {"chunk_index": 2}})
    assert "chunk_index" not in store.store["id 0"]["metadata"]


@pytest.mark.parametrize("with_ids", [True, False])
def test_a_list_of_documents(with_ids: bool):
    given = documents_of("a", "b", "a")
    if not with_ids:
        given = [Document(document.page_content, metadata=document.metadata) for document in given]
    retriever = Listed(docs=given)
    ids = [chunk.id or chunk.key for chunk in ListedDocuments(retriever).chunks("source", {"a"}) or ()]
    assert ids == (["id 0", "id 2"] if with_ids else ["text 0", "text 2"])
    with pytest.raises(OptionError, match="cannot write metadata to a Listed"):
        ListedDocuments(retriever).write({key: {"chunk_index": number} for number, key in enumerate(ids)})


def parents(docstore: Any, **options: Any) -> MultiVectorRetriever:
    return MultiVectorRetriever(vectorstore=store_with([]), docstore=docstore, **options)


def test_a_docstore_that_cannot_be_listed():
    retriever = parents(create_kv_docstore(InMemoryByteStore()))
    assert adapter(retriever).chunks() is None


@pytest.mark.parametrize(
    "search", [{"filter": {"tenant": "red"}}, {"namespace": "red"}, {"where_document": {"a": "b"}}]
)
def test_documents_that_a_filter_of_their_parts_leaves_out_are_not_listed(search: dict[str, Any]):
    docstore = InMemoryStore()
    docstore.mset([("p0", Document("text"))])
    assert chunks_in_search(adapter(parents(docstore, search_kwargs={"k": 3, **search}))) is None
    assert chunks_in_search(adapter(parents(docstore), search)) is None
    assert listed(chunks_in_search(adapter(parents(docstore, search_kwargs={"k": 3})))) == ["text"]


def test_a_store_that_cannot_do_it_says_so():
    class Reading(StoreAdapter):
        def vectors(self, keys: Any) -> dict[str, StoredVector]:
            return {}

    assert not Reading(store_with([])).writable
    assert adapter(store_with([])).writable
    assert Reading(store_with([])).chunks() is None
    with pytest.raises(OptionError, match="oprag cannot write metadata to a InMemoryVectorStore"):
        Reading(store_with([])).write({"a": {"chunk_index": 0}})
