"""The reading tools over LlamaIndex's real stores return the text of a source, in order, for one tenant."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, NodeRelationship
from llama_index.core.tools import FunctionTool
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from llama_index.core.workflow import Context

from oprag.llama_index import StampPositions, create_reading_tools, working_context_of
from tests.adapters.llama_index.agents import ScriptedAgentLLM, agent_warnings
from tests.adapters.llama_index.conftest import HashedWords
from tests.adapters.llama_index.test_reading_tools import BY_WORDS, after, around, range_of
from tests.integration.stores.conftest import Places
from tests.integration.stores.llama_index_stores import DIMENSION, KINDS, Kind

pytestmark = [
    *agent_warnings,
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

EACH = [kind for kind in KINDS if kind.alone or kind.name in ("faiss_map", "postgres_jsonb")]
MODEL = HashedWords(size=DIMENSION)


def markdown(topic: str) -> str:
    """A topic of Python's documentation, with its underlined headings in Markdown."""
    text = topics[topic]
    for level, line in enumerate("*=-~", 1):
        text = re.sub(rf"^(\S.*)\n\{line}+$", rf"{'#' * level} \1", text, flags=re.MULTILINE)
    return text


# Both tenants have "types", with different texts, and "assignment", with the same text.
TEXTS = {
    "red": {
        "types": markdown("types"),
        **{name: topics[name] for name in ("try", "assignment", "execmodel", "import")},
    },
    "blue": {"types": markdown("customization"), **{name: topics[name] for name in ("assignment", "debugger")}},
}

# The only thing that tells the order of a source's nodes. Except for "store", nodes are added in random order.
ORDERED_BY = {
    "types": "offsets",
    "try": "links",
    "assignment": "stamps",
    "execmodel": "read_source",
    "import": "store",
}


@dataclass(frozen=True)
class Source:
    """A text, its nodes in order, and the start and end of each in the text."""

    text: str
    nodes: list[Any]
    spans: list[tuple[int, int]]

    def chunks(self, first: int, last: int) -> list[str]:
        """The texts of chunks by their numbers, from 1."""
        return [self.text[start:end] for start, end in self.spans[first - 1 : last]]

    def size(self, first: int, last: int) -> str:
        """The size of chunks in words, as an outline shows it."""
        return f"{sum(len(chunk.split()) for chunk in self.chunks(first, last)):,} tokens"


def split(name: str, tenant: str) -> Source:
    """The nodes of a text, with nothing but what `ORDERED_BY` says to tell their order."""
    text = TEXTS[tenant][name]
    metadata = {"file_name": name, "tenant": tenant}
    document = Document(text=text, metadata=metadata, excluded_embed_metadata_keys=[*metadata])
    nodes: list[Any] = SentenceSplitter(chunk_size=200, chunk_overlap=40).get_nodes_from_documents([document])
    spans: list[tuple[int, int]] = []
    for node in nodes:
        start = text.index(node.text, spans[-1][0] + 1 if spans else 0)
        spans.append((start, start + len(node.text)))
    ordered_by = ORDERED_BY.get(name, "offsets")
    if ordered_by == "stamps":
        nodes = StampPositions()(nodes)
    for node in nodes:
        if ordered_by != "offsets":
            node.start_char_idx = node.end_char_idx = None
        if ordered_by not in ("offsets", "links"):
            node.relationships = {NodeRelationship.SOURCE: node.source_node}
    return Source(text, nodes, spans)


@dataclass(frozen=True)
class Library:
    """An index over one store, with the sources of both tenants, or of "red" alone if the store cannot filter."""

    kind: Kind
    index: VectorStoreIndex
    sources: dict[str, dict[str, Source]]

    def retriever(self) -> Any:
        """A retriever that finds one node of "red"."""
        return self.index.as_retriever(similarity_top_k=1, filters=only("red") if self.kind.filters else None)


def only(tenant: str) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)])


def reopened(index: VectorStoreIndex, folder: str) -> VectorStoreIndex:
    """The index as another program opens it."""
    store: Any = index.vector_store
    if store.stores_text:
        return VectorStoreIndex.from_vector_store(store, embed_model=MODEL)
    index.storage_context.persist(folder)
    stored = StorageContext.from_defaults(vector_store=type(store).from_persist_dir(folder), persist_dir=folder)
    opened = load_index_from_storage(stored, embed_model=MODEL)
    assert isinstance(opened, VectorStoreIndex)
    return opened


@pytest.fixture(scope="module")
def libraries(places: Places) -> Iterator[Callable[[Kind], Library]]:
    """Makes the library of a kind once."""
    with ExitStack() as stack:

        @cache
        def make(kind: Kind) -> Library:
            sources = {
                tenant: {name: split(name, tenant) for name in TEXTS[tenant]}
                for tenant in (TEXTS if kind.filters else ["red"])
            }
            nodes = [node for own in sources.values() for source in own.values() for node in source.nodes]
            random.Random(1).shuffle(nodes)
            in_turn = iter(sources["red"]["import"].nodes)
            nodes = [next(in_turn) if node.metadata["file_name"] == "import" else node for node in nodes]
            place = stack.enter_context(places(f"reading_{kind}"))
            return Library(kind, reopened(kind.make(nodes, MODEL, place), str(place.folder)), sources)

        yield make


