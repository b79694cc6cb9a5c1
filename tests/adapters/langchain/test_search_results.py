"""Search results in graphs and loops of one's own, without the middleware."""

import json
from typing import Any, NotRequired

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel

from oprag.errors import OptionError, RetrievalWarning
from oprag.langchain import OrderPreservingMiddleware, gather_search_results, lay_out_messages, working_context_of
from tests.adapters.langchain.agents import (
    ScriptedModel,
    agent_of,
    asked,
    dangling,
    found,
    plain,
    results_in,
    search_tool,
    shown,
    thread,
)
from tests.adapters.scripted import both_sides

CALL: dict[str, Any] = {"tool_call_id": "1", "name": "search", "id": "m1"}
SEARCHES: list[Any] = [["7 2", "9"], ["2 30 7"], ["5"], "It is [1]."]


class State(MessagesState):
    working_context: NotRequired[dict[str, Any]]


def graph_of(model: ScriptedModel, *, layout: Any = "delta", checkpointer: Any = None) -> Any:
    """The loop of the LangGraph tutorials, with one more node."""

    def call_model(state: State) -> Any:
        messages = lay_out_messages(state["messages"], working_context_of(state), layout=layout)
        return {"messages": [model.invoke(messages)]}

    graph = StateGraph(State)
    graph.add_node("model", call_model)
    graph.add_node("tools", ToolNode([search_tool()]))
    graph.add_node("gather", gather_search_results)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "gather")
    graph.add_edge("gather", "model")
    return graph.compile(checkpointer=checkpointer)


@both_sides
@pytest.mark.parametrize("layout", ["delta", "compact"])
async def test_a_graph_of_ones_own_reads_what_an_agent_does(layout: Any, is_async: bool):
    ours, theirs = ScriptedModel(turns=SEARCHES), ScriptedModel(turns=SEARCHES)
    agent_of(ours, middleware=[OrderPreservingMiddleware(layout=layout)]).invoke(asked())
    graph = graph_of(theirs, layout=layout, checkpointer=InMemorySaver())
    result = await graph.ainvoke(asked(), thread()) if is_async else graph.invoke(asked(), thread())
    assert [plain(request) for request in theirs.requests] == [plain(request) for request in ours.requests]
    assert working_context_of(result).cited("[1]").unknown == ()


def result(query: str, number: int, **changes: Any) -> ToolMessage:
    text, documents = shown(found(query))
    given = {"content": text, "tool_call_id": f"call-{number}", "id": f"m{number}", "artifact": documents}
    return ToolMessage(**{"name": "search", **given, **changes})


def gathered(*messages: Any, **state: Any) -> dict[str, Any]:
    """The state after the results were gathered, as `add_messages` makes it."""
    update = gather_search_results({"messages": list(messages), **state})
    by_id = {message.id: message for message in update.get("messages", ())}
    return {**state, **update, "messages": [by_id.get(message.id, message) for message in messages]}


def test_only_what_is_new_is_in_the_update():
    first = gathered(HumanMessage("What?"), result("7 2", 1))
    assert gather_search_results(first) == {}
    update = gather_search_results({**first, "messages": [*first["messages"], result("2 9", 2)]})
    assert [message.id for message in update["messages"]] == ["m2"]
    assert set(update) == {"messages", "working_context"}
    assert gather_search_results({"messages": [HumanMessage("What?")]}) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "error"},
        {"artifact": []},
        {"artifact": "documents"},
        {"artifact": {"documents": found("7"), "others": found("8")}},
        {"artifact": [*found("7"), None]},
        {"artifact": [{"page_content": 5}]},
        {"artifact": None, "name": "research"},
        {"artifact": None, "name": "ls", "content": "/a/b.md"},
        {"artifact": [["Part"]]},
    ],
    ids=str,
)
def test_what_is_not_a_list_of_documents_is_left_alone(changes: Any):
    assert gather_search_results({"messages": [result("7", 1, **changes)]}) == {}


class FoundNode(NodeWithScore):
    """A node of a package that extends LlamaIndex."""


