"""What LanceDB does in ways of its own: its documents have no ids, and it can search by words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oprag.errors import OptionError
from oprag.langchain import OrderPreservingRetriever, write_positions
from tests.integration.stores.checks import WAYS, adapter_of_store, ask, check_similarities, documents_of, numbers
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings

pytestmark = pytest.mark.integration


def store_at(folder: Path, corpus: Corpus, **options: Any) -> Any:
    import lancedb
    from langchain_community.vectorstores import LanceDB

    connection = lancedb.connect(str(folder))
    return LanceDB(connection=connection, embedding=KnownEmbeddings(corpus), mode="append", **options)


def add(store: Any, corpus: Corpus, tenant: str = "red") -> None:
    store.add_documents(documents_of(corpus, tenant))
    store.embeddings.forget()


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
    check_similarities(context, corpus, question)
    assert {chunk.metadata["tenant"] for chunk in context.kept} == {"blue"}
    assert store.embeddings.embedded == (1, 0)


@WAYS
@pytest.mark.filterwarnings("ignore:create_fts_index is deprecated")
def test_a_search_by_words(way: str, corpus: Corpus, tmp_path: Path):
    question, *_ = corpus.questions
    store = store_at(tmp_path, corpus, table_name="words")
    add(store, corpus)
    search = {"query_type": "fts"}
    # LangChain's own `similarity_search` hands a keyword on twice here.
    found = store.similarity_search_with_score(question, k=20, **search)
    retriever = OrderPreservingRetriever(vectorstore=store, k=20, similarity_threshold=-1, search_kwargs=search)
    context = ask(way, retriever, question)
    assert numbers(context) == sorted(document.metadata["chunk_index"] for document in found)
    check_similarities(context, corpus, question)
    assert {chunk.score for chunk in context.kept} == {None}
    assert store.embeddings.embedded == (1, 0)


def plain_metadata(number: int) -> dict[str, Any]:
    return {"source": "a.txt", "tenant": ("red", "blue")[number % 2], "page": number}


def filled(folder: Path, corpus: Corpus, **options: Any) -> Any:
    """A store, one row of which was deleted."""
    store = store_at(folder, corpus, table_name="filled", **options)
    numbers = range(60)
    store.add_texts(
        [corpus.texts[number] for number in numbers],
        [plain_metadata(number) for number in numbers],
        [str(number) for number in numbers],
    )
    store.delete(ids=["3"])
    return store


def test_filters_as_a_dictionary_and_other_tables(corpus: Corpus, tmp_path: Path):
    columns = {"vector_key": "body_vector", "id_key": "key", "text_key": "body"}
    filled(tmp_path, corpus, **columns)
    other = store_at(tmp_path, corpus, table_name="own", **columns)
    add(other, corpus)
    adapter = adapter_of_store(other, name="filled", filter={"metadata.tenant": "blue"})
    chunks = list(adapter.chunks("source", {"a.txt"}) or ())
    assert {chunk.metadata["tenant"] for chunk in chunks} == {"blue"}
    assert len(chunks) == 29
    assert adapter_of_store(other, filter=["red"]).chunks() is None
    assert {chunk.metadata["page"] for chunk in adapter_of_store(other).chunks("page", {"1"}) or ()} == {1}
    assert list(adapter_of_store(other).chunks("page", {"one", "1.5"}) or ()) == []


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


def test_positions_are_not_written(corpus: Corpus, tmp_path: Path):
    store = filled(tmp_path, corpus)
    with pytest.raises(
        OptionError, match=r"cannot list and update the chunks of a LanceDB; .* stamp positions before you"
    ):
        write_positions(store)
    with pytest.raises(OptionError, match="cannot write metadata to a LanceDB; pass read_source= instead"):
        adapter_of_store(store).write({"1": {"chunk_index": 1}})
    assert adapter_of_store(store_at(tmp_path, corpus, table_name="not there")).chunks() is None
