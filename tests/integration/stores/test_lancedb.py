"""What LanceDB does in ways of its own: its documents have no ids, and it can search by words."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

import oprag.stores.lancedb
from oprag import OptionError
from oprag.context import Context
from oprag.langchain import OrderPreservingRetriever, check_positions, write_positions
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
    # The fields, the values, and two indexes that are made again.
    assert len(store.get_table().list_versions()) == versions + 4
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
    assert {chunk.metadata["page"] for chunk in adapter_of_store(other).chunks("page", {"1"}) or ()} == {1}
    assert list(adapter_of_store(other).chunks("page", {"one", "1.5"}) or ()) == []


def test_what_cannot_be_written_changes_nothing(corpus: Corpus, tmp_path: Path):
    from lancedb.index import FTS

    store = filled(tmp_path, corpus, parts=1)
    adapter = adapter_of_store(store)
    before = store.get_table().to_arrow()
    with pytest.raises(OptionError, match="'page' has a different type"):
        adapter.write({"5": {"page": "five"}})
    store.get_table().create_index("metadata.source", config=FTS(), name="words")
    with pytest.raises(OptionError, match="would invalidate the index 'words'"):
        adapter.write({"5": {"chunk_index": 5}})
    store.get_table().drop_index("words")
    store.add_texts(corpus.texts[400:401], [plain_metadata(400)], ["5"])
    with pytest.raises(OptionError, match="several rows with the same id"):
        adapter.write({"5": {"chunk_index": 5}, "6": {"chunk_index": 6}})
    store.delete(filter="metadata.page = 400")
    assert store.get_table().to_arrow().equals(before)
    empty = store_at(tmp_path, corpus, table_name="not there")
    assert adapter_of_store(empty).chunks() is None
    with pytest.raises(OptionError, match="cannot write metadata to a LanceDB"):
        adapter_of_store(empty).write({"5": {"chunk_index": 5}})


def test_a_version_that_would_move_the_rows(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import pyarrow as pa
    from lancedb.merge import LanceMergeInsertBuilder

    execute = LanceMergeInsertBuilder.execute

    def moving(builder: Any, rows: Any, *given: Any) -> Any:
        # It moves rows where the fields of metadata are in the sequence of the table.
        metadata = rows["metadata"].combine_chunks()
        straight = pa.StructArray.from_arrays(metadata.flatten()[::-1], fields=list(metadata.type)[::-1])
        return execute(builder, pa.table({"id": rows["id"], "metadata": straight}), *given)

    store = filled(tmp_path, corpus, parts=2)
    before = store.get_table().to_arrow()
    oprag.stores.lancedb._stay_in_place.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(LanceMergeInsertBuilder, "execute", moving)
        with pytest.raises(OptionError, match="would move changed rows, so nothing was written"):
            adapter_of_store(store).write({"5": {"chunk_index": 5}})
    oprag.stores.lancedb._stay_in_place.cache_clear()
    assert store.get_table().to_arrow().equals(before)
    adapter_of_store(store).write({"5": {"chunk_index": 5}})


def before_call(patch: pytest.MonkeyPatch, kind: type, name: str, act: Callable[[], None]) -> None:
    """Let another program act right before the first call of a method."""
    method, calls = getattr(kind, name), count()

    def acted(*given: Any, **options: Any) -> Any:
        if next(calls) == 0:
            act()
        return method(*given, **options)

    patch.setattr(kind, name, acted)


def metadata_in(store: Any) -> dict[str, dict[str, Any]]:
    return {
        row["id"]: {name: value for name, value in row["metadata"].items() if value is not None}
        for row in store.get_table().to_arrow().to_pylist()
    }


@pytest.mark.parametrize("step", ["add_columns", "merge_insert", "list_indices"])
def test_rows_that_another_program_adds_meanwhile_stay(
    step: str, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store, other = filled(tmp_path, corpus, parts=1), store_at(tmp_path, corpus, table_name="filled")
    before = metadata_in(store)

    def act() -> None:
        other.add_texts(corpus.texts[400:401], [plain_metadata(400)], ["400"])

    before_call(monkeypatch, type(store.get_table()), step, act)
    adapter_of_store(store).write({"5": {"chunk_index": 5}})
    assert metadata_in(store) == before | {"5": {**plain_metadata(5), "chunk_index": 5}, "400": plain_metadata(400)}


def test_metadata_that_another_program_changes_meanwhile_stay(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from lancedb.merge import LanceMergeInsertBuilder

    store, other = filled(tmp_path, corpus, parts=2), store_at(tmp_path, corpus, table_name="filled")
    before, ids = metadata_in(store), store.get_table().to_arrow()["id"].to_pylist()
    adapter_of_store(store).write({})
    added = {"5": {"chunk_index": 5, "chunk_numbering": "x"}, "6": {"chunk_index": 6, "chunk_numbering": "x"}}

    def act() -> None:
        adapter_of_store(other).write({"5": {"page": 999}, "8": {"page": 888}})
        other.delete(ids=["7"])

    before_call(monkeypatch, LanceMergeInsertBuilder, "execute", act)
    with pytest.raises(OptionError, match=r"another program changed 2 rows .* write again"):
        adapter_of_store(store).write(added)
    theirs = {name: about for name, about in before.items() if name != "7"}
    theirs["5"], theirs["8"] = {**theirs["5"], "page": 999}, {**theirs["8"], "page": 888}
    assert metadata_in(store) == theirs | {"6": {**theirs["6"], **added["6"]}}
    adapter_of_store(store).write(added)
    assert metadata_in(store) == theirs | {name: {**theirs[name], **more} for name, more in added.items()}
    assert store.get_table().to_arrow()["id"].to_pylist() == [one for one in ids if one != "7"]


def test_a_table_that_others_keep_changing(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store = filled(tmp_path, corpus, parts=1)
    before = store.get_table().to_arrow()

    def refuse(*_: Any) -> None:
        raise RuntimeError("lance error: Retryable commit conflict for version 8: This Merge transaction was preempted")

    monkeypatch.setattr(type(store.get_table()), "add_columns", refuse)
    with pytest.raises(
        OptionError, match=r"^other programs kept changing the LanceDB table.*write again when they are done$"
    ):
        adapter_of_store(store).write({"5": {"chunk_index": 5}})
    assert store.get_table().to_arrow().equals(before)


ADDER = """
import sys, lancedb
table = lancedb.connect(sys.argv[1]).open_table("filled")
width = len(table.head(1)["vector"][0])
for number in range(25):
    key = f"{sys.argv[2]}{number}"
    row = {"vector": [0.5] * width, "id": key, "text": key, "metadata": {"source": "b.txt", "tenant": "red", "page": 1}}
    try:
        table.checkout_latest()
        table.add([row])
    except Exception as error:
        assert "transaction" in str(error), error
        continue
    print(key, flush=True)
