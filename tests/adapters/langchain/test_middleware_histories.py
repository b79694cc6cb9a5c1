"""What holds for every conversation: parallel, failing and repeated searches, interrupts, and removed messages.

A generated conversation for every second example of the profile (see conftest.py). The source is numbered words, so
the words of a text say which chunks are shown, and in which order.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents.middleware import ToolRetryMiddleware, wrap_model_call
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver

from oprag import WorkingContext
from oprag.agents.layouts import Layout
from oprag.langchain import OrderPreservingMiddleware, working_context_of
from tests.adapters.langchain.agents import ScriptedModel, agent_of, asked, has_whole_prefix, results_in, thread

pytestmark = pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")

WORDS = [f"w{number:03d}" for number in range(90)]
LENGTH, STEP = 6, 4  # words
LABEL = re.compile(r"^\[(\d+)\](?!(?:, \[\d+\])* \((?:already )?shown)", re.MULTILINE)
MARKER = re.compile(r"\[(\d+)\]")
FAILED = "The search failed."


def part(number: int) -> Document:
    """The words of a chunk, of which the next chunk repeats the last two."""
    first = number * STEP
    metadata = {"source": "words.txt", "start_index": first * (len(WORDS[0]) + 1)}
    return Document(" ".join(WORDS[first : first + LENGTH]), metadata=metadata)


class Conversation(NamedTuple):
    """What an agent does.

    Attributes:
        turns: The queries of each step: numbers of chunks, and "fail" or "later", which fail always or once.
        layout: The layout of search results.
        token_budget: The token budget.
        kept: Maximum number of the last messages that the model sees after the question.
        interrupted: Whether the run stops before the tools, and goes on from its checkpoint.
    """

    turns: list[list[str]]
    layout: Layout
    token_budget: int | None
    kept: int | None
    interrupted: bool


queries = st.builds(
    lambda numbers, failing: " ".join([*map(str, numbers), *failing]),
    st.lists(st.integers(0, 20), max_size=6, unique=True),
    st.sampled_from([[], [], [], [], ["fail"], ["later"]]),
)
conversations = st.builds(
    Conversation,
    st.lists(st.lists(queries, min_size=1, max_size=3), min_size=1, max_size=5),
    st.sampled_from(["delta", "compact"]),
    st.sampled_from([None, None, 60]),
    st.sampled_from([None, None, 1, 3]),
    st.booleans(),
)


def search_tool() -> BaseTool:
    tried: Counter[str] = Counter()

    @tool(response_format="content_and_artifact")
    def search(query: str, call: Annotated[str, InjectedToolCallId]) -> tuple[str, list[Document]]:
        """Search."""
        tried[call] += 1
        if "fail" in query or ("later" in query and tried[call] == 1):
            raise OSError(FAILED)
        documents = [part(int(number)) for number in re.findall(r"\d+", query)]
        return "\n\n".join(one.page_content for one in documents), documents

    return search


def requests_of(conversation: Conversation, saver: Any) -> tuple[list[list[BaseMessage]], WorkingContext]:
    """The requests of a run, and its working context."""

    @wrap_model_call
    def trimming(request: Any, handler: Any) -> Any:
        question, *rest = request.messages
        while conversation.kept is not None and len(rest) > conversation.kept:
            rest = rest[1:]
        while rest and isinstance(rest[0], ToolMessage):
            rest = rest[1:]
        return handler(request.override(messages=[question, *rest]))

    model = ScriptedModel(turns=[*conversation.turns, "The end."], counts_calls=True)
    agent = agent_of(
        model,
        [search_tool()],
        middleware=[
            ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False, on_failure=lambda _: FAILED),
            trimming,
            OrderPreservingMiddleware(layout=conversation.layout, token_budget=conversation.token_budget),
        ],
        checkpointer=saver,
        interrupt_before=["tools"] if conversation.interrupted else None,
    )
    state = agent.invoke(asked(), thread())
    while agent.get_state(thread()).next:
        state = agent.invoke(None, thread())
    return model.requests, working_context_of(state, token_budget=conversation.token_budget)


def words(text: str) -> list[str]:
    return re.findall(r"\bw\d{3}\b", text)


def check(conversation: Conversation, requests: Sequence[Sequence[BaseMessage]], working: WorkingContext) -> None:
    for request in requests:
        texts = results_in(request)
        labelled = [int(number) for text in texts for number in LABEL.findall(text)]
        assert len(set(labelled)) == len(labelled)
        # The last result of "compact" has all texts; those of "delta" point back.
        readable = set(labelled) if conversation.layout == "compact" else set[int]()
        for text in texts:
            readable.update(map(int, LABEL.findall(text)))
            assert {int(number) for number in MARKER.findall(text)} <= readable
            assert words(text) == sorted(set(words(text)))
        if conversation.token_budget is None:
            found = [query for turn in calls_in(request) for query in turn]
            expected = {word for query in found for word in words_found(query)}
            assert {word for text in texts for word in words(text)} == expected
    if conversation.layout == "delta" and conversation.kept is None:
        for before, after in itertools.pairwise(requests):
            assert has_whole_prefix(before, after)
    gathered = {word for turn in conversation.turns for query in turn for word in words_found(query)}
    assert words(working.context(token_budget=None).text) == sorted(gathered)
    if gathered:
        shown = working.layout(layout="compact")[-1]
        assert conversation.token_budget is not None or words(shown) == sorted(gathered)


def calls_in(request: Sequence[BaseMessage]) -> list[list[str]]:
    return [
        [call["args"]["query"] for call in message.tool_calls] for message in request if isinstance(message, AIMessage)
    ]


def words_found(query: str) -> list[str]:
    if "fail" in query:
        return []
    return [word for number in re.findall(r"\d+", query) for word in part(int(number)).page_content.split()]


def in_sqlite() -> Any:
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    return sqlite.SqliteSaver(sqlite3.connect(":memory:", check_same_thread=False))


@pytest.mark.parametrize("saver", [InMemorySaver, in_sqlite])
@settings(max_examples=settings().max_examples // 2)
@given(conversations)
def test_every_request_of_every_conversation_is_whole(saver: Callable[[], Any], conversation: Conversation):
    requests, working = requests_of(conversation, saver())
    check(conversation, requests, working)
