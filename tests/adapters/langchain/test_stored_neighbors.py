"""The chunks around each kept one, read from the store that was searched."""

import asyncio

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import BaseDocumentCompressor, Document

from oprag.langchain import OrderPreservingRetriever, stamp_positions
from oprag.stores import adapter, register_store
from oprag.stores.retrievers import ListedDocuments
from tests.adapters.langchain.conftest import store_of
from tests.adapters.langchain.test_store_order import Listed, windows

QUESTION = "Where does the river end?"


class Same(BaseDocumentCompressor):
    """A reranker that changes nothing."""

    def compress_documents(self, documents, query, callbacks=None):
        return documents


def around(found, chunks, number):
    """The places of these documents and of this many around each, without those of another source."""
    at = {chunk.page_content: index for index, chunk in enumerate(chunks)}
    places = {at[document.page_content] for document in found}
    near = {place + step for place in places for step in range(-number, number + 1)}
    return sorted(place for place in near if 0 <= place < len(chunks))


def places(documents, chunks):
    at = {chunk.page_content: index for index, chunk in enumerate(chunks)}
    return [at[document.page_content] for document in documents]


def of_store(chunks):
    """Without stamps, by the sequence of the store; by stamps; and by offsets."""
    source = chunks[0].metadata["source"]
    starts = [{"source": source, "start_index": 160 * number} for number in range(len(chunks))]
    return {
        "store": chunks,
        "stamped": stamp_positions(chunks)[::-1],
        "offsets": [chunk.model_copy(update={"metadata": about}) for chunk, about in zip(chunks, starts, strict=True)],
    }


@pytest.mark.parametrize("kind", ["store", "stamped", "offsets"])
@pytest.mark.parametrize("wrapped", ["store", "retriever", "compressed"])
def test_neighbors_come_from_the_store(kind, wrapped):
    chunks = windows("voyage.txt", 1)
    store = store_of(of_store(chunks)[kind])
    given = {
        "store": {"vectorstore": store, "k": 4},
        "retriever": {"retriever": store.as_retriever(search_kwargs={"k": 4})},
        "compressed": {
            "retriever": ContextualCompressionRetriever(
                base_retriever=store.as_retriever(search_kwargs={"k": 4}), base_compressor=Same()
            )
        },
    }[wrapped]
    found = store.similarity_search(QUESTION, k=4)
    for number in (1, 2):
        documents = OrderPreservingRetriever(neighbors=number, **given).invoke(QUESTION)
        assert places(documents, chunks) == around(found, chunks, number)
        asynchronous = asyncio.run(OrderPreservingRetriever(neighbors=number, **given).ainvoke(QUESTION))
        assert asynchronous == documents


def test_neighbors_pass_the_filter_of_the_search():
    reds = windows("voyage.txt", 1, tenant="red")
    chunks = [chunk for pair in zip(reds, windows("voyage.txt", 2, tenant="blue"), strict=False) for chunk in pair]
    store = store_of(stamp_positions(chunks))

    def red(document):
        return document.metadata["tenant"] == "red"

    retriever = OrderPreservingRetriever(vectorstore=store, k=3, neighbors=2, search_kwargs={"filter": red})
    documents = retriever.invoke(QUESTION)
    assert len(documents) > 3
    assert all(map(red, documents))
    # A filter of the question goes before that of the retriever.
    documents = retriever.invoke(QUESTION, filter=lambda document: not red(document))
    assert len(documents) > 3
    assert not any(map(red, documents))


def test_retrievers_of_lists_have_neighbors(monkeypatch):
    monkeypatch.setattr(adapter, "_registered", {})
    register_store(Listed, ListedDocuments)
    chunks = windows("voyage.txt", 1)
    listed = Listed(docs=chunks[:5])
    documents = OrderPreservingRetriever(retriever=listed, neighbors=1).invoke(QUESTION)
    assert places(documents, chunks) == around(listed.invoke(QUESTION), chunks[:5], 1)


def test_equal_texts_have_the_neighbors_of_their_own_places(monkeypatch):
    """Where texts are the keys of a store."""
    monkeypatch.setattr(adapter, "_registered", {})
    register_store(Listed, ListedDocuments)
    texts = ["One.", "Chorus.", "Two.", "Three.", "Chorus.", "Four."]
    chunks = [Document(text, metadata={"source": "song", "start_index": 10 * at}) for at, text in enumerate(texts)]

    class First(Listed):
        def _get_relevant_documents(self, query, *, run_manager):
            return [chunks[int(query)]]

    register_store(First, ListedDocuments)
    retriever = OrderPreservingRetriever(retriever=First(docs=chunks), neighbors=1)
    for at in (1, 4):
        assert retriever.invoke(str(at)) == chunks[at - 1 : at + 2]
    # A chunk with a text that comes again is a neighbor too.
    assert retriever.invoke("5") == chunks[4:]


def test_equal_texts_without_positions_have_the_neighbors_of_their_own_places(monkeypatch):
    monkeypatch.setattr(adapter, "_registered", {})
    register_store(Listed, ListedDocuments)
    chunks = [Document(text, metadata={"source": "song"}) for text in ["A.", "Oh.", "B.", "C.", "D.", "Oh.", "E."]]

    class Found(Listed):
        def _get_relevant_documents(self, query, *, run_manager):
            return [chunks[int(number)] for number in query]

    register_store(Found, ListedDocuments)
    retriever = OrderPreservingRetriever(retriever=Found(docs=chunks), neighbors=1, on_uncertain="ignore")
    assert retriever.invoke("15") == [*chunks[:3], *chunks[4:]]
    assert retriever.invoke("03") == chunks[:5]