"""


def test_two_programs_write_while_others_add(corpus: Corpus, tmp_path: Path):
    store = filled(tmp_path, corpus, parts=2)
    command = [sys.executable, "-c", ADDER, str(tmp_path)]
    adders = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "xy"]
    with ThreadPoolExecutor(1) as pool:
        listing = pool.submit(lambda: [adder.communicate()[0].split() for adder in adders])
        number = 0
        while not listing.done() or number < 3:
            number += 1
            more = {str(row): {"chunk_index": number, f"key{number % 3}": number} for row in range(10, 50)}
            with suppress(OptionError):
                adapter_of_store(store).write(more)
        told = [key for keys in listing.result() for key in keys]
    assert [adder.returncode for adder in adders] == [0, 0]
    adapter_of_store(store).write(more)
    found = metadata_in(store)
    assert told
    assert set(told) <= found.keys()
    others = {"source": "b.txt", "tenant": "red", "page": 1}
    assert all(found[key] == others for key in told)
    for row in range(60):
        if row != 3:
            assert found[str(row)].items() >= {**plain_metadata(row), **more.get(str(row), {})}.items()


def test_rows_with_other_metadata_keys(corpus: Corpus, tmp_path: Path):
    store = store_at(tmp_path, corpus, table_name="mixed")
    for part, about in enumerate(({"source": "a.txt", "title": "A"}, {"source": "b.txt"}, {"title": "C"})):
        store.add_texts([corpus.texts[part]], [about], [str(part)])
    sources = {"a.txt", "b.txt"}
    assert [chunk.id for chunk in adapter_of_store(store).chunks() or ()] == ["0", "1", "2"]
    assert [chunk.id for chunk in adapter_of_store(store).chunks("source", sources) or ()] == ["0", "1"]
    assert [chunk.id for chunk in adapter_of_store(store).chunks("title", {"C"}) or ()] == ["2"]
    titled = adapter_of_store(store, filter="metadata.title IN ('A', 'C')")
    assert [chunk.id for chunk in titled.chunks() or ()] == ["0", "2"]
    assert titled.in_sequence(corpus.texts[:3]) == [corpus.texts[0], corpus.texts[2]]
    adapter_of_store(store).write({"1": {"chunk_index": 1, "chunk_numbering": "x"}})
    assert [chunk.id for chunk in adapter_of_store(store).chunks() or ()] == ["0", "1", "2"]
    # LanceDB itself can filter them now.
    for condition, ids in (("metadata.title = 'A'", {"0"}), ("metadata.chunk_index = 1", {"1"})):
        found = store.get_table().search().select(["id", "text", "metadata"]).where(condition).limit(9).to_list()
        assert {row["id"] for row in found} == ids


def test_positions_are_written_again_after_more_documents_came(corpus: Corpus, tmp_path: Path):
    store = store_at(tmp_path, corpus, table_name="filled")
    for name in ("a.txt", "b.txt"):
        store.add_texts(corpus.texts[:20], [{"source": name}] * 20)
        assert not check_positions(store).ok
        assert write_positions(store, trust_store_order=True).written == 20
        assert check_positions(store).ok
