"""The retriever runs unchanged wherever a LangChain retriever does, and the model reads the source in order.

What counts is the prompt that the model was given.
"""

from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever
from tests.adapters.langchain.conftest import RecordingChatModel, numbers_of, parts, store_of
from tests.adapters.scripted import QUESTION, part_numbers

PROMPT = ChatPromptTemplate.from_messages([("system", "Answer from this:\n{context}"), ("human", "{input}")])


@pytest.fixture
def retriever(store: InMemoryVectorStore) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(vectorstore=store, k=6)


@pytest.fixture
def in_order(store: InMemoryVectorStore) -> list[int]:
    """The parts that the prompt must show, in the order of the source."""
    return sorted(numbers_of(store.similarity_search(QUESTION, k=6)))


def answer_from(model: RecordingChatModel, retriever: Any) -> Any:
    return create_retrieval_chain(retriever, create_stuff_documents_chain(model, PROMPT))


async def test_retrieval_qa(model, retriever, in_order):
    chain = RetrievalQA.from_chain_type(model, retriever=retriever, return_source_documents=True)
    result = chain.invoke({"query": QUESTION})
    assert result["result"] == "An answer."
    assert numbers_of(result["source_documents"]) == in_order
    assert await chain.ainvoke({"query": QUESTION}) == result
    assert [part_numbers(prompt) for prompt in model.prompts] == [in_order, in_order]


async def test_create_retrieval_chain(model, retriever, in_order):
    chain = answer_from(model, retriever)
    result = chain.invoke({"input": QUESTION})
    assert result["answer"] == "An answer."
    assert numbers_of(result["context"]) == in_order
    assert (await chain.ainvoke({"input": QUESTION}))["context"] == result["context"]
    streamed = list(chain.stream({"input": QUESTION}))
    assert [numbers_of(part["context"]) for part in streamed if "context" in part] == [in_order]
    assert [part_numbers(prompt) for prompt in model.prompts] == [in_order] * 3


def test_our_compressor_in_a_compression_retriever(store, model, in_order):
    base = store.as_retriever(search_kwargs={"k": 12})
    outer = ContextualCompressionRetriever(base_compressor=OrderPreservingCompressor(k=6), base_retriever=base)
    answer_from(model, outer).invoke({"input": QUESTION})
    assert part_numbers(model.prompts[0]) == in_order


async def test_around_an_ensemble(store, model):
    others = store_of(parts()[::2])
    ensemble = EnsembleRetriever(
        retrievers=[store.as_retriever(search_kwargs={"k": 5}), others.as_retriever(search_kwargs={"k": 4})],
        weights=[0.5, 0.5],
    )
    fused = numbers_of(ensemble.invoke(QUESTION))
    assert fused != sorted(fused)
    retriever = OrderPreservingRetriever(retriever=ensemble)
    answer_from(model, retriever).invoke({"input": QUESTION})
    assert part_numbers(model.prompts[0]) == sorted(fused)
    assert numbers_of(await retriever.ainvoke(QUESTION)) == sorted(fused)
    assert numbers_of(retriever.invoke(QUESTION, None, k=3)) == sorted(fused[:3])


def test_around_a_runnable_that_asks_several_questions(store, model):
    base = store.as_retriever()

    def several(question: str) -> list[Document]:
        found = base.batch([question, "Who sailed?", "Where to?"])
        unique = {document.id: document for documents in found for document in documents}
        return list(unique.values())

    union = numbers_of(several(QUESTION))
    assert union != sorted(union)
    answer_from(model, OrderPreservingRetriever(retriever=RunnableLambda(several))).invoke({"input": QUESTION})
    assert part_numbers(model.prompts[0]) == sorted(union)


class Searching(RecordingChatModel):
    """Searches once, then answers from what the tool said."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        if not isinstance(messages[-1], ToolMessage):
            call = {"name": "search", "args": {"query": QUESTION}, "id": "1", "type": "tool_call"}
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])
        return super()._generate(messages, stop, run_manager, **kwargs)


async def test_an_agent(retriever, in_order):
    model = Searching()
    agent: Any = create_agent(model, [create_retriever_tool(retriever, "search", "Searches the voyage.")])
    for result in (
        agent.invoke({"messages": [HumanMessage("What happened?")]}),
        await agent.ainvoke({"messages": [HumanMessage("What happened?")]}),
    ):
        assert result["messages"][-1].content == "An answer."
    assert [part_numbers(prompt) for prompt in model.prompts] == [in_order, in_order]


class State(TypedDict, total=False):
    question: str
    context: list[Document]
    answer: str


@pytest.mark.parametrize("options", [{}, {"annotate": True}, {"stitch": True, "separator": " "}], ids=str)
async def test_a_langgraph_node(store, model, in_order, options: dict[str, Any]):
    retriever = OrderPreservingRetriever(vectorstore=store, k=6, **options)

    def retrieve(state: State) -> State:
        return {"context": retriever.invoke(state["question"])}

    async def aretrieve(state: State) -> State:
        return {"context": await retriever.ainvoke(state["question"])}

    def answer(state: State) -> State:
        text = "\n".join(document.page_content for document in state["context"])
        return {"answer": str(model.invoke(text).content)}

    graph = StateGraph(State)
    graph.add_node("retrieve", RunnableLambda(retrieve, afunc=aretrieve))
    graph.add_node("answer", answer)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "answer")
    graph.add_edge("answer", END)
    app = graph.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    result = app.invoke({"question": QUESTION}, config)
    assert result["answer"] == "An answer."
    assert part_numbers(model.prompts[0]) == in_order
    saved = app.get_state(config).values["context"]
    assert saved == result["context"] == retriever.invoke(QUESTION)
    again = await app.ainvoke({"question": QUESTION}, {"configurable": {"thread_id": "2"}})
    assert again["context"] == result["context"]
