"""The reading tools in agents of `create_agent`: around a passage, ranges, outlines, and what they refuse."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.messages import ToolMessage
from langchain_core.vectorstores import InMemoryVectorStore

from oprag.errors import OptionError, RetrievalWarning
from oprag.langchain import (
    OrderPreservingMiddleware,
    OrderPreservingRetriever,
    create_reading_tools,
    create_search_tool,
    working_context_of,
)
from tests.adapters.langchain.agents import ScriptedModel
from tests.adapters.langchain.conftest import numbers_of, parts, store_of
from tests.adapters.langchain.test_read_source import TEXTS, split
from tests.adapters.langchain.test_stored_neighbors import Same
from tests.unknown_store import UnknownStore


def calling(*calls: tuple[str, dict[str, Any]], query: str = "anything") -> ScriptedModel:
    """A model that searches once and then makes these calls, one in a turn."""
    turns: list[Any] = [[query], *([{"name": name, "args": args}] for name, args in calls)]
    return ScriptedModel(turns=[*turns, "Done."])


def state_after(searched: Any, *calls: Any, k: int = 1, budget: int = 4_000, **middleware: Any) -> Any:
    """The state of an agent that searched once and then made these calls, one in a turn."""
    options: dict[str, Any] = {"k": k} if isinstance(searched, InMemoryVectorStore) else {}
    search = create_search_tool(searched, **options)
    agent: Any = create_agent(
        calling(*calls),
        [search, *create_reading_tools(searched, token_budget=budget)],
        middleware=[OrderPreservingMiddleware(**middleware)],
    )
    return agent.invoke({"messages": [("user", "Go.")]}, {"recursion_limit": 100})


def results(state: Any) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def tools_of(searched: Any, **options: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in create_reading_tools(searched, **options)}


def read(searched: Any, source: str, start: int, end: int, **options: Any) -> str:
    """What `read_range` returns without an agent."""
    text: str = tools_of(searched, **options)["read_range"].invoke({"source": source, "start": start, "end": end})
    return text


def called(tools: dict[str, Any], name: str, **args: Any) -> ToolMessage:
    """The message of a tool, as an agent calls it."""
    message: ToolMessage = tools[name].invoke({"name": name, "args": args, "id": "1", "type": "tool_call"})
    return message


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("read_around", {"number": 99}, "no passage has the number 99; the numbers are 1 to 1"),
        ("read_around", {"number": True}, "number: Input should be a valid integer"),
        ("read_range", {"source": "voyage", "start": 1, "end": 2}, "unknown source voyage; did you mean voyage.txt?"),
        ("grep", {"pattern": " "}, "the pattern is empty"),
    ],
)
def test_refusals_are_messages_for_the_model(name, args, expected):
    state = state_after(store_of(parts()), (name, args))
    _, message = results(state)
    assert message.status == "error"
    assert expected in message.text
    assert len(working_context_of(state)) == 1


def test_numbers_need_a_working_context():
    store = store_of(parts())
    refused = "no passages are numbered yet: search first, in an agent with a working context; or read a range"
    assert refused in called(tools_of(store), "read_around", number=1).text
    assert refused in tools_of(store)["read_around"].invoke({"number": 1})
    agent: Any = create_agent(
        calling(("read_around", {"number": 1})), [create_search_tool(store), *create_reading_tools(store)]
    )
    message = results(agent.invoke({"messages": [("user", "Go.")]}))[1]
    assert (message.status, refused in message.text) == ("error", True)


def tenants() -> InMemoryVectorStore:
    """Two tenants with one name of a source, and with names of their own."""
    pairs = [chunk for two in zip(parts(tenant="red"), parts(tenant="blue"), strict=True) for chunk in two]
    own = [*parts(3, "red-secrets.txt", tenant="red"), *parts(3, "blue-secrets.txt", tenant="blue")]
    for chunk in pairs:
        chunk.page_content += f" It is {chunk.metadata['tenant']}."
    store: InMemoryVectorStore = store_of([*pairs, *own])
    return store


def is_red(document: Document) -> bool:
    return bool(document.metadata["tenant"] == "red")


@pytest.mark.parametrize("form", ["vectorstore", "retriever", "compressed", "ours"])
def test_nothing_outside_of_the_filter_is_read(form):
    store = tenants()
    options: dict[str, Any] = {"search_kwargs": {"filter": is_red}}
    plain = store.as_retriever(**options)
    searched: Any = {
        "vectorstore": store,
        "retriever": plain,
        "compressed": ContextualCompressionRetriever(base_compressor=Same(), base_retriever=plain),
        "ours": OrderPreservingRetriever(vectorstore=store, **options),
    }[form]
    tools = tools_of(searched, **(options if form == "vectorstore" else {}))
    assert called(tools, "outline").text.splitlines()[1:] == [
        "- red-secrets.txt: 3 chunks, 21 tokens",
        "- voyage.txt: 12 chunks, 98 tokens",
    ]
    message = called(tools, "read_range", source="voyage.txt", start=1, end=30)
    assert numbers_of(message.artifact) == list(range(12))
    assert all(map(is_red, message.artifact))
    hits = called(tools, "grep", pattern="Part", limit=99)
    assert all(map(is_red, hits.artifact))
    assert hits.text.splitlines()[-1].startswith("(15 hits in 15 chunks: chunks 1, 2, 3 of 3 of red-secrets.txt; ")
    assert called(tools, "grep", pattern="blue", ignore_case=True).text == "(no hits in 15 chunks)"
    assert "unknown source" in called(tools, "grep", pattern="Part", source="blue-secrets.txt").text
    for name, hint in (
        ("blue-secrets.txt", "the outline lists all sources"),
        ("secret", "did you mean red-secrets.txt?"),
    ):
        refused = called(tools, "read_range", source=name, start=1, end=2).text
        assert refused == f"unknown source {name}; {hint}"


class OwnStore(InMemoryVectorStore):
    """A store that may search in a way of its own."""


@pytest.mark.parametrize("kind", ["unknown", "subclass", "function"])
def test_what_cannot_list_its_chunks_refuses(kind):
    store = store_of(parts())
    searched: Any = {
        "unknown": UnknownStore(store),
        "subclass": store_of(parts(), OwnStore),
        "function": OrderPreservingRetriever(retriever=store.as_retriever() | (lambda found: found)),
    }[kind]
    with pytest.warns(RetrievalWarning, match="the reading tools will refuse every call"):
        tools = tools_of(searched)
    for message in (
        called(tools, "outline"),
        called(tools, "outline", source="voyage.txt"),
        called(tools, "read_range", source="voyage.txt", start=1, end=2),
        called(tools, "grep", pattern="Part"),
    ):
        assert message.status == "error"
        assert "cannot list the chunks of a source under the filter of the search; search instead" in message.text


def test_the_text_of_the_source_tells_the_order():
    chunks = split()
    tools = tools_of(store_of(chunks), store_order=False, read_source=TEXTS, token_budget=100_000)
    message = called(tools, "read_range", source="voyage.txt", start=1, end=1_000)
    text, note = message.text.rsplit("\n\n", 1)
    total = sum(chunk.metadata["source"] == "voyage.txt" for chunk in chunks)
    assert text == TEXTS["voyage.txt"].strip()
    assert note == f"(Chunks 1 to {total} of {total} of voyage.txt)"
    # Hits have the same numbers, also where all sources are searched.
    last = message.artifact[-1].page_content
    assert called(tools, "grep", pattern=last).text.endswith(f"chunk {total} of {total} of voyage.txt)")


def test_sources_are_named_as_in_retrieval():
    def stored(**metadata: Any) -> Any:
        return store_of([Document(f"Part {n} of book.", metadata={"chunk_index": n, **metadata}) for n in range(3)])

    note = "(Chunks 1 to 3 of 3 of {})"
    assert read(stored(source=7), "7", 1, 3).endswith(note.format("7"))
    assert read(stored(file_path="a/b.md"), "a/b.md", 1, 3).endswith(note.format("a/b.md"))
    assert read(stored(book="b", source="x"), "b", 1, 3, source_key="book").endswith(note.format("b"))
    by_function = {"source_key": lambda chunk: chunk.metadata["book"].upper()}
    assert read(stored(book="b", source="x"), "B", 1, 3, **by_function).endswith(note.format("B"))
    video = "https://www.youtube.com/watch?v=1&t=30s"
    assert read(stored(source=video), video.removesuffix("&t=30s"), 1, 3).endswith("watch?v=1)")
    assert called(tools_of(stored()), "outline").text == "0 sources, and 3 chunks without a source."


def test_bad_options():
    store = store_of(parts())
    with pytest.raises(OptionError, match="token_budget must be an integer >= 1"):
        create_reading_tools(store, token_budget=0)
    with pytest.raises(ValueError, match="retriever must be a LangChain retriever or vector store, got str"):
        create_reading_tools("store")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown option 'top_k'"):
        create_reading_tools(store, top_k=3)
    with pytest.raises(OptionError, match="which has its own options; set"):
        create_reading_tools(OrderPreservingRetriever(vectorstore=store), k=3)
