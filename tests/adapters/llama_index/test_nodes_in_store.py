"""The nodes of LlamaIndex's own store: listed by their source, and given more metadata."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.indices.vector_store.retrievers.retriever import VectorIndexRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter, SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from oprag.errors import OptionError
from oprag.llama_index import OrderPreservingQueryEngine, OrderPreservingRetriever
from oprag.llama_index.nodes import chunk_of
from oprag.llama_index.vectors import neighbor_reader
from oprag.positions.stamp import stamps
from oprag.stores import StoreAdapter, StoredChunk
from oprag.stores.adapter import adapter_of
from oprag.stores.listing import chunks_in_search
from oprag.stores.llama_index_nodes import content_with
from tests.adapters.llama_index.conftest import RandomEmbedding, prose

QUESTION = "Where does the river end?"


def documents() -> list[Document]:
    chance = random.Random(1)
    return [
        Document(
            id_=name,
            text=prose(chance, 40),
            metadata={"file_name": f"{name}.txt", "tenant": tenant, "weight": 0.1, "tags": ["a", "é"], "none": None},
            excluded_embed_metadata_keys=["weight"],
        )
        for name, tenant in (("ant", "red"), ("bee", "blue"), ("cat", "red"))
    ]


def index_of(given: Sequence[Document], **options: Any) -> VectorStoreIndex:
    return VectorStoreIndex.from_documents(
        given,
        transformations=[SentenceSplitter(chunk_size=60, chunk_overlap=0)],
        embed_model=RandomEmbedding(embed_dim=16),
        **options,
    )


@pytest.fixture
def index() -> VectorStoreIndex:
    return index_of(documents())


def adapter(index: VectorStoreIndex, **search: Any) -> StoreAdapter:
    return over(index.vector_store, index.docstore, search, index.index_struct.nodes_dict)


def over(
    store: Any, docstore: Any, search: Any = MappingProxyType({}), nodes: Any = MappingProxyType({})
) -> StoreAdapter:
    found = adapter_of(store, search, nodes, docstore)
    assert found is not None
    return found


def listed(store: StoreAdapter, field: str = "", sources: Iterable[str] = ()) -> list[StoredChunk]:
    chunks = store.chunks(field, {*sources})
    assert chunks is not None
    return list(chunks)


def where(*conditions: Any, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=list(conditions), condition=condition)


RED = MetadataFilter(key="tenant", value="red")


# Listing.


@pytest.mark.parametrize(
    ("filters", "documents"),
    [
        (where(RED), {"ant", "cat"}),
        (where(RED, MetadataFilter(key="file_name", value="cat.txt")), {"cat"}),
        (where(RED, condition=FilterCondition.NOT), {"bee"}),
        (where(MetadataFilter(key="tags", value="é", operator=FilterOperator.CONTAINS)), {"ant", "bee", "cat"}),
        (where(MetadataFilter(key="document_id", value=["bee"], operator=FilterOperator.IN)), {"bee"}),
        (where(), {"ant", "bee", "cat"}),
    ],
)
def test_the_filter_of_the_search_counts(index, filters, documents):
    store = adapter(index, filters=filters)
    assert {chunk.node.ref_doc_id for chunk in listed(store)} == documents
    found = {one.node.node_id for one in index.as_retriever(similarity_top_k=99, filters=filters).retrieve(QUESTION)}
    assert {chunk.key for chunk in listed(store)} == found
    assert {chunk.node.ref_doc_id for chunk in listed(store, "file_name", ["cat.txt"])} == documents & {"cat"}


def test_a_keyword_that_may_be_a_filter_is_not_ignored(index):
    assert chunks_in_search(adapter(index, where={"tenant": "red"})) is None
    assert chunks_in_search(adapter(index, mmr_threshold=0.5)) is not None


def test_indexes_that_share_a_store_are_kept_apart():
    shared = StorageContext.from_defaults()
    one, other = (index_of(documents()[part], storage_context=shared) for part in (slice(0, 1), slice(1, 3)))
    assert {chunk.node.ref_doc_id for chunk in listed(adapter(one))} == {"ant"}
    assert {chunk.node.ref_doc_id for chunk in listed(adapter(other))} == {"bee", "cat"}
    assert {chunk.node.ref_doc_id for chunk in listed(adapter(other), "tenant", ["red"])} == {"cat"}


# Writing.


def added_to(index: VectorStoreIndex) -> dict[str, dict[str, Any]]:
    """What a numbering of all nodes writes."""
    chunks = listed(adapter(index))
    numbers = stamps([chunk_of(chunk.node, rank) for rank, chunk in enumerate(chunks)], None, None)
    return {
        chunk.key: {**number, "start_index": chunk.node.start_char_idx, "end_index": chunk.node.end_char_idx}
        for chunk, number in zip(chunks, numbers, strict=True)
    }


def as_it_was(index: VectorStoreIndex, added: dict[str, dict[str, Any]]) -> Any:
    """Everything about the nodes but what is added to them."""
    store, hits = adapter(index), index.as_retriever(similarity_top_k=99).retrieve(QUESTION)
    chunks = listed(store)
    vectors = store.vectors([chunk.key for chunk in chunks])
    return [
        (
            chunk.key,
            chunk.text,
            vectors[chunk.key],
            {name: value for name, value in chunk.metadata.items() if name not in added[chunk.key]},
            chunk.node.get_content(MetadataMode.EMBED),
            chunk.node.get_content(MetadataMode.LLM),
            chunk.node.relationships,
            index.docstore.get_document_hash(chunk.key),
        )
        for chunk in chunks
    ], [(hit.node.node_id, hit.score) for hit in hits]


def test_written_metadata_are_seen_by_searches_and_not_by_models(index):
    added = added_to(index)
    before = as_it_was(index, added)
    embedded = len(index._embed_model._embedded)
    adapter(index).write(added)
    assert as_it_was(index, added) == before
    assert {
        chunk.key: {name: chunk.metadata[name] for name in added[chunk.key]} for chunk in listed(adapter(index))
    } == (added)
    second = where(RED, MetadataFilter(key="chunk_index", value=1))
    found = index.as_retriever(filters=second).retrieve(QUESTION)
    assert {(one.node.ref_doc_id, one.node.metadata["chunk_index"]) for one in found} == {("ant", 1), ("cat", 1)}
    assert len(index._embed_model._embedded) == embedded
    adapter(index).write(added)
    assert as_it_was(index, added) == before


@pytest.mark.parametrize("unknown", [["other"], ["other", "another", "third"]])
def test_an_unknown_node_is_refused_before_anything_is_written(index, unknown):
    added = added_to(index)
    with pytest.raises(OptionError, match="SimpleVectorStore has no chunk with the id 'other'"):
        adapter(index).write(added | {key: {"chunk_index": 1} for key in unknown})
    assert not any("chunk_index" in chunk.metadata for chunk in listed(adapter(index)))


def test_an_interrupted_write_is_finished_by_the_next(index, monkeypatch):
    added, store = added_to(index), adapter(index)
    before = as_it_was(index, added)
    put, calls = index.docstore._kvstore.put, []

    def put_some(*args: Any, **options: Any) -> None:
        calls.append(args)
        if len(calls) > 7:
            raise KeyboardInterrupt
        put(*args, **options)

    monkeypatch.setattr(index.docstore._kvstore, "put", put_some)
    with pytest.raises(KeyboardInterrupt):
        store.write(added)
    monkeypatch.undo()
    complete = [added[chunk.key].items() <= chunk.metadata.items() for chunk in listed(store)]
    assert sum(complete) == 7
    assert all(done or "chunk_index" not in one.metadata for done, one in zip(complete, listed(store), strict=True))
    store.write(added)
    assert all(added[chunk.key].items() <= chunk.metadata.items() for chunk in listed(store))
    assert as_it_was(index, added) == before


def test_a_row_that_another_tool_wrote_is_not_changed():
    with pytest.raises(OptionError, match="the stored node 'n1' has no _node_content, as another tool wrote it"):
        content_with({"text": "Cats purr.", "page": 1}, {"chunk_index": 0}, "n1")


def test_a_docstore_of_another_kind_is_refused(index):
    class Shelf:
        """A docstore that only reads."""

        get_nodes = index.docstore.get_nodes

    with pytest.raises(OptionError, match="cannot write metadata to a Shelf"):
        over(index.vector_store, Shelf()).write(added_to(index))
    assert not any("chunk_index" in chunk.metadata for chunk in listed(adapter(index)))


# Neighbors, where the docstore has no links.


def windows(source: str, seed: int = 1, *, overlap: int = 40, **metadata: Any) -> list[TextNode]:
    """Nodes without a position and without links."""
    text = prose(random.Random(seed), 120)
    return [
        TextNode(id_=f"{source}{number}", text=text[start : start + 200], metadata={"file_name": source, **metadata})
        for number, start in enumerate(range(0, len(text) - 200, 200 - overlap))
    ]


def stored(nodes: Sequence[BaseNode]) -> VectorStoreIndex:
    return VectorStoreIndex(nodes, embed_model=RandomEmbedding(embed_dim=16))


def names(found: Iterable[Any]) -> list[str]:
    return [one.node.node_id for one in found]


def anchored(index: VectorStoreIndex, number: int, *, source: str = "a", **options: Any) -> Any:
    """A retriever, and a question for which it finds this node."""
    retriever = VectorIndexRetriever(index, similarity_top_k=1, **options)
    (node,) = index.docstore.get_nodes([f"{source}{number}"])
    return retriever, node.get_content(MetadataMode.EMBED)


def test_neighbors_by_the_sequence_of_the_store():
    index = stored(windows("b", 2) + windows("a") + windows("c", 3))
    retriever, text = anchored(index, 7)
    for ours in (
        OrderPreservingRetriever(retriever=retriever, neighbors=2),
        OrderPreservingRetriever(retriever=retriever, neighbors=2, index=index),
    ):
        assert names(ours.retrieve(text)) == ["a5", "a6", "a7", "a8", "a9"]
    engine = OrderPreservingQueryEngine(llm=MockLLM(), retriever=retriever, neighbors=1)
    assert names(engine.query(text).source_nodes) == ["a6", "a7", "a8"]
    off = OrderPreservingRetriever(retriever=retriever, neighbors=2, store_order=False)
    assert names(off.retrieve(text)) == ["a7"]


def test_neighbors_in_the_store_pass_the_filter_of_the_search():
    nodes = windows("a", tenant="red")
    for number in (3, 5):
        nodes[number].metadata["tenant"] = "blue"
    for number, node in enumerate(nodes):
        node.metadata["chunk_index"] = number
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="first" if number < 6 else "second")
    index = stored(nodes)
    for restriction, wanted in (
        ({"filters": where(RED)}, ["a1", "a2", "a4", "a6", "a7"]),
        ({"filters": where(RED), "doc_ids": ["first"]}, ["a1", "a2", "a4"]),
        ({"node_ids": ["a4", "a5", "a9"]}, ["a4", "a5", "a9"]),
    ):
        retriever, text = anchored(index, 4, **restriction)
        ours = OrderPreservingRetriever(retriever=retriever, neighbors=2)
        assert names(ours.retrieve(text)) == wanted
        given = OrderPreservingRetriever(retriever=retriever, neighbors=2, read_neighbors=index)
        assert names(given.retrieve(text)) == wanted


NOT_BLUE = MetadataFilter(key="tenant", value="blue", operator=FilterOperator.NE)


@pytest.mark.parametrize(
    ("filters", "tenants", "wanted", "others"),
    [
        pytest.param(where(RED), ["red"] * 7, list(range(7)), {}, id="all"),
        pytest.param(where(RED), ["red"] * 7, [2, 3], {"node_ids": ["a2", "a3", "a6"]}, id="nodes"),
        pytest.param(
            where(RED), ["red", "red", "red", "red", "blue", "red", "red"], [0, 1, 2, 3], {"shard": "a"}, id="others"
        ),
        pytest.param(where(NOT_BLUE), ["red", None, "red", "red", "red", "blue", "red"], [2, 3, 4], {}, id="missing"),
        pytest.param(
            where(MetadataFilter(key="tenant", value="blue"), condition=FilterCondition.NOT),
            ["red", None, "red", "red", "red", "blue", "red"],
            [2, 3, 4],
            {},
            id="none-of",
        ),
    ],
)
def test_linked_neighbors_in_a_docstore_pass_the_filter_of_the_search(filters, tenants, wanted, others):
    nodes = [TextNode(id_=f"a{number}", text=f"Part {number}.") for number in range(7)]
    for number, (node, tenant) in enumerate(zip(nodes, tenants, strict=True)):
        node.metadata = {"file_name": "a", **({} if tenant is None else {"tenant": tenant})}
        if number:
            node.relationships[NodeRelationship.PREVIOUS] = nodes[number - 1].as_related_node_info()
            nodes[number - 1].relationships[NodeRelationship.NEXT] = node.as_related_node_info()
    index = stored(nodes)
    retriever, text = anchored(index, 3, filters=filters, **others)
    ours = OrderPreservingRetriever(retriever=retriever, neighbors=3, read_neighbors=index.docstore)
    assert names(ours.retrieve(text)) == [f"a{number}" for number in wanted]
    # As for an index over a store with texts, whose nodes LlamaIndex does not list.
    hit, retriever._node_ids = chunk_of(nodes[3], 0, origin=NodeWithScore(node=nodes[3])), []
    assert len([*neighbor_reader(index.docstore, retriever)(hit, 1)]) > 1
    # What cannot be applied to nodes is refused.
    retriever._filters = where(MetadataFilter(key="tenant", value=1, operator=FilterOperator.GT))
    with pytest.raises(OptionError, match="the filter of the search cannot be applied to neighbors"):
        neighbor_reader(index.docstore, retriever)(hit, 1)


def test_a_node_whose_text_was_replaced_has_the_neighbors_of_its_own():
    parser = SentenceWindowNodeParser(window_size=1)
    nodes = parser.get_nodes_from_documents([Document(text=prose(random.Random(1), 12), id_="book")])
    for node in nodes:
        node.relationships = {NodeRelationship.SOURCE: node.relationships[NodeRelationship.SOURCE]}
    index = stored(nodes)
    retriever = VectorIndexRetriever(index, similarity_top_k=1)
    engine = OrderPreservingQueryEngine(
        llm=MockLLM(),
        retriever=retriever,
        neighbors=2,
        node_postprocessors=[MetadataReplacementPostProcessor(target_metadata_key="window")],
    )
    context = engine.query(nodes[5].get_content(MetadataMode.EMBED)).source_nodes
    joined = " ".join(one.node.get_content() for one in context)
    assert [joined.count(f"S{number} ") for number in range(12)] == [0] * 3 + [1] * 5 + [0] * 4
