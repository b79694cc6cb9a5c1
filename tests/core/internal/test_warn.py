import asyncio
import sys
import threading
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import create_retriever_tool
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

import oprag
from oprag import Chunk, Context, build_context
from oprag._internal.warn import forget
from oprag.chunk import changed
from oprag.errors import OpragWarning, PositionWarning, RetrievalWarning, SourceWarning
from oprag.langchain import OrderPreservingRetriever
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingQueryEngine
from oprag.llama_index import OrderPreservingRetriever as OrderPreservingLlamaRetriever
from tests.helpers import hit

VAGUE = [hit(f"text {number}", number, source="book") for number in range(3)]
QUESTIONS = [f"Question {number}?" for number in range(11)]


class Found(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(f"text {number}", metadata={"source": "book"}) for number in range(3)]


def told(call: Callable[[], object]) -> list[warnings.WarningMessage]:
    """Our warnings, whatever a framework does to Python's own record of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [one for one in caught if issubclass(one.category, OpragWarning)]


def line_of(call: Callable[[], object]) -> int:
    forget()
    (warning,) = told(call)
    assert warning.category is PositionWarning
    assert warning.filename == __file__
    return warning.lineno


def here():
    return sys._getframe(1).f_lineno


def test_a_warning_points_at_the_caller():
    assert line_of(lambda: build_context(VAGUE)) == here()


class FoundNodes(LlamaRetriever):
    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(text=f"text {number}", metadata={"file_name": "book"})) for number in range(3)
        ]


def test_a_warning_points_through_llama_index():
    retriever = OrderPreservingLlamaRetriever(retriever=FoundNodes())
    assert line_of(lambda: retriever.retrieve("What?")) == here()
    engine = OrderPreservingQueryEngine(llm=MockLLM(), retriever=FoundNodes())
    assert line_of(lambda: engine.query("What?")) == here()
    nodes = FoundNodes().retrieve("What?")
    assert line_of(lambda: OrderPreservingPostprocessor().postprocess_nodes(nodes)) == here()


class ToolCallingModel(GenericFakeChatModel):
    """Says what it is told to say, whatever the tools."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def agent_that_searches(questions: Iterable[str]) -> Any:
    """LangChain's agent, whose model asks for one search after the other."""
    calls = [
        AIMessage("", tool_calls=[{"name": "search", "args": {"query": question}, "id": question}])
        for question in questions
    ]
    tool = create_retriever_tool(OrderPreservingRetriever(retriever=Found()), "search", "Searches the book.")
    return create_agent(ToolCallingModel(messages=iter([*calls, AIMessage("Done.")])), [tool])


CHAT = {"messages": [("user", "What?")]}
LIMIT: Any = {"recursion_limit": 100}


def test_an_agent_is_warned_once_at_the_line_that_runs_it():
    # It runs its tools in threads, where there is no line of the user.
    agent = agent_that_searches(QUESTIONS)
    answers: list[Any] = []
    assert line_of(lambda: answers.append(agent.invoke(CHAT, LIMIT))) == here()
    assert sum(message.type == "tool" for message in answers[0]["messages"]) == len(QUESTIONS)


def test_a_chain_is_warned_once_at_the_line_that_runs_it():
    chain = RunnableLambda(lambda question: question) | OrderPreservingRetriever(retriever=Found())
    assert line_of(lambda: [chain.invoke(question) for question in QUESTIONS]) == here()
    assert line_of(lambda: chain.batch(QUESTIONS)) == here()
    assert line_of(lambda: asyncio.run(chain.abatch(QUESTIONS))) == here()


def test_many_threads_are_warned_once():
    together = threading.Barrier(8)
    contexts: list[Any] = []

    def build() -> None:
        together.wait(timeout=60)
        contexts.append(build_context(VAGUE))

    def run() -> None:
        threads = [threading.Thread(target=build) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(told(run)) == 1
    assert len(contexts) == 8


def test_a_thread_of_its_own_does_not_point_at_what_the_main_thread_does():
    # Nothing of the user's is in that thread, and the main thread is busy with code of the user's, not waiting for us.
    ready: SimpleQueue[Chunk | None] = SimpleQueue()
    done: list[Future[Context]] = []

    def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(build_context, iter(ready.get, None)).add_done_callback(done.append)
            for chunk in [*VAGUE, None]:
                ready.put(chunk)
            while not done:
                pass

    (warning,) = told(run)
    assert warning.category is PositionWarning
    assert warning.filename != __file__
    assert not Path(warning.filename).is_relative_to(Path(oprag.__file__).parent)


def test_another_cause_is_told_as_well():
    unnamed = [Chunk("a", 0), Chunk("b", 1)]
    pages = [hit("a", 0, page=3), hit("b", 1), hit("c", 2)]
    other = [changed(chunk, metadata={**chunk.metadata, "source": "another book"}) for chunk in pages]
    ones = told(lambda: [build_context(chunks) for chunks in (VAGUE, unnamed, VAGUE, other, unnamed, other, VAGUE)])
    assert [one.category for one in ones] == [PositionWarning, SourceWarning, PositionWarning]
    assert "'another book'" in str(ones[2].message)


@pytest.mark.parametrize(
    ("category", "options"), [(PositionWarning, {}), (RetrievalWarning, {"order": "rank", "k": 3, "continuity": 0.3})]
)
def test_a_warning_that_is_an_error_is_one_every_time(category, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            with pytest.raises(category):
                build_context(VAGUE, **options)
    ours = told(lambda: [build_context(VAGUE, **options) for _ in range(3)])
    assert [one.category for one in ours].count(category) == 1


def test_no_more_causes_are_remembered_than_a_process_has_room_for():
    chunks = [hit(f"text {rank}", rank, chunk_index=rank) for rank in range(2)]
    misspelt = [f"key {number}" for number in range(1500)]
    assert len(told(lambda: [build_context(chunks, source_key=key) for key in misspelt])) == len(misspelt)
    assert not told(lambda: build_context(chunks, source_key=misspelt[-1]))
    assert told(lambda: build_context(chunks, source_key=misspelt[0]))
