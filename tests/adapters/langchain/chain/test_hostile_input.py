"""Input that is none: refused in words of ours, before anything is spent."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from oprag.errors import QueryError
from tests.adapters.langchain.chain.conftest import Found, Model, chain_of, every_way, run
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import QUESTION

NO_INPUT: list[Any] = [
    None,
    "",
    "  \n\t",
    b"bytes",
    5,
    3.5,
    True,
    [],
    [QUESTION],
    (QUESTION,),
    {QUESTION},
    object(),
    {},
    {"question": QUESTION},
    {"Input": QUESTION},
    {5: QUESTION},
    {"input": None},
    {"input": ""},
    {"input": " \u2003\n"},
    {"input": b"bytes"},
    {"input": 5},
    {"input": [QUESTION]},
    {"input": {"input": QUESTION}},
    {"input": HumanMessage(QUESTION)},
    HumanMessage(QUESTION),
]


@every_way
@pytest.mark.parametrize("given", NO_INPUT, ids=lambda given: repr(given).partition(" at 0x")[0][:30])
async def test_what_is_no_question_is_refused(way: str, given: Any):
    model, retriever = Model(), Found(documents=parts(2))
    with pytest.raises(QueryError) as caught:
        await run(chain_of(model, retriever=retriever), way, given)
    assert str(caught.value)
    assert model.calls == []
    assert retriever.asked == []


@every_way
@pytest.mark.parametrize(
    "question",
    ["?" * 50_000, "\x00", "\ud800 a lone surrogate", "a\u202eb", "🙂", "line\nline\r\nline", "-- ; DROP TABLE"],
    ids=lambda question: repr(question[:12]),
)
async def test_any_text_is_a_question(way: str, question: str):
    result = await run(chain_of(Model()), way, question)
    assert result["input"] == question
    assert result["answer"] == "An answer."


@every_way
async def test_the_input_is_not_changed(way: str):
    given = {"input": QUESTION, "chat_history": [("a", "b")], "choices": ["x", "y"], "deep": {"list": [1]}}
    kept = {**given, "chat_history": [("a", "b")], "choices": ["x", "y"], "deep": {"list": [1]}}
    result = await run(chain_of(Model()), way, given)
    assert given == kept
    assert result["deep"] is given["deep"]


@pytest.mark.parametrize("documents", [["text"], [None], None, "text", 5, [{"page_content": "a"}]], ids=repr)
@every_way
async def test_what_is_no_document_is_refused(way: str, documents: Any):
    from langchain_core.runnables import RunnableLambda

    from oprag.errors import OpragError

    with pytest.raises((OpragError, TypeError)):
        await run(chain_of(Model(), retriever=RunnableLambda(lambda given: documents)), way, QUESTION)


@pytest.mark.parametrize("config", [{"max_concurrency": -1}, {"max_concurrency": "8"}], ids=str)
@every_way
async def test_a_limit_that_is_none_is_refused_or_left_to_langchain(way: str, config: Any):
    """It must not hang."""
    with pytest.raises((ValueError, TypeError)):
        await run(chain_of(Model(), method="map_reduce"), way, QUESTION, config)
