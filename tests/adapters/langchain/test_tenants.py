"""Two tenants in one store never mix: a filter arrives, or the call is refused."""

import functools
import operator
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest
from langchain_classic.chains.history_aware_retriever import create_history_aware_retriever
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableBranch, RunnableConfig, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from oprag.errors import OptionError
from oprag.langchain import OrderPreservingChain, OrderPreservingCompressor, OrderPreservingRetriever
from tests.adapters.langchain.conftest import RecordingChatModel, parts, store_of
from tests.adapters.scripted import QUESTION


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
    by_rank = OrderPreservingCompressor(order="rank")
    return ContextualCompressionRetriever(base_compressor=by_rank, base_retriever=ensemble(store))


DROPPING: list[Callable[[InMemoryVectorStore], Any]] = [
    ensemble,
    compression_of_an_ensemble,
    lambda store: Deaf(inner=store.as_retriever()),
    lambda store: store.as_retriever() | (lambda documents: documents),
]


@pytest.mark.parametrize("wrap", DROPPING, ids=["ensemble", "compression of an ensemble", "any keyword", "sequence"])
async def test_a_filter_that_would_be_dropped_is_refused(shared, wrap: Any):
    retriever = OrderPreservingRetriever(retriever=wrap(shared))
    with pytest.raises(OptionError, match="does not accept a filter"):
        retriever.invoke(QUESTION, None, filter=only("A"))
    with pytest.raises(OptionError, match="does not accept a filter"):
        await retriever.ainvoke(QUESTION, None, filter=only("A"))
    with pytest.raises(OptionError, match="does not accept a filter"):
        retriever.get_context(QUESTION, filter=only("A"))
    with pytest.raises(OptionError, match="does not accept a filter"):
        await retriever.aget_context(QUESTION, filter=only("A"))


class SyncOnly(BaseRetriever):
    inner: BaseRetriever

    def _get_relevant_documents(self, query: str, *, run_manager: Any, filter: Any = None) -> list[Document]:
        return self.inner.invoke(query, filter=filter)


class DeafAsync(SyncOnly):
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, **kwargs: Any) -> list[Document]:
        return await self.inner.ainvoke(query)


@pytest.mark.parametrize("kind", [SyncOnly, DeafAsync])
@pytest.mark.parametrize("around", [lambda inner: inner, lambda inner: inner.with_retry()], ids=["itself", "retry"])
async def test_a_filter_that_only_the_sync_method_accepts_holds_async(shared, kind: Any, around: Any):
    retriever = OrderPreservingRetriever(retriever=around(kind(inner=shared.as_retriever())))
    found = retriever.invoke(QUESTION, None, filter=only("A"))
    assert found
    assert await retriever.ainvoke(QUESTION, None, filter=only("A")) == found
    assert tenants(found) == {"A"}


def per_user(tenant: str) -> RunnableConfig:
    """LangChain's documented way to search for one user: a configurable field."""
    return {"configurable": {"search_kwargs": {"filter": only(tenant)}}}


@pytest.mark.parametrize("tenant", ["A", "B"])
async def test_per_user_configuration_reaches_the_wrapped_retriever_of_a_context(shared, tenant: str):
    inner = shared.as_retriever().configurable_fields(search_kwargs=ConfigurableField(id="search_kwargs"))
    retriever = OrderPreservingRetriever(retriever=inner)
    for context in (
        retriever.get_context(QUESTION, config=per_user(tenant)),
        await retriever.aget_context(QUESTION, config=per_user(tenant)),
    ):
        assert {chunk.metadata["tenant"] for chunk in context.kept} == {tenant}


def chain_over(retriever: Any, **options: Any) -> OrderPreservingChain:
    return OrderPreservingChain(llm=RecordingChatModel(), retriever=retriever, **options)


def per_question(tenant: str) -> dict[str, Any]:
    return {"input": QUESTION, "filter": only(tenant)}


@pytest.mark.parametrize("way", ["store", "wrapped", "ours"])
@pytest.mark.parametrize("tenant", ["A", "B"])
async def test_a_chain_takes_a_filter_for_one_question(shared, tenant: str, way: str):
    retriever = {
        "store": lambda: shared,
        "wrapped": lambda: shared.as_retriever(search_kwargs={"k": 20}),
        "ours": lambda: OrderPreservingRetriever(vectorstore=shared),
    }[way]()
    chain = chain_over(retriever)
    given = per_question(tenant)
    results = [
        chain.invoke(given),
        await chain.ainvoke(given),
        *chain.batch([given]),
        *await chain.abatch([given]),
        functools.reduce(operator.add, chain.stream(given)),
        functools.reduce(operator.add, [piece async for piece in chain.astream(given)]),
    ]
    for result in results:
        assert (len(result["context"]), tenants(result["context"])) == (12, {tenant})
        assert result["filter"] is given["filter"]
    for prompt in chain.llm.prompts:  # type: ignore[attr-defined]
        assert ("a.txt" in prompt, "b.txt" in prompt) == (tenant == "A", tenant == "B")
    assert tenants(chain.invoke({"input": QUESTION, "filter": None})["context"]) <= {"A", "B"}


