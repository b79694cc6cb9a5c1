"""What LanceDB does in ways of its own: its documents have no ids, and it can search by words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import OptionError
from oprag.context import Context
from oprag.langchain import OrderPreservingRetriever
from oprag.langchain.search import takes_a_vector
from oprag.stores import StoreAdapter
from oprag.stores.adapter import adapter_of
from tests.integration.stores.checks import numbers
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings

pytestmark = pytest.mark.integration

CHUNKS = 60
WAYS = pytest.mark.parametrize("way", ["sync", "async"])


def store_at(folder: Path, corpus: Corpus, **options: Any) -> Any:
    import lancedb
    from langchain_community.vectorstores import LanceDB

    connection = lancedb.connect(str(folder))
    return LanceDB(connection=connection, embedding=KnownEmbeddings(corpus), mode="append", **options)


def add(store: Any, corpus: Corpus, tenant: str = "red") -> None:
    documents = [
        Document(text, metadata=corpus.metadata(number, tenant)) for number, text in enumerate(corpus.texts[:CHUNKS])
    ]
    store.add_documents(documents)
    store.embeddings.forget()


def ask(way: str, retriever: OrderPreservingRetriever, question: str) -> Context:
    return retriever.get_context(question) if way == "sync" else asyncio.run(retriever.aget_context(question))


def check(context: Context, corpus: Corpus, question: str) -> None:
    assert len(context.kept) == 20
    for chunk in context.kept:
        assert chunk.similarity == pytest.approx(corpus.cosine(question, chunk.metadata["chunk_index"]), abs=1e-3)


@WAYS
def test_a_table_of_the_search_and_columns_of_any_name(way: str, corpus: Corpus, tmp_path: Path):
    question, *_ = corpus.questions
    columns = {"vector_key": "body_vector", "id_key": "key", "text_key": "body"}
    other = store_at(tmp_path, corpus, table_name="other", **columns)
    add(other, corpus, "blue")
    store = store_at(tmp_path, corpus, table_name="own", **columns)
    add(store, corpus)
    retriever = OrderPreservingRetriever(
        vectorstore=store, k=20, similarity_threshold=-1, search_kwargs={"name": "other"}
    )
    context = ask(way, retriever, question)
    check(context, corpus, question)
    assert {chunk.metadata["tenant"] for chunk in context.kept} == {"blue"}
    assert store.embeddings.embedded == (1, 0)


@WAYS
@pytest.mark.filterwarnings("ignore:create_fts_index is deprecated")
def test_a_search_by_words(way: str, corpus: Corpus, tmp_path: Path):
    question, *_ = corpus.questions
    store = store_at(tmp_path, corpus, table_name="words")
    add(store, corpus)
    search = {"query_type": "fts"}
    assert not takes_a_vector(store, "similarity", search)
    # LangChain's own `similarity_search` hands a keyword on twice here.
    found = store.similarity_search_with_score(question, k=20, **search)
    retriever = OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1, search_kwargs=search)
    context = ask(way, retriever, question)
    assert numbers(context) == sorted(document.metadata["chunk_index"] for document in found)
    check(context, corpus, question)
    assert {chunk.score for chunk in context.kept} == {None}
    assert store.embeddings.embedded == (1, 0)


def adapter_of_store(store: Any, **search: Any) -> StoreAdapter:
    found = adapter_of(store, search)
    assert found is not None
    return found


def plain_metadata(number: int) -> dict[str, Any]:
    return {"source": "a.txt", "tenant": ("red", "blue")[number % 2], "page": number}


def filled(folder: Path, corpus: Corpus, parts: int = 5, **options: Any) -> Any:
    """A store in several fragments, some rows of which were deleted."""
    store = store_at(folder, corpus, table_name="filled", **options)
    for part in range(parts):
        numbers = range(part * 60, part * 60 + 60)
        store.add_texts(
            [corpus.texts[number] for number in numbers],
            [plain_metadata(number) for number in numbers],
            [str(number) for number in numbers],
        )
    store.delete(ids=["3", "64", "65"])
    return store


def content(store: Any) -> Any:
    return store.get_table().to_arrow().select(["vector", "id", "text"])


def test_rows_stay_in_their_places_and_indexes_stay_of_use(corpus: Corpus, tmp_path: Path):
    from lancedb.index import FTS, Bitmap, BTree, IvfFlat

    store = filled(tmp_path, corpus)
    table = store.get_table()
    table.create_index("vector", config=IvfFlat(num_partitions=2))
    table.create_index("text", config=FTS())
    table.create_index("id", config=BTree())
    table.create_index("metadata.tenant", config=Bitmap(), name="tenants")
    before, question = content(store), next(iter(corpus.questions.values()))
    versions = len(table.list_versions())

    def found() -> Any:
        near = store.get_table().search(question).limit(20).to_list()
        words = store.get_table().search("attribute", query_type="fts").limit(20).to_list()
        blue = store.get_table().search().where("metadata.tenant = 'blue'").limit(1_000).to_list()
        return [(row["id"], row["_distance"]) for row in near], [row["id"] for row in words], len(blue)

    at_first = found()
    added = {str(number): {"chunk_index": number, "chunk_numbering": "x"} for number in range(290, 10, -1)}
    del added["64"], added["65"]
    adapter_of_store(store).write(added)
    assert content(store).equals(before)
    assert found() == at_first
    rows = {row["id"]: row["metadata"] for row in store.get_table().to_arrow().to_pylist()}
    for key, metadata in rows.items():
        nothing = {"chunk_index": None, "chunk_numbering": None}
        assert metadata == {**plain_metadata(int(key)), **added.get(key, nothing)}
    indexes = {index.name: index for index in store.get_table().list_indices()}
    assert indexes.keys() == {"vector_idx", "text_idx", "id_idx", "tenants"}
    assert {index.num_unindexed_rows for index in indexes.values()} == {0}
    # An index of the keys, the fields, the values, and the index away; two that are made again.
    assert len(store.get_table().list_versions()) == versions + 6
    store.get_table().optimize()
    assert content(store).equals(before)
    assert found() == at_first


def test_what_is_added_afterwards_may_have_the_new_keys_or_not(corpus: Corpus, tmp_path: Path):
    store = filled(tmp_path, corpus, parts=1)
    adapter_of_store(store).write({"5": {"chunk_index": 5}})
    store.add_texts(corpus.texts[400:401], [plain_metadata(400)], ["400"])
    store.add_texts(corpus.texts[401:402], [{**plain_metadata(401), "chunk_index": 9}], ["401"])
    adapter_of_store(store).write({"400": {"chunk_index": 8}})
    found = {chunk.id: chunk.metadata["chunk_index"] for chunk in adapter_of_store(store).chunks() or ()}
    assert {key: value for key, value in found.items() if value is not None} == {"5": 5, "400": 8, "401": 9}


def test_filters_as_a_dictionary_and_other_tables(corpus: Corpus, tmp_path: Path):
    columns = {"vector_key": "body_vector", "id_key": "key", "text_key": "body"}
    store = filled(tmp_path, corpus, parts=1, **columns)
    other = store_at(tmp_path, corpus, table_name="own", **columns)
    add(other, corpus)
    adapter = adapter_of_store(other, name="filled", filter={"metadata.tenant": "blue"})
    chunks = list(adapter.chunks("source", {"a.txt"}) or ())
    assert {chunk.metadata["tenant"] for chunk in chunks} == {"blue"}
    assert len(chunks) == 29
    adapter.write({chunks[0].id: {"chunk_index": 1}})
    changed = [chunk.id for chunk in adapter_of_store(store).chunks() or () if chunk.metadata["chunk_index"] == 1]
    assert changed == [chunks[0].id]
    assert adapter_of_store(other, filter=["red"]).chunks() is None
    assert list(adapter_of_store(other).chunks("page", {"1"}) or ()) == []


def test_what_cannot_be_written_changes_nothing(corpus: Corpus, tmp_path: Path):
    from lancedb.index import FTS

    store = filled(tmp_path, corpus, parts=1)
    adapter = adapter_of_store(store)
    before = store.get_table().to_arrow()
    with pytest.raises(OptionError, match="'page' has a different type"):
        adapter.write({"5": {"page": "five"}})
    store.get_table().create_index("metadata.source", config=FTS(), name="words")
    with pytest.raises(OptionError, match="the index 'words' would be lost"):
        adapter.write({"5": {"chunk_index": 5}})
    store.get_table().drop_index("words")
    store.add_texts(corpus.texts[400:401], [plain_metadata(400)], ["5"])
    with pytest.raises(OptionError, match="several rows with the same id"):
        adapter.write({"5": {"chunk_index": 5}, "6": {"chunk_index": 6}})
    store.delete(filter="metadata.page = 400")
    assert store.get_table().to_arrow().equals(before)
    empty = store_at(tmp_path, corpus, table_name="not there")
    assert adapter_of_store(empty).chunks() is None
    with pytest.raises(OptionError, match="cannot write metadata into a LanceDB"):
        adapter_of_store(empty).write({"5": {"chunk_index": 5}})


def test_a_version_that_would_move_the_rows(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = filled(tmp_path, corpus, parts=2)
    before = store.get_table().to_arrow()
    with monkeypatch.context() as patch:
        # Without an index of the keys it does.
        patch.setattr(type(store.get_table()), "create_index", lambda *given, **options: None)
        patch.setattr(type(store.get_table()), "drop_index", lambda *given, **options: None)
        with pytest.raises(OptionError, match="moves rows"):
            adapter_of_store(store).write({"5": {"chunk_index": 5}})
    assert store.get_table().to_arrow().equals(before)
    adapter_of_store(store).write({"5": {"chunk_index": 5}})
