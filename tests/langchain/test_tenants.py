"""Two tenants in one store never mix: a filter arrives, or the call is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableConfig
from langchain_core.vectorstores import InMemoryVectorStore

from oprag import OptionError
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever
from tests.langchain.conftest import QUESTION, parts, store_of


def only(tenant: str) -> Callable[[Document], bool]:
    return lambda document: document.metadata["tenant"] == tenant


@pytest.fixture
def shared() -> InMemoryVectorStore:
    store: InMemoryVectorStore = store_of(parts(source="a.txt", tenant="A") + parts(source="b.txt", tenant="B"))
    assert tenants(store.similarity_search(QUESTION, k=4)) == {"A", "B"}
    return store


def tenants(documents: list[Document]) -> set[str]:
    return {document.metadata["tenant"] for document in documents}


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
@pytest.mark.parametrize("tenant", ["A", "B"])
async def test_with_the_filter_of_the_construction(shared, tenant: str, search_type: Any):
    retriever = OrderPreservingRetriever(
        vectorstore=shared, search_type=search_type, search_kwargs={"filter": only(tenant)}
    )
    for found in (retriever.invoke(QUESTION), await retriever.ainvoke(QUESTION)):
        assert (len(found), tenants(found)) == (12, {tenant})
    for context in (retriever.get_context(QUESTION), await retriever.aget_context(QUESTION)):
        assert {chunk.metadata["tenant"] for chunk in context.kept} == {tenant}
        assert ("a.txt" in context.text, "b.txt" in context.text) == (tenant == "A", tenant == "B")


@pytest.mark.parametrize("search_type", ["similarity", "mmr"])
@pytest.mark.parametrize("tenant", ["A", "B"])
async def test_with_the_filter_of_a_call(shared, tenant: str, search_type: Any):
    retriever = OrderPreservingRetriever(vectorstore=shared, search_type=search_type)
    for found in (
        retriever.invoke(QUESTION, None, filter=only(tenant)),
        await retriever.ainvoke(QUESTION, None, filter=only(tenant)),
        retriever.batch([QUESTION], None, filter=only(tenant))[0],
        (await retriever.abatch([QUESTION], None, filter=only(tenant)))[0],
        retriever.bind(filter=only(tenant)).invoke(QUESTION),
    ):
        assert (len(found), tenants(found)) == (12, {tenant})


def test_a_filter_of_a_call_holds_for_that_call_alone(shared):
    retriever = OrderPreservingRetriever(vectorstore=shared)
    assert tenants(retriever.invoke(QUESTION, None, filter=only("A"))) == {"A"}
    assert tenants(retriever.invoke(QUESTION, None, filter=only("B"))) == {"B"}
    assert tenants(retriever.invoke(QUESTION)) == {"A", "B"}
    assert retriever.search_kwargs == {}


def test_the_filter_of_a_call_replaces_that_of_the_construction_as_in_langchain(shared):
    options = {"filter": only("A")}
    theirs = shared.as_retriever(search_kwargs=options).invoke(QUESTION, None, filter=only("B"))
    ours = OrderPreservingRetriever(vectorstore=shared, search_kwargs=options).invoke(QUESTION, None, filter=only("B"))
    assert tenants(ours) == tenants(theirs) == {"B"}


async def test_a_wrapped_store_retriever_is_given_the_filter(shared):
    retriever = OrderPreservingRetriever(retriever=shared.as_retriever(search_kwargs={"k": 20}))
    for found in (
        retriever.invoke(QUESTION, None, filter=only("A")),
        await retriever.ainvoke(QUESTION, None, filter=only("A")),
    ):
        assert (len(found), tenants(found)) == (12, {"A"})
    assert {chunk.metadata["tenant"] for chunk in retriever.get_context(QUESTION, filter=only("B")).kept} == {"B"}


class Filtering(BaseRetriever):
    """A retriever of the user's own that takes a filter by name."""

    documents: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any, filter: Any = None) -> list[Document]:
        return [document for document in self.documents if filter is None or filter(document)]


