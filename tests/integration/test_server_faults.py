"""A model server that is killed at work, comes back, or refuses: one clear error, and the next try works."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from oprag.errors import ModelError
from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever
from oprag.llama_index import OrderPreservingQueryEngine
from tests.integration.asking import ASSEMBLY, CHUNKS, HOW, QUESTION
from tests.integration.clients import chat_openai, openai_like
from tests.integration.model_server import MortalServer

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def only_server():
    server = MortalServer()
    yield server
    server.kill()


@pytest.fixture
def server(only_server):
    """A server that is alive when a test begins."""
    if not only_server.alive:
        only_server.start()
    return only_server


@pytest.fixture
def model(server, wire):
    """Makes a client that tries once, unless it is told otherwise."""

    def make(**options):
        return chat_openai(server.address, wire, **{"max_retries": 0} | options)

    return make


@pytest.fixture
def chain(model, store):
    def make(method, llm=None, **options):
        retriever = OrderPreservingRetriever(vectorstore=store, **ASSEMBLY)
        return OrderPreservingChain(llm=llm or model(), retriever=retriever, method=method, **HOW | options)

    return make


class Best(BaseRetriever):
    """The nodes of the same chunks."""

    def __init__(self, store):
        super().__init__()
        self._store = store

    def _retrieve(self, query):
        found = self._store.similarity_search(query.query_str, k=CHUNKS)
        return [NodeWithScore(node=TextNode(text=one.page_content, metadata=one.metadata)) for one in found]


@pytest.fixture
def engine(server, wire, store):
    def make(method, *, endless=False, **options):
        model = openai_like(server.address, wire, endless=endless, max_retries=0)
        return OrderPreservingQueryEngine(llm=model, retriever=Best(store), method=method, **HOW | ASSEMBLY | options)

    return make


@contextmanager
def as_soon_as(condition: Callable[[], bool], action: Callable[[], Any]) -> Iterator[None]:
    """Do it when the condition holds, from another thread; not at all when the block has ended before."""
    ended = threading.Event()

    def wait() -> None:
        while not condition():
            if ended.wait(0.02):
                return
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def check_error(error, step):
    """One sentence that names the call, with what the client said behind it."""
    message = str(error)
    assert message.startswith(f"the model call {step!r}")
    assert "\n" not in message
    assert error.value.step == step
    assert error.value.error is error.__cause__
    assert type(error.__cause__).__name__ in message


def test_killed_while_an_answer_streams(chain, model, server):
    asked = chain("stuff", model(endless=True))
    pieces = asked.stream_answer(QUESTION)
    assert next(pieces)
    server.kill()
    with pytest.raises(ModelError) as caught:
        list(pieces)
    check_error(caught.value, "answer")

    with pytest.raises(ModelError) as caught:
        list(asked.stream_answer(QUESTION))
    check_error(caught.value, "answer")

    server.start()
    *texts, answer = chain("stuff").stream_answer(QUESTION)
    assert "".join(texts) == answer.text
    assert answer.text.strip()
    assert not answer.failed_calls


def test_killed_while_a_response_streams(engine, server):
    pieces = engine("stuff", endless=True, streaming=True).query(QUESTION).response_gen
    assert next(pieces)
    server.kill()
    with pytest.raises(ModelError) as caught:
        list(pieces)
    check_error(caught.value, "answer")

    server.start()
    response = engine("stuff", streaming=True).query(QUESTION)
    assert "".join(response.response_gen).strip()


@pytest.mark.parametrize("most", [1, 2])
def test_killed_while_passages_are_read(most, chain, model, server, wire):
    asked = chain("map_reduce", model(endless=True))
    with as_soon_as(lambda: server.working == most, server.kill), pytest.raises(ModelError) as caught:
        asked.answer(QUESTION, config={"max_concurrency": most})
    check_error(caught.value, "map")
    assert "of 3)" in str(caught.value)
    # None was begun when one had failed.
    assert len(wire.exchanges) == most


def test_the_clients_own_retries_outlast_a_restart(chain, model, server, wire):
    server.kill()
    with as_soon_as(lambda: wire.exchanges, server.start):
        answer = chain("map_rerank", model(max_retries=8)).answer(QUESTION)
    assert answer.text.strip()
    assert not answer.failed_calls
    # It was down: some requests were made in vain.
    assert len(wire.exchanges) > len(answer.calls)


def test_a_context_that_the_model_cannot_read(store, model):
    """The server refuses what is longer than its window, and says so."""
    retriever = OrderPreservingRetriever(vectorstore=store, k=120, token_budget=None)
    with pytest.raises(ModelError, match="exceeds the available context size") as caught:
        OrderPreservingChain(llm=model(), retriever=retriever).answer(QUESTION)
    check_error(caught.value, "answer")
    assert getattr(caught.value.__cause__, "status_code", None) == 400


def test_a_model_that_takes_too_long(chain, model):
    with pytest.raises(ModelError, match="Timeout") as caught:
        chain("stuff", model(endless=True, timeout=0.2)).answer(QUESTION)
    check_error(caught.value, "answer")
