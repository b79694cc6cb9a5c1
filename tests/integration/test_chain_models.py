"""Every method through LangChain's OpenAI client, a real server and a real model."""

import pytest

from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever
from oprag.methods import Answer
from tests.integration.asking import (
    ASSEMBLY,
    HOW,
    METHODS,
    ORDERED,
    QUESTION,
    check_calls,
    check_method,
    check_order,
)
from tests.integration.clients import chat_openai

pytestmark = pytest.mark.integration


@pytest.fixture
def chain(model_server, wire, store, embeddings, reference):
    """Makes a chain with a method, and options of its own."""

    def make(method, *, stream_usage=True, grammar=None, **options):
        body = None if grammar is None else {"grammar": grammar}
        model = chat_openai(model_server, wire, stream_usage=stream_usage, extra_body=body)
        return OrderPreservingChain(
            llm=model,
            retriever=OrderPreservingRetriever(vectorstore=store, **ASSEMBLY),
            embeddings=embeddings,
            read_source={"python-reference": reference},
            method=method,
            **HOW | options,
        )

    return make


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers(method, chain, wire):
    answer = chain(method).answer(QUESTION)
    check_calls(answer, wire)
    check_method(answer, method)
    assert not any(exchange.streamed for exchange in wire.exchanges)
    if method in ORDERED:
        check_order(answer)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_streams(method, chain, wire):
    pieces = []
    early = False
    for piece in chain(method).stream_answer(QUESTION):
        early = early or wire.exchanges[-1].ended is None
        pieces.append(piece)
    *texts, answer = pieces
    check_calls(answer, wire)
    check_method(answer, method)
    assert "".join(texts) == answer.text
    if method == "map_rerank":
        assert len(texts) == 1
    else:
        assert len(texts) > 2
        assert early
        assert wire.exchanges[-1].streamed


def test_without_figures_for_streams_an_estimate_says_so(chain, wire):
    *_, answer = chain("map_reduce", stream_usage=False).stream_answer(QUESTION)
    assert isinstance(answer, Answer)
    *maps, last = answer.calls
    assert [call.usage.estimated for call in maps] == [False] * len(maps)
    assert last.usage.estimated
    assert answer.usage.estimated
    assert 0.5 < last.usage.input_tokens / maps[0].usage.input_tokens < 2


def test_the_whole_source_is_read_where_the_context_is_refused(chain, wire):
    """A grammar of the server has the small model write what a large one would."""
    *texts, answer = chain("self_route", grammar='root ::= "Unanswerable."').stream_answer(QUESTION)
    check_calls(answer, wire)
    check_method(answer, "self_route")
    assert answer.route == "long_context"
    # The first refusal was held back.
    assert "".join(texts) == "Unanswerable."
