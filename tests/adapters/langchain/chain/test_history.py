"""A conversation, in every form in which LangChain's chains take one."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    ToolMessage,
)

from oprag.errors import QueryError
from oprag.methods import Message
from tests.adapters.langchain.chain.conftest import Model, chain_of, every_way, run
from tests.adapters.scripted import QUESTION, by_step

SAID = "Human: Who sailed?\nAssistant: Ada."
FORMS: list[Any] = [
    [HumanMessage("Who sailed?"), AIMessage("Ada.")],
    [HumanMessage("Who sailed?"), AIMessageChunk(content="A") + AIMessageChunk(content="da.")],
    [ChatMessage(content="Who sailed?", role="user"), ChatMessage(content="Ada.", role="assistant")],
    [HumanMessage([{"type": "text", "text": "Who sailed?"}]), AIMessage([{"type": "text", "text": "Ada."}])],
    [
        {"role": "user", "content": [{"type": "text", "text": "Who sailed?"}]},
        {"role": "tool", "content": "Ada sailed.", "tool_call_id": "1"},
        {"role": "assistant", "content": "Ada."},
    ],
    [("Who sailed?", "Ada.")],
    [("human", "Who sailed?"), ("ai", "Ada.")],
    [Message("user", "Who sailed?"), Message("assistant", "Ada.")],
    iter([HumanMessage("Who sailed?"), AIMessage("Ada.")]),
    [
        HumanMessage("Who sailed?"),
        AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}]),
        ToolMessage("Ada sailed.", tool_call_id="1"),
        AIMessage("Ada."),
    ],
]


@pytest.mark.parametrize("history", FORMS, ids=lambda history: type(history).__name__)
def test_every_form_is_the_same_conversation(history: Any):
    model = Model(reply=by_step)
    answer = chain_of(model).answer(QUESTION, chat_history=history)
    assert model.steps == ["condense", "answer"]
    assert model.read[0] == f"CONDENSE {SAID} Q: {QUESTION}"
    assert answer.standalone_question == by_step(model.read[0])
    assert answer.question == QUESTION


@pytest.mark.parametrize("history", [None, [], (), "", [ToolMessage("Found.", tool_call_id="1")]], ids=repr)
@every_way
async def test_no_conversation_is_none_in_every_form(history: Any, way: str):
    model = Model()
    result = await run(chain_of(model), way, {"input": QUESTION, "chat_history": history})
    assert model.steps == ["answer"]
    assert result["chat_history"] == history


@pytest.mark.parametrize(
    "history",
    [
        "Human: hi",
        [5],
        [("one",)],
        [{"role": "user"}],
        [{"role": [], "content": "a"}],
        [{"role": "narrator", "content": "a"}],
    ],
    ids=repr,
)
@every_way
async def test_what_is_no_conversation_is_refused(history: Any, way: str):
    model = Model()
    with pytest.raises(QueryError, match="chat_history"):
        await run(chain_of(model), way, {"input": QUESTION, "chat_history": history})
    assert model.calls == []