def test_the_filter_holds_for_every_search_of_a_question(shared):
    model = RecordingChatModel(answers=["Who?\nWhere?", *["An answer."] * 3])
    chain = OrderPreservingChain(llm=model, retriever=shared, method="step_down", variants=2)
    answer = chain.answer(QUESTION, filter=only("A"))
    assert len(answer.contexts) == 3
    assert {chunk.metadata["tenant"] for context in answer.contexts for chunk in context.kept} == {"A"}


@pytest.mark.parametrize("wrap", DROPPING[:3], ids=["ensemble", "compression of an ensemble", "any keyword"])
async def test_a_filter_of_a_chain_that_would_be_dropped_is_refused(shared, wrap: Any):
    chain = chain_over(wrap(shared))
    with pytest.raises(OptionError, match="does not accept a filter"):
        chain.invoke(per_question("A"))
    with pytest.raises(OptionError, match="does not accept a filter"):
        await chain.ainvoke(per_question("A"))
    assert chain.llm.prompts == []  # type: ignore[attr-defined]


def test_a_runnable_that_gets_all_inputs_gets_the_filter_among_them(shared):
    def search(given: dict[str, Any]) -> list[Document]:
        found: list[Document] = shared.similarity_search(given["input"], k=20, filter=given["filter"])
        return found

    result = chain_over(RunnableLambda(search)).invoke(per_question("B"))
    assert (len(result["context"]), tenants(result["context"])) == (12, {"B"})


@pytest.mark.parametrize("follows_up", [False, True])
def test_a_filter_that_a_history_aware_retriever_would_drop_is_refused(shared, follows_up: bool):
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), ("human", "{input}")])
    chain = chain_over(create_history_aware_retriever(RecordingChatModel(), shared.as_retriever(), prompt))
    history = [("Who?", "The captain.")] if follows_up else []
    assert chain.invoke({"input": QUESTION, "chat_history": history})["answer"] == "An answer."
    with pytest.raises(OptionError, match="does not accept a filter"):
        chain.invoke({**per_question("A"), "chat_history": history})


def test_a_filter_that_one_branch_would_drop_is_refused(shared):
    search = RunnableLambda(itemgetter("input")) | shared.as_retriever()
    chain = chain_over(RunnableBranch((lambda given: "x" in given["input"], search), RunnableLambda(lambda _: [])))
    with pytest.raises(OptionError, match="does not accept a filter"):
        chain.invoke(per_question("A"))


@pytest.mark.parametrize(
    "name", ["filters", "Filter", "filter_", "k", "fetch_k", "top_k", "search_kwargs", "chat_histroy"]
)
async def test_an_input_that_would_be_ignored_is_refused(shared, name: str):
    chain = chain_over(shared)
    wrong: dict[str, Any] = {name: {"tenant": "A"}}
    given = {"input": QUESTION, **wrong}
    with pytest.raises(OptionError, match=f"'{name}'"):
        chain.invoke(given)
    with pytest.raises(OptionError, match=f"'{name}'"):
        await chain.ainvoke(given)
    with pytest.raises(OptionError, match=f"'{name}'"):
        next(chain.stream(given))
    with pytest.raises(OptionError, match=f"'{name}'"):
        chain.answer(QUESTION, **wrong)
    assert chain.llm.prompts == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "passed_on",
    [
        {"chat_history_id": 7, "filtered": True, "filter_name": "year"},
        {"choices": ["Yes", "No"], "choice": "A"},
        {"top_k": None, "filters": None, "search_kwargs": None},
    ],
    ids=["other names", "beside ours", "without a value"],
)
async def test_inputs_of_an_application_are_passed_on(shared, passed_on: dict[str, Any]):
    chain = chain_over(shared)
    given = {"input": QUESTION, **passed_on}
    for result in (chain.invoke(given), await chain.ainvoke(given)):
        assert {name: result[name] for name in passed_on} == passed_on


def test_an_input_that_is_understood_is_not_refused(shared):
    by_prompt = chain_over(shared, prompts={"answer": "{context} {question} at most {k} words"})
    assert by_prompt.invoke({"input": QUESTION, "k": 5})["answer"] == "An answer."
    assert by_prompt.llm.prompts[0].endswith("at most 5 words")  # type: ignore[attr-defined]
    everything = chain_over(RunnableLambda(lambda given: shared.similarity_search(given["input"], k=given["k"])))
    assert len(everything.invoke({"input": QUESTION, "k": 5})["context"]) == 5
    passed_on = {"input": QUESTION, "language": "French", "order": "A-17", "metadata": {}, "session_id": "1"}
    result = chain_over(shared).invoke(passed_on)
    assert {name: result[name] for name in passed_on} == passed_on


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_the_model_that_calls_a_tool_cannot_choose_the_filter(shared):
    tool = chain_over(shared).as_tool(name="ask", description="Answers.")
    assert sorted(tool.args) == ["chat_history", "input"]


def test_a_filter_as_a_keyword_of_the_call_is_refused_with_where_it_belongs(shared):
    with pytest.raises(OptionError, match="in the input"):
        chain_over(shared).invoke(QUESTION, filter=only("A"))
