"""Continuity in LangChain: how many candidates are fetched, and by whom."""

import warnings
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import DocumentIndex
from oprag.errors import RetrievalWarning
from oprag.langchain import DocumentIndexRetriever, OrderPreservingRetriever, create_search_tool
from tests.adapters.langchain.conftest import giving, numbers_of, parts, store_of
from tests.adapters.scripted import QUESTION

K = 5


def fetched(store: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of documents that a store is asked for."""
    asked: list[int] = []
    search = type(store).similarity_search_with_score

    def recorded(self: Any, query: str, k: int = 4, **kwargs: Any) -> Any:
        asked.append(k)
        return search(self, query, k, **kwargs)

    monkeypatch.setattr(type(store), "similarity_search_with_score", recorded)
    return asked


def places(number: int) -> list[dict[str, Any]]:
    return [{"source": "den", "chunk_index": index} for index in range(number)]


def by_value(documents: list[Document], k: int) -> list[int]:
    """The numbers that are kept, given the documents by rank."""
    return numbers_of(OrderPreservingRetriever(retriever=giving(documents), k=k, continuity=0.5).invoke(QUESTION))


def test_four_times_k_documents_are_fetched_from_a_store(monkeypatch):
    store = store_of(parts(60))
    ranked = store.similarity_search(QUESTION, k=4 * K)
    asked = fetched(store, monkeypatch)
    retriever = OrderPreservingRetriever(vectorstore=store, k=K, continuity=0.5)
    found = numbers_of(retriever.invoke(QUESTION))
    assert asked == [4 * K]
    assert found == by_value(ranked, K)
    assert found != sorted(numbers_of(ranked[:K]))
    assert numbers_of(OrderPreservingRetriever(vectorstore=store, k=K).invoke(QUESTION)) == sorted(
        numbers_of(ranked[:K])
    )
    tool = create_search_tool(store, k=K, continuity=0.5)
    message = tool.invoke({"name": "search", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"})
    assert numbers_of(message.artifact) == found
    assert asked == [4 * K, K, 4 * K]


@pytest.mark.parametrize("is_async", [False, True])
async def test_four_times_k_chunks_are_fetched_from_an_index(is_async):
    index = DocumentIndex([f"fox {number % 7} {'den ' * (number % 5)}" for number in range(60)], places(60))
    retriever = OrderPreservingRetriever(retriever=DocumentIndexRetriever(index=index, k=K), k=K, continuity=0.5)
    context = await retriever.aget_context("fox den") if is_async else retriever.get_context("fox den")
    assert len(context.kept) + len(context.dropped) == 4 * K


def test_a_retriever_with_a_limit_of_its_own_is_told():
    store = store_of(parts(60))
    retriever = OrderPreservingRetriever(retriever=store.as_retriever(search_kwargs={"k": K}), k=K, continuity=0.5)
    with pytest.warns(RetrievalWarning, match=r"only k=5 candidates.*retrieve 20: raise max_candidates, or the limit"):
        retriever.invoke(QUESTION)
    wider = OrderPreservingRetriever(retriever=store.as_retriever(search_kwargs={"k": 20}), k=K, continuity=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numbers_of(wider.invoke(QUESTION)) == by_value(store.similarity_search(QUESTION, k=20), K)


def test_mmr_removes_what_continuity_prefers():
    with pytest.raises(ValueError, match=r'search_type="mmr" leaves out chunks that are similar'):
        OrderPreservingRetriever(vectorstore=store_of(parts(9)), search_type="mmr", k=3, continuity=0.3)
