"""The server, asked by the official client."""

import threading
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode
from pydantic import ValidationError

from oprag import DocumentIndex
from oprag.errors import InputFileError, OptionError
from oprag.langchain import OrderPreservingRetriever
from oprag.mcp import create_mcp_server
from oprag.mcp.server import server_of
from tests.helpers import WORDS
from tests.mcp.clients import connected

TEXTS = [f"Part {number} is about {word}." for number, word in enumerate(WORDS[:12])]
TOOLS = ["search", "read_around", "read_range", "outline", "grep"]


def vector_store(tenants=("book",)):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    for tenant in tenants:
        documents = [
            Document(f"{tenant}: {text}", metadata={"source": tenant, "start_index": 40 * row, "secret": "no place"})
            for row, text in enumerate(TEXTS)
        ]
        store.add_documents(documents)
    return store


def nodes():
    made = [
        TextNode(text=f"book: {text}", metadata={"source": "book", "start_index": 40 * row})
        for row, text in enumerate(TEXTS)
    ]
    return VectorStoreIndex(made, embed_model=MockEmbedding(embed_dim=8))


STORES = {
    "LangChain": vector_store,
    "LlamaIndex": nodes,
    "index": lambda: DocumentIndex.from_texts({"book": " ".join(TEXTS)}, chunk_size=5),
    "retriever": lambda: OrderPreservingRetriever(vectorstore=vector_store(), k=16),
}


def place(text):
    return int(text.split("Part ")[1].split()[0])


@pytest.mark.parametrize("kind", STORES)
async def test_any_store_is_searched_and_read_in_order(kind):
    options: dict[str, Any] = {} if kind == "retriever" else {"k": 5}
    server = create_mcp_server(STORES[kind](), **options)
    async with connected(server) as client:
        found = await client.call("search", query="What is about fjord?")
        assert not found.failed
        assert found.contents
        assert sorted(found.contents, key=place) == found.contents
        assert [document["number"] for document in found.documents] == list(range(1, len(found.contents) + 1))
        assert found.text.startswith("[1] book\n")
        read = await client.call("read_range", source="book", start=3, end=4)
        assert [place(text) for text in read.contents] == [2, 3]
        around = await client.call("read_around", number=1, before=1, after=1)
        assert found.contents[0] in around.contents
        assert "book: 12 chunks" in (await client.call("outline")).text
        hits = await client.call("grep", pattern="about (fjord|haven)", regex=True)
        assert [place(text) for text in hits.contents] == [5, 7]
        nothing = await client.call("grep", pattern="nowhere")
        assert (nothing.text, nothing.documents) == ("(no hits in 12 chunks)", [])


async def test_a_search_has_the_token_budget_of_the_server():
    server = create_mcp_server(vector_store(), k=12, token_budget=30, count_tokens=lambda text: len(text.split()))
    async with connected(server) as client:
        assert 0 < len((await client.call("search", query="fjord")).documents) < 6


async def test_tools_only_read_and_have_schemas():
    async with connected(create_mcp_server(vector_store())) as client:
        tools = await client.tools()
    assert list(tools) == TOOLS
    for tool in tools.values():
        hints = tool["annotations"]
        assert (hints["readOnlyHint"], hints["destructiveHint"], hints["openWorldHint"]) == (True, False, False)
        assert tool["outputSchema"]["properties"]
        assert all(value["description"] for value in tool["inputSchema"]["properties"].values())
    assert tools["search"]["inputSchema"]["required"] == ["query"]
    assert "show_again" not in tools["outline"]["inputSchema"]["properties"]


async def test_a_passage_is_shown_once_and_again_on_request():
    async with connected(create_mcp_server(vector_store(), k=4)) as client:
        first = await client.call("search", query="fjord")
        second = await client.call("search", query="fjord")
        assert second.text.startswith("[1], [2], [3], [4] (already shown)")
        assert "show_again=true" in second.text
        assert second.documents == first.documents
        assert (await client.call("search", query="fjord", show_again=True)).text == first.text


async def test_without_numbers_each_result_is_complete():
    async with connected(create_mcp_server(vector_store(), k=4, numbered=False)) as client:
        assert "read_around" not in await client.tools()
        results = [await client.call("search", query="fjord") for _ in range(2)]
        assert results[0] == results[1]
        assert "[1]" not in results[0].text
        assert {document["number"] for document in results[0].documents} == {None}


