"""Citations in the blocks of LlamaIndex, and results in the form by which Claude cites.

`llama-index-llms-anthropic` sends a `CitableBlock` as a `search_result`, and returns a `CitationBlock` after the text
that cites it, with the title and source of the result and its indices.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    CitableBlock,
    CitationBlock,
    ContentBlock,
    MessageRole,
    TextBlock,
)
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.workflow import Context

from oprag.llama_index import (
    OrderPreservingFunctionAgent,
    cited_message,
    create_search_tool,
    working_context_of,
)
from tests.adapters.llama_index.agents import NumberedRetriever, ScriptedAgentLLM, Turn, agent_warnings
from tests.adapters.llama_index.engine.conftest import Model, engine_of, every_way, respond
from tests.adapters.scripted import QUESTION

pytestmark = agent_warnings

TURNS: list[Turn] = [[{"query": "9 3"}], [{"query": "5 3"}], 'See "Text 3 of" [1], "nothing" [2] and [9].']


def citing_tool() -> Any:
    return create_search_tool(NumberedRetriever(), content="search_result")


def passages(messages: list[ChatMessage]) -> list[CitableBlock]:
    """What a model can cite."""
    return [block for message in messages for block in message.blocks if isinstance(block, CitableBlock)]


def lines(messages: list[ChatMessage]) -> list[str | None]:
    return [message.content for message in messages if message.role == MessageRole.TOOL]


def claude(read: list[CitableBlock]) -> ChatMessage:
    """Cites every passage."""
    blocks: list[ContentBlock] = [TextBlock(text="So:")]
    for index, block in enumerate(read):
        location = {"search_result_index": index, "start_block_index": 0, "end_block_index": 1}
        (content,) = block.content
        assert isinstance(content, TextBlock)
        blocks.append(TextBlock(text=f"Fact {index}."))
        blocks.append(
            CitationBlock(
                cited_content=content, source=block.source, title=block.title, additional_location_info=location
            )
        )
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks)


def of_passage(message: ChatMessage) -> list[CitationBlock]:
    return [block for block in message.blocks if isinstance(block, CitationBlock)]


@pytest.mark.parametrize(
    ("layout", "numbers", "beside"),
    [
        ("delta", [1, 2, 3], [None, "[1] (already shown)"]),
        (
            "compact",
            [1, 3, 2],
            [
                "[1], [2] (shown in source order in the last search result)",
                "Everything that was found so far, in the order of the sources:",
            ],
        ),
    ],
)
async def test_claude_cites_our_passages(layout: Any, numbers: list[int], beside: list[str | None]):
    llm = ScriptedAgentLLM(turns=TURNS)
    agent = OrderPreservingFunctionAgent(llm=llm, tools=[citing_tool()], layout=layout)
    ctx = Context(agent)
    await agent.run("What?", ctx=ctx)
    read = passages(llm.calls[-1])
    assert [(block.title, block.source) for block in read] == [(f"[{number}] book", "book") for number in numbers]
    assert lines(llm.calls[-1]) == beside
    working = await working_context_of(Context.from_dict(agent, json.loads(json.dumps(ctx.to_dict()))))
    answer = claude(read)
    cited = working.cited(answer)
    assert (cited.text, cited.unknown, cited.misquoted) == (answer.content, (), ())
    assert [one.number for one in cited.citations] == numbers
    assert [cited.text[one.start : one.end] for one in cited.citations] == ["Fact 0.", "Fact 1.", "Fact 2."]


async def test_a_plain_agent_shows_each_passage_once_and_again_after_its_memory_dropped_it():
    llm = ScriptedAgentLLM(turns=[[{"query": "9 3"}], "A.", [{"query": "3"}], "B.", [{"query": "3 5"}], "C."])
    agent = FunctionAgent(llm=llm, tools=[citing_tool()])
    ctx = Context(agent)
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
    for _ in range(2):
        await agent.run("What?", ctx=ctx, memory=memory)
    assert lines(llm.calls[-1])[-1] == "[1] (already shown)"
    memory.reset()
    await agent.run("What?", ctx=ctx, memory=memory)
    assert [block.title for block in passages(llm.calls[-1])] == ["[1] book", "[3] book"]


async def test_an_answer_of_an_agent_as_a_message():
    agent = FunctionAgent(llm=ScriptedAgentLLM(turns=TURNS), tools=[create_search_tool(NumberedRetriever())])
    ctx = Context(agent)
    answer: Any = await agent.run("What?", ctx=ctx)
    cited = (await working_context_of(ctx)).cited(answer.response)
    assert cited == (await working_context_of(ctx)).cited(str(answer))
    message = cited_message(cited)
    assert message.content == str(answer)
    assert [(one.source, one.title, one.cited_content) for one in of_passage(message)] == [
        ("book", "book", TextBlock(text="Text 3 of")),
        ("book", "book", TextBlock(text="Text 9 of book.")),
    ]
    assert [one.additional_location_info["number"] for one in of_passage(message)] == [1, 2]
    assert [one.quote for one in cited.misquoted] == ["nothing"]


@every_way
async def test_a_response_of_an_engine_as_a_message(way: str):
    reply = "It sank [2], twice [1]."
    engine = engine_of(Model(reply=lambda prompt: reply), cite=True)
    response = await respond(engine, way)
    if way == "stream":
        response = response.get_response()
    elif way == "astream":
        response = await response.get_response()
    message = cited_message(response)
    assert message.content == reply
    places = [one.additional_location_info for one in of_passage(message)]
    assert [reply[one["start_index"] : one["end_index"]] for one in places] == ["[2]", "[1]"]
    assert message == cited_message(engine.answer(QUESTION))
    cited = [one["text"] for one in response.metadata["oprag"]["citations"]]
    assert [one.cited_content for one in of_passage(message)] == [TextBlock(text=one) for one in cited]