@pytest.fixture
def library(request: pytest.FixtureRequest, libraries: Callable[[Kind], Library]) -> Library:
    return libraries(request.param)


def each(kinds: list[Kind]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("library", kinds, ids=str, indirect=True)


def texts(output: Any, tenant: str = "red") -> list[str]:
    """The texts of the nodes that a tool returned, all of them of one tenant."""
    assert {one.node.metadata["tenant"] for one in output.raw_output} == {tenant}
    return [one.node.text for one in output.raw_output]


# The library warns that links, and the sequence of the store, may not be enough.
@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
@pytest.mark.parametrize("name", ORDERED_BY)
@each(EACH)
async def test_an_agent_reads_on_from_what_it_found(library: Library, name: str):
    source, ordered_by = library.sources["red"][name], ORDERED_BY[name]
    results, ctx, (found, read, ranged) = await after(
        library.retriever(),
        [{"query": source.nodes[4].text}],
        [around(1, before=2, after=1)],
        [range_of(name, 6, 8)],
        **({"read_source": {name: source.text}} if ordered_by == "read_source" else {}),
    )
    assert texts(found) == source.chunks(5, 5)
    if ordered_by == "store" and library.kind.name == "qdrant":
        refusal = f"{name} cannot be read: the order of its chunks is not known; search instead"
        assert results[1:] == [refusal] * 2
        assert read.is_error
        return
    assert texts(read) == source.chunks(3, 6)
    assert texts(ranged) == source.chunks(6, 8)
    for result, chunks in ((results[1], "3 to 6"), (results[2], "6 to 8")):
        assert f"\n\n(Chunks {chunks} of {len(source.nodes)} of {name}" in result
        # Too few chunks overlap to confirm the sequence of the store.
        assert ("the order is uncertain" in result) == (ordered_by == "store")
    assert [chunk.text for chunk in (await working_context_of(ctx)).context().kept] == source.chunks(3, 8)


def reading(library: Library, **options: Any) -> tuple[FunctionTool, Any]:
    """`read_range`, and the context of an agent's run."""
    tool = {one.metadata.name: one for one in create_reading_tools(library.retriever(), **options)}["read_range"]
    return tool, Context(FunctionAgent(llm=ScriptedAgentLLM(turns=[]), tools=[tool]))


async def assert_all_was_read(source: Source, ctx: Any) -> None:
    """The working context equals the text, without repeated overlaps; the splitter strips only white space."""
    assert (await working_context_of(ctx)).context().text.split() == source.text.split()


@each(EACH)
async def test_a_source_is_read_to_its_end_within_the_token_budget(library: Library):
    source = library.sources["red"]["types"]
    read_range, ctx = reading(library, token_budget=700, **BY_WORDS)
    start, count = 1, len(source.nodes)
    while start <= count:
        read = await read_range.acall(source="types", start=start, end=count, ctx=ctx)
        assert len(read.content.split()) <= 700
        end = start + len(read.raw_output) - 1
        assert texts(read) == source.chunks(start, end)
        left = re.search(r"no room for chunks? (\d+)", read.content)
        assert (int(left[1]) if left else count + 1) == end + 1
        start = end + 1
    await assert_all_was_read(source, ctx)


def restrictions(kind: Kind, tenant: str) -> list[dict[str, Any]]:
    """Ways to restrict a search to a tenant: a filter, and keyword arguments of the store."""
    ways: list[dict[str, Any]] = [{"filters": only(tenant)}]
    if kind.name.startswith("chroma"):
        ways.append({"vector_store_kwargs": {"where": {"tenant": tenant}}})
    if kind.name == "qdrant":
        from qdrant_client import models

        condition = models.FieldCondition(key="tenant", match=models.MatchValue(value=tenant))
        ways.append({"vector_store_kwargs": {"qdrant_filters": models.Filter(must=[condition])}})
    return ways


@each([kind for kind in EACH if kind.filters])
async def test_nothing_of_another_tenant_is_read(library: Library):
    blue = library.sources["blue"]
    for restriction in restrictions(library.kind, "blue"):
        results, _, outputs = await after(
            library.index.as_retriever(similarity_top_k=1, **restriction),
            [{"query": blue["assignment"].nodes[4].text}],
            [around(1, before=99, after=99)],
            [range_of("types", 1, 999)],
            [{"tool": "outline"}],
            [{"tool": "outline", "source": "execmodel"}],
            [range_of("try", 1, 2)],
            budget=20_000,
        )
        assert texts(outputs[0], "blue") == blue["assignment"].chunks(5, 5)
        assert texts(outputs[1], "blue") == blue["assignment"].chunks(1, 999)
        assert texts(outputs[2], "blue") == blue["types"].chunks(1, 999)
        assert [line.split(":")[0] for line in results[3].splitlines()] == [
            "3 sources",
            *(f"- {name}" for name in sorted(blue)),
        ]
        assert [output.is_error for output in outputs] == [False] * 4 + [True] * 2
        assert results[4].startswith("unknown source execmodel; ")
        assert results[5].startswith("unknown source try; ")
