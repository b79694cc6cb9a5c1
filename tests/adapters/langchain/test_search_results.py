"""Search results in graphs and loops of one's own, without the middleware."""

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel

from oprag.errors import OptionError, RetrievalWarning
from oprag.langchain import gather_search_results, lay_out_messages, working_context_of
from tests.adapters.langchain.agents import (
    dangling,
    found,
    results_in,
    shown,
)

CALL: dict[str, Any] = {"tool_call_id": "1", "name": "search", "id": "m1"}


def result(query: str, number: int, **changes: Any) -> ToolMessage:
    text, documents = shown(found(query))
    given = {"content": text, "tool_call_id": f"call-{number}", "id": f"m{number}", "artifact": documents}
    return ToolMessage(**{"name": "search", **given, **changes})


def gathered(*messages: Any, **state: Any) -> dict[str, Any]:
    """The state after the results were gathered, as `add_messages` makes it."""
    update = gather_search_results({"messages": list(messages), **state})
    by_id = {message.id: message for message in update.get("messages", ())}
    return {**state, **update, "messages": [by_id.get(message.id, message) for message in messages]}


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


def test_results_in_another_sequence_have_no_dangling_pointer():
    state = gathered(result("7 2", 1), result("7 9", 2), result("9 2", 3))
    working = working_context_of(state)
    for order in ([2, 1, 0], [1, 2, 0], [2], [1, 2], [0, 2], []):
        messages = lay_out_messages([state["messages"][place] for place in order], working)
        assert not dangling(messages, working)
        text = "".join(results_in(messages))
        wanted = {n for place in order for n in {0: (2, 7), 1: (7, 9), 2: (2, 9)}[place]}
        assert all(text.count(f"Part {number} of") == 1 for number in wanted)


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
