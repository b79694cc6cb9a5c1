"""The section in headers and citations of LangChain, from the headings of the searched sources."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import Context
from oprag.errors import RetrievalWarning
from oprag.langchain import (
    OrderPreservingRetriever,
    stamp_positions,
)
from oprag.pipeline.render import section_of
from oprag.stores.in_memory import LangChainInMemory
from tests.adapters.langchain.conftest import giving, store_of
from tests.adapters.scripted import QUESTION

TEXTS = ["Before.", "# Install\n\nText.", "## On Windows\n\nRun it.", "Go on.", "# Use\n\nThe end."]
SECTIONS = ["", "Install", "Install > On Windows", "Install > On Windows", "Use"]
HEADER = "{section}|"


def guide(source: str = "guide.md", **metadata: Any) -> list[Document]:
    return stamp_positions([Document(text, metadata=dict(metadata)) for text in TEXTS], source=source)


def sections(context: Context) -> list[str]:
    """The section of each chunk; the header of a passage has that of its first chunk."""
    assert all(context.text.count(f"{section_of(passage.chunks[0])}|\n") for passage in context.passages)
    return [section_of(chunk) for chunk in context.kept]


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads in which stores were listed."""
    threads: list[str] = []
    chunks = LangChainInMemory.chunks

    def listed(self: LangChainInMemory, field: str, sources: Any = ()) -> Any:
        if sources:
            threads.append(threading.current_thread().name)
        return chunks(self, field, sources)

    monkeypatch.setattr(LangChainInMemory, "chunks", listed)
    return threads


async def test_the_headings_are_read_from_the_searched_store(listings: list[str]):
    store = store_of(guide())
    retriever = OrderPreservingRetriever(vectorstore=store, k=8, header=HEADER)
    for context in (
        retriever.get_context(QUESTION),
        await retriever.aget_context(QUESTION),
        OrderPreservingRetriever(retriever=store.as_retriever(search_kwargs={"k": 8}), header=HEADER).get_context("?"),
    ):
        assert sections(context) == SECTIONS
        assert [chunk.metadata for chunk in context.kept] == [document.metadata for document in guide()]
    assert len(listings) == 3
    # It would block the event loop.
    assert listings[1] != threading.main_thread().name
    assert [document.metadata for document in retriever.invoke(QUESTION)] == [one.metadata for one in guide()]


def test_headings_that_the_filter_excludes_are_not_read():
    texts = [*TEXTS[:4], "# Secret\n\nText.", *TEXTS[3:]]
    documents = [Document(text, metadata={"tenant": "x" if "Secret" in text else "me"}) for text in texts]
    store = store_of(stamp_positions(documents, source="guide.md"))
    kwargs = {"filter": lambda document: document.metadata["tenant"] == "me"}
    retriever = OrderPreservingRetriever(vectorstore=store, k=8, header=HEADER, search_kwargs=kwargs)
    assert sections(retriever.get_context(QUESTION)) == [*SECTIONS[:4], *SECTIONS[3:]]


def test_a_retriever_that_cannot_be_read_says_so_once():
    retriever = OrderPreservingRetriever(retriever=giving(guide()), header=HEADER)
    with pytest.warns(RetrievalWarning, match=r"\{section\} in header= is empty.*pass read_neighbors=") as told:
        assert sections(retriever.get_context(QUESTION)) == [""] * 5
    assert len(str(told[0].message)) <= 200
    assert sections(retriever.get_context(QUESTION)) == [""] * 5
    # Metadata name one: the others have none.
    named = Document("Text.", metadata={"source": "b.md", "chunk_index": 0, "Header 1": "Named"})
    found = OrderPreservingRetriever(retriever=giving([*guide(), named]), header=HEADER).get_context(QUESTION)
    assert sections(found) == [*[""] * 5, "Named"]
