"""Citations in the form of LangChain, and results in the form by which Claude cites.

The shapes of Claude's answers are those of `langchain-anthropic`: a text without citations is a string; with citations,
or with thinking, it is a list of blocks as in Anthropic's API, and `response_metadata` names the provider.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents.middleware import PIIMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from oprag import Chunk, WorkingContext
from oprag.agents.search_result_blocks import is_block
from oprag.langchain import (
    OrderPreservingMiddleware,
    cited_message,
    lay_out_messages,
    working_context_of,
)
from tests.adapters.langchain.agents import (
    ScriptedModel,
    agent_of,
    asked,
    has_whole_prefix,
    search_tool,
    thread,
)
from tests.adapters.scripted import both_sides

ANSWER = 'It sank [1]. "Part 7 of" [2], "nothing" [1]; see [9].'


def annotations_of(message: Any) -> list[Any]:
    return [one for block in message.content_blocks for one in block.get("annotations", [])]


def citing_agent(*turns: Any, **options: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(turns=[["7 2"], *turns], counts_calls=True)
    return agent_of(model, **{"middleware": [OrderPreservingMiddleware(cite=True)], **options}), model


async def invoked(agent: Any, is_async: bool, *args: Any) -> Any:
    return await agent.ainvoke(*args) if is_async else agent.invoke(*args)


def working(text: str = "She left port.", **metadata: Any) -> WorkingContext:
    one = WorkingContext()
    one.add([Chunk(text, 0, metadata=metadata)])
    return one


# The form of a citation.


def test_an_annotation_has_title_url_place_and_text():
    source = "https://example.com/log"
    one = working(source=source, start_index=5, page=3)
    (annotation,) = annotations_of(cited_message(one.cited("So [1].")))
    assert annotation == {
        "type": "citation",
        "title": source,
        "url": source,
        "start_index": 3,
        "end_index": 6,
        "cited_text": "She left port.",
        "extras": {
            "oprag": {
                "number": 1,
                "source": source,
                "section": "",
                "page": 3,
                "span": {"start": 5, "end": 19, "page": 3},
                "quote": None,
                "misquoted": False,
                "ids": [],
            }
        },
    }


@given(
    st.lists(st.sampled_from(["[1]", "[2]", "[1, 2]", '"', "```", "é", "𝄞", "\n"]) | st.text(max_size=4)).map("".join)
)
def test_the_text_stays_and_each_annotation_is_at_its_marker(text):
    cited = working(source="log").cited(text)
    message = cited_message(cited)
    assert message.text == text
    assert not any("url" in one for one in annotations_of(message))
    markers = [text[one["start_index"] : one["end_index"]] for one in annotations_of(message)]
    assert markers == [text[one.start : one.end] for one in cited.citations]
    assert all("1" in marker for marker in markers)
    assert json.loads(json.dumps(message.content)) == message.content
    # For a model it is the text again.
    (sent,) = lay_out_messages([message], WorkingContext())
    assert (sent.content, sent.response_metadata) == (text, {})


# The answer of an agent.


@both_sides
async def test_the_answer_of_an_agent_is_annotated(is_async: bool):
    agent, _ = citing_agent(ANSWER)
    result = await invoked(agent, is_async, asked())
    answer = result["messages"][-1]
    assert answer.text == ANSWER
    assert [(one["title"], one["cited_text"]) for one in annotations_of(answer)] == [
        ("voyage.txt", "Part 2 of voyage.txt."),
        ("voyage.txt", "Part 7 of"),
        ("voyage.txt", "Part 2 of voyage.txt."),
    ]
    # Reading the annotated message cites each passage once.
    for given_answer in (answer, answer.text):
        cited = working_context_of(result).cited(given_answer)
        assert [one.number for one in cited.citations] == [1, 2, 1]
        assert [one.quote for one in cited.misquoted] == ["nothing"]
        assert cited.unknown == (9,)


@both_sides
async def test_the_next_turn_sends_the_answer_as_the_model_wrote_it(is_async: bool):
    turns = [ANSWER, ["9 2"], "And so [3].", "Yes [1]."]
    agent, model = citing_agent(*turns, checkpointer=InMemorySaver())
    for question in ("What?", "And?", "Sure?"):
        result = await invoked(agent, is_async, asked(question), thread())
        assert annotations_of(result["messages"][-1])
    for first, second in zip(model.requests, model.requests[1:], strict=False):
        assert has_whole_prefix(first, second)
    answers = [message for message in model.requests[-1] if isinstance(message, AIMessage) and message.content]
    assert [(message.content, message.response_metadata) for message in answers] == [
        (ANSWER, {}),
        ("And so [3].", {}),
    ]


THINKING: list[Any] = [
    {"type": "thinking", "thinking": "Hm [1].", "signature": "abc"},
    {"type": "text", "text": "It sank [1]"},
    {"type": "text", "text": ", twice [2]."},
]


def test_blocks_of_thinking_stay_and_each_text_has_its_own_citations():
    agent, model = citing_agent(
        lambda _: AIMessage(THINKING, response_metadata={"model_provider": "anthropic"}),
        "Yes.",
        checkpointer=InMemorySaver(),
    )
    answer = agent.invoke(asked(), thread())["messages"][-1]
    reasoning, first, second = answer.content_blocks
    assert (reasoning["type"], reasoning["reasoning"]) == ("reasoning", "Hm [1].")
    for block, marker in ((first, "[1]"), (second, "[2]")):
        (annotation,) = block["annotations"]
        assert block["text"][annotation["start_index"] : annotation["end_index"]] == marker
    agent.invoke(asked(), thread())
    (sent,) = [message.content for message in model.requests[-1] if message.text == answer.text]
    assert sent == [{name: value for name, value in block.items() if name != "annotations"} for block in answer.content]


def test_what_another_middleware_redacts_stays_redacted():
    agent, model = citing_agent(
        "Write to ada@example.com [1].",
        "Yes.",
        middleware=[
            PIIMiddleware("email", apply_to_output=True),
            OrderPreservingMiddleware(cite=True),
        ],
        checkpointer=InMemorySaver(),
    )
    answer = agent.invoke(asked(), thread())["messages"][-1]
    assert answer.text == "Write to [REDACTED_EMAIL] [1]."
    assert len(annotations_of(answer)) == 1
    # Even if the annotated message is changed later.
    blocks = [{**answer.content[0], "text": "Write to nobody [1]."}]
    agent.update_state(thread(), {"messages": [answer.model_copy(update={"content": blocks})]})
    agent.invoke(asked(), thread())
    assert "ada@" not in str([message.content for message in model.requests[-1]])
    assert "Write to nobody [1]." in [message.content for message in model.requests[-1]]


def test_a_text_that_replaces_the_annotated_one_is_sent_as_it_is():
    agent, model = citing_agent(ANSWER, "Yes.", checkpointer=InMemorySaver())
    answer = agent.invoke(asked(), thread())["messages"][-1]
    agent.update_state(thread(), {"messages": [answer.model_copy(update={"content": "Nothing [1]."})]})
    agent.invoke(asked(), thread())
    sent = model.requests[-1][-2]
    # Without the mark of standard content, for which providers expect blocks.
    assert (sent.content, sent.response_metadata) == ("Nothing [1].", {})


def test_annotations_of_others_stay():
    other = {"type": "citation", "url": "https://a.b", "title": "B", "cited_text": "b"}
    message = AIMessage(
        [{"type": "text", "text": "It sank [1].", "annotations": [other]}], response_metadata={"output_version": "v1"}
    )
    agent, model = citing_agent(lambda _: message, "Yes.", checkpointer=InMemorySaver())
    answer = agent.invoke(asked(), thread())["messages"][-1]
    assert [one["title"] for one in annotations_of(answer)] == ["B", "voyage.txt"]
    agent.invoke(asked(), thread())
    (sent,) = [message for message in model.requests[-1] if message.text == "It sank [1]."]
    assert (sent.content, sent.response_metadata) == (message.content, message.response_metadata)


# Results by which Claude cites.


def location(block: dict[str, Any], index: int) -> dict[str, Any]:
    """The citation of a block, as in Anthropic's API."""
    return {
        "type": "search_result_location",
        "cited_text": block["content"][0]["text"],
        "source": block["source"],
        "title": block["title"],
        "search_result_index": index,
        "start_block_index": 0,
        "end_block_index": 1,
    }


