"""The chunks around a passage and ranges of chunks, read from LangChain's stores, for one tenant."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage

from oprag.errors import RetrievalWarning
from oprag.langchain import OrderPreservingMiddleware, create_reading_tools, create_search_tool, working_context_of
from tests.adapters.langchain.test_reading_tools import calling
from tests.integration.stores.conftest import Places
from tests.integration.stores.corpus import TENANTS, Corpus, identify
from tests.integration.stores.known import KnownEmbeddings
from tests.integration.stores.langchain_stores import KINDS, Kind

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]

LISTING = [kind for kind in KINDS if (kind.alone or kind.name == "pgvector_async") and kind.name != "pinecone"]
IN_SEQUENCE = ("in_memory", "chroma", "faiss", "lancedb")
COUNT = 60


def state_after(kind: Kind, corpus: Corpus, places: Places, *, stamped: bool, **options: Any) -> Any:
    """The state of an agent over a store of two tenants, after a search and readings for one of them."""
    name = "_".join([kind.name, "stamped" if stamped else "plain", *options, "reading"])
    question = next(iter(corpus.questions))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_around", {"number": 1, "before": 2, "after": 2}),
        ("read_range", {"source": "book", "start": 11, "end": 14}),
        ("outline", {}),
        ("read_range", {"source": "own blue", "start": 1, "end": 1}),
        ("grep", {"pattern": corpus.texts[12]}),
    ]
    with places(name) as place:
        documents = [
            Document(
                corpus.texts[number],
                id=identify(name, tenant, number),
                metadata={
                    "source": "book" if number < COUNT - 1 else f"own {tenant}",
                    "tenant": tenant,
                    **({"chunk_index": number} if stamped else {}),
                },
            )
            for number in range(COUNT)
            for tenant in TENANTS
        ]
        searched = kind.make(documents, KnownEmbeddings(corpus), place)
        given = {"search_kwargs": {**kind.search, "filter": kind.only("red")}, **options}
        agent: Any = create_agent(
            calling(*calls, query=question),
            [create_search_tool(searched, k=1, **given), *create_reading_tools(searched, token_budget=9_000, **given)],
            middleware=[OrderPreservingMiddleware()],
        )
        asked = {"messages": [("user", "Go.")]}
        return asyncio.run(agent.ainvoke(asked)) if kind.ways[-1] == "async" else agent.invoke(asked)


def check(state: Any, corpus: Corpus) -> None:
    """What was read is what NumPy and the list of texts say, in order, of one tenant."""
    messages = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    found, around, ranged, outline, refused, hits = messages
    at = corpus.texts.index(found.artifact[0].page_content)
    wanted = range(max(0, at - 2), min(COUNT - 1, at + 3))
    assert [document.metadata["tenant"] for document in hits.artifact] == ["red"]
    assert f"(1 hit in 1 chunk: chunk 13 of {COUNT - 1} of book" in hits.text
    for message, numbers in ((around, wanted), (ranged, range(10, 14)), (hits, range(12, 13))):
        assert [document.page_content for document in message.artifact] == [corpus.texts[n] for n in numbers]
        assert {document.metadata["tenant"] for document in message.artifact} == {"red"}
    for message, numbers in ((around, wanted), (ranged, range(10, 14))):
        assert f"(Chunks {numbers[0] + 1} to {numbers[-1] + 1} of {COUNT - 1} of book" in message.text
    assert around.text.count("[1]") >= 1
    assert found.text.removeprefix("[1] book\n") not in around.text
    assert [line.split(":")[0] for line in outline.text.splitlines()] == ["2 sources", "- book", "- own red"]
    assert refused.status == "error"
    assert refused.text == "unknown source own blue; did you mean own red?"
    kept = [chunk.text for chunk in working_context_of(state).context().kept]
    assert kept == [corpus.texts[number] for number in sorted({*wanted, *range(10, 14)})]


@pytest.mark.parametrize("kind", LISTING, ids=str)
def test_by_stamps(kind: Kind, corpus: Corpus, places: Places):
    check(state_after(kind, corpus, places, stamped=True), corpus)


@pytest.mark.filterwarnings("ignore:the chunks of a source are in the order in which they were added to the store")
@pytest.mark.parametrize("kind", [kind for kind in LISTING if kind.name.startswith(IN_SEQUENCE)], ids=str)
def test_by_the_sequence_of_the_store(kind: Kind, corpus: Corpus, places: Places):
    check(state_after(kind, corpus, places, stamped=False), corpus)


OTHERS = [kind for kind in LISTING if not kind.name.startswith(IN_SEQUENCE)]


@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
@pytest.mark.parametrize("kind", OTHERS, ids=str)
def test_without_an_order_nothing_is_read(kind: Kind, corpus: Corpus, places: Places):
    state = state_after(kind, corpus, places, stamped=False)
    _, around, ranged, *_ = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    for message in (around, ranged):
        assert message.status == "error"
        assert "book cannot be read: the order of its chunks is not known" in message.text


@pytest.mark.parametrize("kind", OTHERS, ids=str)
def test_by_the_text_of_the_source(kind: Kind, corpus: Corpus, places: Places):
    texts = {"book": "\n".join(corpus.texts[: COUNT - 1])}
    check(state_after(kind, corpus, places, stamped=False, read_source=texts), corpus)


def test_pinecone_refuses(corpus: Corpus, places: Places):
    (kind,) = [kind for kind in KINDS if kind.name == "pinecone"]
    with pytest.warns(RetrievalWarning, match="the reading tools will refuse every call"):
        state = state_after(kind, corpus, places, stamped=True)
    _, *refused = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    for message in refused:
        assert message.status == "error"
        assert "a PineconeVectorStore cannot list the chunks of a source" in message.text