TEXT = 'Part 7 of "voyage.txt".\nIt is größer.'
PLAIN = {"page_content": TEXT, "metadata": {"source": "book", "start_index": 7}}
BLOCK = {
    "type": "search_result",
    "source": "https://b.c/1",
    "title": "[7] Page",
    "content": [{"type": "text", "text": TEXT}],
    "citations": {"enabled": True},
}
FORMS: dict[str, dict[str, Any]] = {
    "documents with scores": {"content": TEXT, "artifact": [(Document(TEXT), 0.5)]},
    "nodes": {
        "content": TEXT,
        "artifact": [FoundNode(node=TextNode(text=TEXT, metadata={"source": "book"}), score=0.5)],
    },
    "plain nodes": {"content": TEXT, "artifact": [{"text": TEXT, "metadata": {"source": "book"}, "id_": "1"}]},
    "structured content": {"content": TEXT, "artifact": {"structured_content": {"result": [PLAIN]}}},
    "structured content beside JSON": {
        "content": [{"type": "text", "text": json.dumps(PLAIN)}],
        "artifact": {"structured_content": {"result": [PLAIN]}},
    },
    "JSON": {"content": json.dumps([PLAIN], ensure_ascii=False), "artifact": None},
    "JSON in a mapping": {"content": json.dumps({"query": "7", "documents": [PLAIN]}), "artifact": None},
    "JSON in blocks": {"content": [{"type": "text", "text": json.dumps(PLAIN)}], "artifact": None},
    "plain documents without metadata": {
        "content": TEXT,
        "artifact": [{"page_content": TEXT, "metadata": None, "id": [1]}],
    },
    "documents that say that they have a number": {
        "content": TEXT,
        "artifact": [{"page_content": TEXT, "metadata": {"source": "a", "oprag": 5}, "id": 3}],
    },
    "blocks of another tool": {"content": [BLOCK], "artifact": [Document(TEXT)]},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")
def test_documents_of_any_form_are_gathered(form: str):
    state = gathered(result("7", 1, **FORMS[form]))
    (message,) = state["messages"]
    if form.startswith("blocks"):
        assert message.content == [BLOCK | {"source": "unknown", "title": "[1]"}]
    else:
        assert message.content.endswith(TEXT)
    assert message.artifact[0].metadata["oprag"] == {"rank": 0, "number": 1}
    (chunk,) = working_context_of(state).context().kept
    assert chunk.text == TEXT


def test_a_long_result_that_was_moved_to_a_file_is_gathered_and_stays_there():
    saved = "Tool result too large, the result of this tool call c1 was saved in the filesystem at this path: /large/c1"
    first = result("7", 1, content=f"{saved}\n\nHere is a preview of the result:\n1\tPart 7")
    state = gathered(first)
    assert state["messages"][0].content == first.content
    assert [chunk.text for chunk in working_context_of(state).context().kept] == ["Part 7 of voyage.txt."]
    # Its text was not shown, so the next search shows it.
    both = {**state, "messages": [*state["messages"], result("7", 2)]}
    update = gather_search_results(both)
    assert "Part 7 of voyage.txt." in update["messages"][0].content
    laid_out = lay_out_messages([*state["messages"], *update["messages"]], working_context_of({**both, **update}))
    assert [message.content for message in laid_out] == [first.content, update["messages"][0].content]


UNREADABLE = [
    ({"artifact": None}, "text without documents"),
    ({"artifact": [{"text": "Part"}]}, "a list of dict that are not documents"),
    ({"artifact": [("Part", 0.5)]}, "a list of tuple that are not documents"),
    ({"artifact": None, "content": [BLOCK]}, "search_result blocks without documents"),
    (
        {"artifact": None, "name": "recall", "content": "/retrieved/ab/chunk_1.md\n/retrieved/ab/chunk_2.md"},
        "paths of files",
    ),
]


@pytest.mark.parametrize(("changes", "form"), UNREADABLE)
def test_what_looks_like_a_search_and_cannot_be_read_is_told_once(changes: Any, form: str):
    name = changes.get("name", "search")
    state = {"messages": [result("7", number, **changes) for number in (1, 2)]}
    with pytest.warns(RetrievalWarning, match=f"tool '{name}' are not gathered: they are {form}; use ") as caught:
        assert gather_search_results(state) == {}
    assert len(caught) == 1


def test_a_message_of_content_blocks_becomes_text():
    message = result("7", 1, content=[{"type": "text", "text": "Part 7 of voyage.txt."}])
    assert gathered(message)["messages"][0].content == "[1] voyage.txt\nPart 7 of voyage.txt."


def test_results_in_another_sequence_have_no_dangling_pointer():
    state = gathered(result("7 2", 1), result("7 9", 2), result("9 2", 3))
    working = working_context_of(state)
    for order in ([2, 1, 0], [1, 2, 0], [2], [1, 2], [0, 2], []):
        messages = lay_out_messages([state["messages"][place] for place in order], working)
        assert not dangling(messages, working)
        text = "".join(results_in(messages))
        wanted = {n for place in order for n in {0: (2, 7), 1: (7, 9), 2: (2, 9)}[place]}
        assert all(text.count(f"Part {number} of") == 1 for number in wanted)


def test_changed_results_are_left_alone():
    state = gathered(result("7 2", 1), result("7 9", 2))
    cleared = state["messages"][0].model_copy(update={"content": "[cleared]"})
    messages = lay_out_messages([cleared, state["messages"][1]], working_context_of(state))
    assert messages[0] is cleared
    assert str(messages[1].content).startswith("[2] (already shown)")
    assert "Part 9" in messages[1].content


def numbered_elsewhere(text: str, content: str) -> ToolMessage:
    """A result whose document says that it was numbered before, as one that was stored again does."""
    document = Document(text, metadata={"source": "book", "oprag": {"number": 1, "rank": 0}})
    return ToolMessage(content, artifact=[document], tool_call_id="1", name="search", id="m1")


@pytest.mark.parametrize(
    "content", ["Mail [REDACTED] now.", "[redacted]", "Mail ", "[1] (already shown)"], ids=["part", "all", "cut", "own"]
)
@pytest.mark.filterwarnings("ignore:the results of the tool:oprag.errors.RetrievalWarning")
def test_metadata_cannot_bring_redacted_text_back(content: str):
    assert gather_search_results({"messages": [numbered_elsewhere("Mail ann@x.org now.", content)]}) == {}


def test_a_history_without_its_state_is_gathered_again():
    messages = gathered(result("7 2", 1), result("2 9", 2))["messages"]
    again = gather_search_results({"messages": messages})
    assert results_in(again["messages"]) == results_in(messages)
    # Not a message that was redacted since.
    hidden = [messages[0].model_copy(update={"content": "[redacted]"}), messages[1]]
    with pytest.warns(RetrievalWarning, match="are not gathered: the text of the result does not"):
        again = gather_search_results({"messages": hidden})
    assert "Part 7" not in json.dumps(again, default=str)


@pytest.mark.parametrize(
    ("message", "warning"),
    [
        (
            ToolMessage([{"type": "text", "text": "Part"}, {"type": "image", "url": "x"}], artifact=found("7"), **CALL),
            "something other than text, such as an image",
        ),
        (ToolMessage("Part 7 of voyage.txt.", artifact=5, **CALL), "a result without documents"),
        (ToolMessage("Part 7 of voyage.txt.", **CALL), "text without documents"),
    ],
    ids=["image", "number", "text alone"],
)
def test_a_named_tool_whose_results_cannot_be_read_is_reported(message: ToolMessage, warning: str):
    with pytest.warns(RetrievalWarning, match=f"the tool 'search' are not gathered: .*{warning}"):
        assert gather_search_results({"messages": [message]}, search_tools=["search"]) == {}


def test_states_that_are_objects_are_read():
    class Object(BaseModel):
        messages: list[Any]
        working_context: dict[str, Any] | None = None

    state = Object(messages=[result("7 2", 1)])
    update = gather_search_results(state)
    assert len(working_context_of(Object(**update))) == 2
    assert len(working_context_of(state)) == 0
    for wrong in (None, "state", 5):
        with pytest.raises(OptionError, match="expected the state of an agent, got"):
            working_context_of(wrong)


def test_two_messages_with_one_name_are_gathered_once():
    message = result("7", 1)
    state = gather_search_results({"messages": [message, message]})
    assert len(working_context_of(state)) == 1


def test_compact_shows_what_the_prompt_was_shown():
    state = gathered(result("7 2", 1), result("9", 2))
    working = working_context_of(state)
    (last,) = lay_out_messages(state["messages"][1:], working, layout="compact")
    assert "Part 9" in str(last.content)
    assert "Part 7" not in str(last.content)
    # Neither does it bring back what was redacted.
    redacted = state["messages"][0].model_copy(update={"content": "[redacted]"})
    first, last = lay_out_messages([redacted, state["messages"][1]], working, layout="compact")
    assert first is redacted
    assert "Part 7" not in str(last.content)
    only = gathered(result("7 2", 1), result("2", 2))
    redacted = only["messages"][0].model_copy(update={"content": "[redacted]"})
    _, last = lay_out_messages([redacted, only["messages"][1]], working_context_of(only), layout="compact")
    assert last.content == "[1] (already shown)"