def passages(messages: Any) -> list[Any]:
    """The `search_result` blocks that a model reads."""
    read = [message.content for message in messages if isinstance(message, ToolMessage)]
    return [block for content in read if isinstance(content, list) for block in content if is_block(block)]


def claude(messages: Any) -> AIMessage:
    """Cites every passage."""
    texts = [
        {"type": "text", "text": f"Fact {index}. ", "citations": [location(block, index)]}
        for index, block in enumerate(passages(messages))
    ]
    return AIMessage([{"type": "text", "text": "So: "}, *texts], response_metadata={"model_provider": "anthropic"})


@both_sides
@pytest.mark.parametrize(
    ("layout", "numbers"), [("delta", [1, 2, 3, 4]), ("compact", [1, 3, 2, 4])], ids=["delta", "compact"]
)
async def test_claude_cites_our_passages(layout: Any, numbers: list[int], is_async: bool):
    model = ScriptedModel(turns=[["7 2"], ["2 9 3"], claude])
    agent = agent_of(
        model, [search_tool(content="search_result")], middleware=[OrderPreservingMiddleware(layout=layout, cite=True)]
    )
    result = await invoked(agent, is_async, asked())
    read = passages(model.requests[-1])
    assert [block["title"] for block in read] == [f"[{number}] voyage.txt" for number in numbers]
    order = (2, 3, 7, 9) if layout == "compact" else (2, 7, 3, 9)
    assert [block["content"][0]["text"] for block in read] == [f"Part {part} of voyage.txt." for part in order]
    cited = working_context_of(result).cited(result["messages"][-1])
    assert [one.number for one in cited.citations] == numbers
    assert [cited.text[one.start : one.end] for one in cited.citations] == [f"Fact {index}. " for index in range(4)]
    assert (cited.unknown, cited.misquoted) == ((), ())
    # The same from the answer as Claude wrote it, and from LangChain's translation.
    written = claude(model.requests[-1])
    for answer in (written, AIMessage([dict(block) for block in written.content_blocks])):
        assert working_context_of(result).cited(answer) == cited
    # LangChain's annotations, with what we know in addition.
    given = annotations_of(result["messages"][-1])
    assert [one["title"] for one in given] == [block["title"] for block in read]
    assert [one["extras"].pop("oprag")["number"] for one in given] == numbers
    assert given == annotations_of(written)
    # As annotations of ours.
    assert [one["extras"]["oprag"]["number"] for one in annotations_of(cited_message(cited))] == numbers
