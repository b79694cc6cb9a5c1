"""Where a query engine can stand: tools, agents, routers, sub-questions, retries, chat engines."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.memory import ChatMemoryBuffer

from tests.adapters.llama_index.conftest import numbers
from tests.adapters.llama_index.engine.conftest import Model, engine_of
from tests.adapters.scripted import QUESTION, both_sides


def chat_engine(inside: Model, *, streaming: bool = False, **options: Any) -> CondenseQuestionChatEngine:
    history = [
        ChatMessage(role=MessageRole.USER, content=QUESTION),
        ChatMessage(role=MessageRole.ASSISTANT, content="He sailed."),
    ]
    outside = Model(reply=lambda prompt: "What about the second voyage?")
    # The default memory is a database that nobody closes.
    memory = ChatMemoryBuffer.from_defaults(history, llm=outside)
    engine = engine_of(inside, streaming=streaming, **options)
    return CondenseQuestionChatEngine.from_defaults(engine, llm=outside, memory=memory)


@both_sides
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
async def test_a_chat_says_what_is_cited(is_async: bool, streaming: bool):
    engine = chat_engine(Model(reply=lambda prompt: "He sailed [3]."), streaming=streaming, cite=True)
    response: Any
    if streaming and is_async:
        response = await engine.astream_chat("And the second?")
        text = "".join([piece async for piece in response.async_response_gen()])
    elif streaming:
        response = engine.stream_chat("And the second?")
        text = "".join(response.response_gen)
    else:
        response = await engine.achat("And the second?") if is_async else engine.chat("And the second?")
        text = str(response)
    answered = response.sources[0].raw_output
    (citation,) = answered.metadata["oprag"]["citations"]
    assert text[citation["start"] : citation["end"]] == "[3]"
    assert citation["text"] == "Part 2 of voyage."
    (cited,) = [scored for scored in answered.source_nodes if scored.node.node_id in citation["ids"]]
    assert numbers([cited]) == [2]
