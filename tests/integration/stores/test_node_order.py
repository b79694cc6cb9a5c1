"""The sequence in which LlamaIndex's real stores received the nodes of a source, and the nodes around one."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from oprag import PositionKind
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingQueryEngine,
    OrderPreservingRetriever,
    StampPositions,
)
from tests.counting import CountingEmbeddings
from tests.integration.stores.checks import in_order, texts_of, told_by
from tests.integration.stores.conftest import Places
from tests.integration.stores.known import NodeEmbeddings
from tests.integration.stores.llama_index_stores import DIMENSION, KINDS

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

QUESTION = "Where does the river end?"
BY_NAME = {kind.name: kind for kind in KINDS}
IN_SEQUENCE = ["chroma_l2", "faiss_l2", "faiss_map", "postgres", "postgres_jsonb"]
DELETING = ["chroma_l2", "postgres"]
KEEPS_TEXTS = ["chroma_l2", "qdrant", "postgres"]
Fill = Callable[..., VectorStoreIndex]


MODEL = NodeEmbeddings(CountingEmbeddings(DIMENSION))


@pytest.fixture
def fill(places: Places, request: pytest.FixtureRequest) -> Iterator[Fill]:
    """Makes an index over a new store."""
    with ExitStack() as stack:
        numbers = iter(range(100))

        def make(kind: str, nodes: list[TextNode]) -> VectorStoreIndex:
            for node in nodes:
                node.excluded_embed_metadata_keys = list(node.metadata)
            # Names of tables must be short.
            name = hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
            place = stack.enter_context(places(f"order_{name}_{next(numbers)}"))
            return BY_NAME[kind].make(nodes, MODEL, place)

        yield make


def windows(source: str, seed: int, tenant: str = "red", count: int = 60) -> list[TextNode]:
    """Nodes that overlap, without a position and without links."""
    about = {"file_name": source, "tenant": tenant}
    return [TextNode(text=text, metadata=dict(about)) for text in texts_of(seed, count)]


def in_turn(*sources: list[TextNode]) -> list[TextNode]:
    return [node for nodes in zip(*sources, strict=True) for node in nodes]


def insert(index: VectorStoreIndex, nodes: list[TextNode], batch: int = 25) -> None:
    for start in range(0, len(nodes), batch):
        index.insert_nodes(nodes[start : start + batch])


def asked(retriever: OrderPreservingRetriever) -> tuple[list[Any], list[str]]:
    """The nodes for a question, and the warnings about it."""
    return told_by(retriever.retrieve, QUESTION)


def follow(found: Iterable[Any], nodes: list[TextNode], least: int = 8) -> bool:
    return in_order([one.node.text for one in found], [node.text for node in nodes], least)


# The sequence of the store.


@pytest.mark.parametrize("kind", IN_SEQUENCE)
def test_batches_and_sources_in_turn(kind: str, fill: Fill):
    first, second = windows("a's.txt", 1), windows("b.txt", 2)
    index = fill(kind, [])
    insert(index, in_turn(first, second))
    retriever = OrderPreservingRetriever(retriever=VectorIndexRetriever(index, 50))
    found, told = asked(retriever)
    assert follow(found, first)
    assert follow(found, second)
    assert told == []
    sources = retriever.get_context(QUESTION).sources
    assert {source.kind for source in sources} == {PositionKind.STORE}
    assert {source.field.partition(", ")[2] for source in sources} == {"59 of 59 neighbors overlap"}


@pytest.mark.parametrize("kind", DELETING)
def test_deletions(kind: str, fill: Fill):
    first, second = windows("a.txt", 1), windows("b.txt", 2)
    mixed = in_turn(first, second)
    index = fill(kind, mixed)
    retriever = OrderPreservingRetriever(retriever=VectorIndexRetriever(index, 50))
    assert asked(retriever)[1] == []
    gone = random.Random(3).sample(mixed, 20)
    index.delete_nodes([node.node_id for node in gone])
    # What the deleted nodes confirmed is remembered; for others some neighbors do not overlap any more.
    for one, warned in (
        (retriever, []),
        (OrderPreservingRetriever(retriever=VectorIndexRetriever(index, 50)), [True]),
    ):
        found, told = asked(one)
        assert follow(found, first)
        assert follow(found, second)
        assert ["in the order in which they were added to the store" in message for message in told] == warned


@pytest.mark.parametrize("kind", DELETING)
def test_tenants_are_kept_apart(kind: str, fill: Fill):
    mine, others = windows("report.txt", 1), windows("report.txt", 2, tenant="blue")
    index = fill(kind, in_turn(others, mine))
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="red")])
    retriever = OrderPreservingRetriever(retriever=VectorIndexRetriever(index, 40, filters=filters))
    found, told = asked(retriever)
    assert follow(found, mine, least=40)
    assert told == []
    assert "59 of 59 neighbors overlap" in retriever.get_context(QUESTION).sources[0].field


# The nodes around one.


def linked(tenant: str = "red") -> list[TextNode]:
    """The nodes of two documents, with links and offsets."""
    splitter = SentenceSplitter(chunk_size=40, chunk_overlap=0)
    documents = [
        Document(id_=name, text=" ".join(f"{name}{n}." for n in range(200)), metadata={"tenant": tenant})
        for name in ("ant", "bee")
    ]
    nodes: list[Any] = splitter.get_nodes_from_documents(documents)
    return nodes


def around(retriever: Any, nodes: list[TextNode], number: int, **options: Any) -> list[int]:
    """The numbers of the nodes that are returned where this one is found."""
    ours = OrderPreservingRetriever(retriever=retriever, **{"neighbors": 1, **options})
    found = ours.retrieve(nodes[number].text)
    at = {node.node_id: place for place, node in enumerate(nodes)}
    assert asyncio.run(ours.aretrieve(nodes[number].text)) == found
    return [at[one.node.node_id] for one in found]


@pytest.mark.parametrize("kind", KEEPS_TEXTS)
def test_neighbors_by_links_and_offsets(kind: str, fill: Fill):
    nodes = linked()
    index = fill(kind, random.Random(1).sample(nodes, len(nodes)))
    assert index.docstore.docs == {}
    retriever = VectorIndexRetriever(index, 1)
    last = max(number for number, node in enumerate(nodes) if node.ref_doc_id == "ant")
    for way in (retriever, index.as_retriever(similarity_top_k=1)):
        assert around(way, nodes, 3) == [2, 3, 4]
        assert around(way, nodes, 3, neighbors=2) == [1, 2, 3, 4, 5]
        assert around(way, nodes, last) == [last - 1, last]
        assert around(way, nodes, last + 1, index=index) == [last + 1, last + 2]
    engine = OrderPreservingQueryEngine(llm=MockLLM(), retriever=retriever, neighbors=1)
    found = engine.query(nodes[3].text).source_nodes
    assert [one.node.node_id for one in found] == [node.node_id for node in nodes[2:5]]
    for node in nodes:
        node.start_char_idx = node.end_char_idx = None
    by_links = fill(kind, random.Random(1).sample(nodes, len(nodes)))
    assert around(VectorIndexRetriever(by_links, 1), nodes, 3) == [2, 3, 4]
    assert around(VectorIndexRetriever(by_links, 1), nodes, last, store_order=False) == [last - 1, last]


@pytest.mark.parametrize("kind", KEEPS_TEXTS)
def test_neighbors_by_stamps_across_the_documents_of_a_file(kind: str, fill: Fill):
    splitter = SentenceSplitter(chunk_size=40, chunk_overlap=0)
    pages = [
        Document(text=" ".join(f"page{page}word{n}." for n in range(40)), metadata={"file_name": "a.pdf"})
        for page in range(3)
    ]
    nodes: list[Any] = StampPositions()(splitter.get_nodes_from_documents(pages))
    for node in nodes:
        node.start_char_idx = node.end_char_idx = None
    index = fill(kind, random.Random(1).sample(nodes, len(nodes)))
    last = max(number for number, node in enumerate(nodes) if node.ref_doc_id == pages[0].id_)
    assert around(VectorIndexRetriever(index, 1), nodes, last, neighbors=2) == list(range(last - 2, last + 3))


@pytest.mark.parametrize("kind", [*KEEPS_TEXTS, "faiss_l2"])
def test_neighbors_by_the_sequence_of_the_store(kind: str, fill: Fill):
    nodes = windows("a.txt", 1, count=20)
    index = fill(kind, in_turn(windows("b.txt", 2, count=20), nodes))
    # Qdrant keeps no sequence.
    assert around(VectorIndexRetriever(index, 1), nodes, 7) == ([7] if kind == "qdrant" else [6, 7, 8])


@pytest.mark.parametrize("kind", KEEPS_TEXTS)
def test_neighbors_pass_the_filter_of_the_search(kind: str, fill: Fill):
    nodes = linked()
    for number in (2, 5):
        nodes[number].metadata["tenant"] = "blue"
    index = fill(kind, nodes)
    red = MetadataFilters(filters=[MetadataFilter(key="tenant", value="red")])
    restricted = [VectorIndexRetriever(index, 1, filters=red)]
    if kind == "chroma_l2":
        by_keyword = {"where": {"tenant": "red"}}
        restricted.append(VectorIndexRetriever(index, 1, vector_store_kwargs=by_keyword))
    if kind == "qdrant":
        from qdrant_client import models

        condition = models.FieldCondition(key="tenant", match=models.MatchValue(value="red"))
        by_keyword = {"qdrant_filters": models.Filter(must=[condition])}
        restricted.append(VectorIndexRetriever(index, 1, vector_store_kwargs=by_keyword))
    for retriever in restricted:
        for options in ({}, {"index": index}, {"read_neighbors": index}):
            assert around(retriever, nodes, 3, neighbors=2, **options) == [0, 1, 3, 4, 6]
    assert around(VectorIndexRetriever(index, 1, doc_ids=["ant"]), nodes, 3) == [2, 3, 4]
    hits = VectorIndexRetriever(index, 1).retrieve(nodes[3].text)
    shown = OrderPreservingPostprocessor(read_neighbors=index, neighbors=1).postprocess_nodes(hits)
    assert [one.node.node_id for one in shown] == [node.node_id for node in nodes[2:5]]
