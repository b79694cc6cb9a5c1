"""The chunks around each kept one, read from LangChain's stores, for one tenant."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.langchain import OrderPreservingRetriever
from tests.integration.stores.conftest import Places
from tests.integration.stores.corpus import TENANTS, Corpus, identify
from tests.integration.stores.known import KnownEmbeddings
from tests.integration.stores.langchain_stores import KINDS, Kind

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]

STORES = [kind for kind in KINDS if (kind.alone or kind.name == "pgvector_async") and kind.name != "pinecone"]
IN_SEQUENCE = [kind for kind in STORES if kind.name.startswith(("in_memory", "chroma", "faiss", "lancedb"))]
COUNT, K = 60, 3


def filled(
    kind: Kind, corpus: Corpus, places: Places, *, stamped: bool, names: dict[str, Any] | None = None
) -> list[tuple[int, str]]:
    """The numbers and tenants of the documents of a question with one neighbor each, from a store of two tenants."""
    sources = dict(zip(TENANTS, TENANTS, strict=True)) if names is None else names
    named = "_".join(str(source).translate(str.maketrans(".-", "pm")) for source in sources.values())
    name = f"{kind.name}_{'stamped' if stamped else 'plain'}_{named}"
    with places(name) as place:
        documents = [
            Document(
                corpus.texts[number],
                id=identify(name, tenant, number),
                # A type that each store can filter by.
                metadata={
                    "source": sources[tenant],
                    "tenant": tenant,
                    **({"chunk_index": number} if stamped else {}),
                },
            )
            for number in range(COUNT)
            for tenant in TENANTS
        ]
        store = kind.make(documents, KnownEmbeddings(corpus), place)
        question = next(iter(corpus.questions))
        search: dict[str, Any] = {**kind.search, "filter": kind.only("red")}
        retriever = OrderPreservingRetriever(vectorstore=store, k=K, neighbors=1, search_kwargs=search)
        way = kind.ways[-1]
        found = asyncio.run(retriever.ainvoke(question)) if way == "async" else retriever.invoke(question)
        return [(corpus.texts.index(document.page_content), document.metadata["tenant"]) for document in found]


def expected(corpus: Corpus) -> list[tuple[int, str]]:
    """As NumPy finds them."""
    question = next(iter(corpus.questions))
    best = sorted(range(COUNT), key=lambda number: -corpus.cosine(question, number))[:K]
    around = {near for number in best for near in (number - 1, number, number + 1) if 0 <= near < COUNT}
    return [(number, "red") for number in sorted(around)]


@pytest.mark.filterwarnings("ignore:the chunks of a source are in the order in which they were added to the store")
@pytest.mark.parametrize("kind", IN_SEQUENCE, ids=str)
def test_neighbors_by_the_sequence_of_the_store(kind: Kind, corpus: Corpus, places: Places):
    assert filled(kind, corpus, places, stamped=False) == expected(corpus)


@pytest.mark.parametrize("sources", [(7, 8), (7.5, 8.0), (-7.0, 8.0)], ids=repr)
@pytest.mark.parametrize("kind", STORES, ids=str)
def test_neighbors_of_sources_that_are_numbers(kind: Kind, sources: tuple[Any, Any], corpus: Corpus, places: Places):
    names = dict(zip(TENANTS, sources, strict=True))
    assert filled(kind, corpus, places, stamped=True, names=names) == expected(corpus)