def test_a_retriever_that_names_a_filter_is_given_it(shared):
    documents = parts(source="a.txt", tenant="A") + parts(source="b.txt", tenant="B")
    retriever = OrderPreservingRetriever(retriever=Filtering(documents=documents))
    assert tenants(retriever.invoke(QUESTION, None, filter=only("B"))) == {"B"}


class Deaf(BaseRetriever):
    """Takes any keyword and heeds none."""

    inner: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        return self.inner.invoke(query)


def ensemble(store: InMemoryVectorStore) -> Any:
    return EnsembleRetriever(retrievers=[store.as_retriever()], weights=[1.0])


def compression_of_an_ensemble(store: InMemoryVectorStore) -> Any:
    """It hands keywords on to its base retriever, and LangChain drops them there."""
    return ContextualCompressionRetriever(base_compressor=OrderPreservingCompressor(), base_retriever=ensemble(store))


DROPPING: list[Callable[[InMemoryVectorStore], Any]] = [
    ensemble,
    compression_of_an_ensemble,
    lambda store: Deaf(inner=store.as_retriever()),
    lambda store: store.as_retriever() | (lambda documents: documents),
]


@pytest.mark.parametrize("wrap", DROPPING, ids=["ensemble", "compression of an ensemble", "any keyword", "sequence"])
async def test_a_filter_that_would_be_dropped_is_refused(shared, wrap: Any):
    retriever = OrderPreservingRetriever(retriever=wrap(shared))
    with pytest.raises(OptionError, match="takes no filter"):
        retriever.invoke(QUESTION, None, filter=only("A"))
    with pytest.raises(OptionError, match="takes no filter"):
        await retriever.ainvoke(QUESTION, None, filter=only("A"))
    with pytest.raises(OptionError, match="takes no filter"):
        retriever.get_context(QUESTION, filter=only("A"))
    with pytest.raises(OptionError, match="takes no filter"):
        await retriever.aget_context(QUESTION, filter=only("A"))


def test_a_filter_inside_the_wrapped_retriever_holds(shared):
    inner = shared.as_retriever(search_kwargs={"filter": only("A"), "k": 20})
    wrapped = EnsembleRetriever(retrievers=[inner], weights=[1.0])
    found = OrderPreservingRetriever(retriever=wrapped).invoke(QUESTION)
    assert (len(found), tenants(found)) == (12, {"A"})


def per_user(tenant: str) -> RunnableConfig:
    """LangChain's documented way to search for one user: a configurable field."""
    return {"configurable": {"search_kwargs": {"filter": only(tenant)}}}


@pytest.mark.parametrize("tenant", ["A", "B"])
async def test_per_user_configuration_of_the_retriever(shared, tenant: str):
    retriever = OrderPreservingRetriever(vectorstore=shared).configurable_fields(
        search_kwargs=ConfigurableField(id="search_kwargs")
    )
    assert tenants(retriever.invoke(QUESTION, config=per_user(tenant))) == {tenant}
    assert tenants(await retriever.ainvoke(QUESTION, config=per_user(tenant))) == {tenant}


@pytest.mark.parametrize("tenant", ["A", "B"])
async def test_per_user_configuration_reaches_the_wrapped_retriever(shared, tenant: str):
    inner = shared.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search_kwargs"))
    retriever = OrderPreservingRetriever(retriever=inner)
    assert tenants(retriever.invoke(QUESTION, config=per_user(tenant))) == {tenant}
    assert tenants(await retriever.ainvoke(QUESTION, config=per_user(tenant))) == {tenant}


@pytest.mark.parametrize("tenant", ["A", "B"])
async def test_per_user_configuration_reaches_the_wrapped_retriever_of_a_context(shared, tenant: str):
    inner = shared.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search_kwargs"))
    retriever = OrderPreservingRetriever(retriever=inner)
    for context in (
        retriever.get_context(QUESTION, config=per_user(tenant)),
        await retriever.aget_context(QUESTION, config=per_user(tenant)),
    ):
        assert {chunk.metadata["tenant"] for chunk in context.kept} == {tenant}
