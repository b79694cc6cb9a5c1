"""What a check says of real stores."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import PositionCheck, PositionKind
from oprag.errors import OptionError
from oprag.langchain import OrderPreservingRetriever, check_positions
from oprag.stores.adapter import adapter_of
from tests.integration.stores.test_store_order import EMBEDDINGS, STORES, add, asked, store_of, windows

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def sources(found: PositionCheck) -> dict[str | None, tuple[int, bool]]:
    """The number of chunks of each source, and whether it is in order."""
    return {source.source: (source.chunks, not source.problem) for source in found.sources}


def edited(documents: list[Document]) -> list[Document]:
    return [
        document.model_copy(update={"page_content": document.page_content.replace("e", "E", number % 2)})
        for number, document in enumerate(documents)
    ]


@pytest.mark.parametrize("name", STORES)
def test_sources_that_were_added_in_turn_are_in_order(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    first, second = windows("a's.txt", 1), windows("b.txt", 2)
    add(store, [chunk for pair in zip(first, second, strict=True) for chunk in pair])
    found = check_positions(store)
    assert sources(found) == {"a's.txt": (60, True), "b.txt": (60, True)}
    assert {source.kind for source in found.sources} == {PositionKind.STORE}
    assert found.searched == type(store).__name__
    assert asked(OrderPreservingRetriever(vectorstore=store, k=50))[1] == []
    sample = check_positions(store, max_chunks=50)
    assert (sample.chunks, sample.sampled) == (50, True)


@pytest.mark.parametrize("name", STORES)
def test_what_was_added_apart_is_a_problem(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    chunks = windows("a.txt", 1)
    # Without the chunks between the parts, nothing tells which part is first.
    add(store, [*chunks[33:], *chunks[:30]])
    (source,) = check_positions(store).sources
    told = asked(OrderPreservingRetriever(vectorstore=store, k=50))[1]
    assert source.problem in told[0]


@pytest.mark.parametrize("name", STORES)
def test_a_filter_is_that_of_the_retriever(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    add(store, [*windows("a.txt", 1), *windows("b.txt", 2, tenant="blue", count=40)])
    only_blue: Any = "metadata.tenant = 'blue'" if name == "lancedb" else {"tenant": "blue"}
    retriever = store.as_retriever(search_kwargs={"filter": only_blue})
    assert sources(check_positions(retriever)) == {"b.txt": (40, True)}


@pytest.mark.parametrize("name", STORES)
def test_the_line_deletes_a_source_that_was_added_twice(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    chunks = windows("a's.txt", 1)
    for documents in (chunks, windows("b.txt", 2), edited(chunks)):
        add(store, documents)
    found = check_positions(store)
    assert sources(found) == {"a's.txt": (120, False), "b.txt": (60, True)}
    line = found.sources[0].suggestion
    assert line.startswith("store.delete(")
    exec(line, {"store": store, "check_positions": check_positions})
    assert sources(check_positions(store)) == {"b.txt": (60, True)}
    add(store, chunks)
    assert sources(check_positions(store)) == {"a's.txt": (60, True), "b.txt": (60, True)}


def test_a_store_that_keeps_no_sequence_has_none():
    from langchain_qdrant import QdrantVectorStore

    store = QdrantVectorStore.from_documents(
        windows("a.txt", 1), EMBEDDINGS, location=":memory:", collection_name=uuid.uuid4().hex
    )
    adapter = adapter_of(store)
    assert adapter is not None
    if adapter.chunks() is None:
        with pytest.raises(OptionError, match="the chunks of QdrantVectorStore cannot be listed"):
            check_positions(store)
        return
    (source,) = check_positions(store).sources
    assert (source.chunks, source.kind, source.certainty) == (60, PositionKind.NONE, "unknown")
    assert source.problem in asked(OrderPreservingRetriever(vectorstore=store, k=50))[1][0]