async def test_only_metadata_about_places_is_sent():
    async with connected(create_mcp_server(vector_store(), k=2)) as client:
        for document in (await client.call("search", query="fjord")).documents:
            assert set(document["metadata"]) == {"source", "start_index"}


READING: list[tuple[str, dict[str, Any]]] = [
    ("outline", {}),
    ("grep", {"pattern": "Part"}),
    ("read_range", {"start": 1, "end": 2}),
]


@pytest.mark.parametrize("numbered", [True, False])
async def test_a_tenant_sees_its_filter_alone(numbered):
    def mine(document):
        return document.metadata["source"] == "mine"

    server = create_mcp_server(vector_store(("mine", "other")), k=24, search_kwargs={"filter": mine}, numbered=numbered)
    async with connected(server) as client:
        assert len((await client.call("search", query="Part")).documents) == 12
        results = [
            await client.call("search", query="other: Part 3"),
            await client.call("outline"),
            await client.call("grep", pattern="Part"),
            await client.call("grep", pattern="other"),
        ]
        assert not any("other" in f"{result.text} {result.data}" for result in results)
        for tool, arguments in READING:
            refused = await client.call(tool, source="other", **arguments)
            assert refused.failed
            assert "unknown source" in refused.text


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": ""}),
    ("search", {"query": 5}),
    ("search", {}),
    ("search", {"query": "x" * 5_000}),
    ("search", {"query": "x", "show_again": "maybe"}),
    ("read_around", {"number": True}),
    ("read_around", {"number": 10**30}),
    ("read_around", {"number": 0}),
    ("read_around", {"number": 1, "before": -1}),
    ("read_range", {"source": "book", "start": 2, "end": 1}),
    ("read_range", {"source": "../../etc/passwd", "start": 1, "end": 1}),
    ("grep", {"pattern": ""}),
    ("grep", {"pattern": "(", "regex": True}),
    ("grep", {"pattern": "a{1,9999}{1,9999}", "regex": True}),
    ("grep", {"pattern": "x", "limit": 0}),
    ("delete", {"source": "book"}),
]


async def test_wrong_arguments_are_answered_and_the_server_goes_on():
    async with connected(create_mcp_server(vector_store(), k=2)) as client:
        await client.call("search", query="fjord")
        for tool, arguments in HOSTILE:
            try:
                result = await client.call(tool, **arguments)
            except Exception as error:  # noqa: BLE001 - major 2 answers an unknown tool with an error of the protocol
                assert tool == "delete", error  # noqa: PT017
                continue
            assert result.failed, (tool, arguments)
            assert len(result.text) < 2_000
            assert "Traceback" not in result.text
        assert not (await client.call("search", query="fjord", show_again=True)).failed


async def test_errors_of_a_store_are_answered_without_its_keys(monkeypatch):
    async def fail(*_, **__):
        raise ConnectionError("refused: https://u:hunter2secret@db.example/ with api_key=sk-proj-0123456789abcdefXYZ")

    monkeypatch.setattr(InMemoryVectorStore, "asimilarity_search_with_score", fail)
    async with connected(create_mcp_server(vector_store())) as client:
        result = await client.call("search", query="fjord")
    assert result.failed
    assert "refused" in result.text
    assert "hunter2secret" not in result.text
    assert "sk-proj" not in result.text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"name": "a name"}, OptionError),
        ({"token_budget": 0}, OptionError),
        ({"kk": 3}, ValidationError),
    ],
)
def test_options_are_checked_when_the_server_is_made(options, error):
    with pytest.raises(error):
        create_mcp_server(vector_store(), **options)


def test_something_else_is_no_store():
    with pytest.raises(ValidationError):
        create_mcp_server(["a text"])


async def test_calls_wait_for_a_store_that_is_being_made():
    release = threading.Event()

    def make(report):
        report(3, 12)
        release.wait(10)
        return vector_store()

    seen = []

    async def progress(done, total, message):
        seen.append((done, total))
        release.set()

    async with connected(server_of(make, name="slow", token_budget=1_000)) as client:
        found = await client.session.call_tool("search", {"query": "fjord"}, progress_callback=progress)
        assert "book" in found.content[0].text
    assert (3, 12) in seen


async def test_each_call_says_why_a_store_could_not_be_made():
    def make(report):
        raise InputFileError("no file could be read", None)

    async with connected(server_of(make, name="broken", token_budget=1_000)) as client:
        for _ in range(2):
            result = await client.call("search", query="fjord")
            assert result.failed
            assert "no file could be read" in result.text
