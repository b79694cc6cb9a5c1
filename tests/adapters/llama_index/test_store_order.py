"""Nodes without offsets and links: their order is that of the index."""

import asyncio
import random
import warnings

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

from oprag import PositionKind
from oprag._internal.warn import forget
from oprag.llama_index import OrderPreservingRetriever
from tests.adapters.llama_index.conftest import RandomEmbedding
from tests.helpers import prose

QUESTION = "Where does the river end?"


def windows(source, seed, **metadata):
    """Nodes that overlap, without a position."""
    chance = random.Random(seed)
    text = "".join(chance.choices("abdefgilmnoprstu    ", k=4_000))
    return [
        TextNode(text=text[start : start + 200], metadata={"file_name": source, **metadata})
        for start in range(0, len(text) - 40, 160)
    ]


def index_of(nodes):
    return VectorStoreIndex(nodes=nodes, embed_model=RandomEmbedding(embed_dim=16))


def numbers(found, nodes):
    at = {node.node_id: number for number, node in enumerate(nodes)}
    return [at[scored.node.node_id] for scored in found if scored.node.node_id in at]


def asked(retrieve):
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = retrieve(QUESTION)
    return found, [str(warning.message) for warning in caught]


def test_a_retriever_takes_the_order_of_the_index():
    nodes = windows("voyage.txt", 1)
    retriever = OrderPreservingRetriever(retriever=index_of(nodes).as_retriever(similarity_top_k=15))
    found, told = asked(retriever.retrieve)
    assert numbers(found, nodes) == sorted(numbers(found, nodes))
    assert (len(found), told) == (15, [])
    (source,) = retriever.get_context(QUESTION).sources
    assert source.kind is PositionKind.STORE
    assert "SimpleVectorStore, 24 of 24 neighbors overlap" in source.field
    assert numbers(asyncio.run(retriever.aretrieve(QUESTION)), nodes) == numbers(found, nodes)


SECTIONS = [prose(40 if seed % 2 else 220, seed) for seed in range(5)]


def sections(**metadata):
    """Nodes of a file that a reader made several documents of, in each of which the offsets begin at 0."""
    documents = [
        Document(text=text, metadata={"file_name": "a.md", **dict.fromkeys(metadata, number)})
        for number, text in enumerate(SECTIONS)
    ]
    return SentenceSplitter(chunk_size=128, chunk_overlap=0).get_nodes_from_documents(documents)


def test_offsets_of_several_documents_of_a_file_are_not_compared():
    nodes = sections()
    some = nodes[1:3]
    assert some[0].start_char_idx > some[1].start_char_idx == 0
    for index in (index_of(some), index_of(nodes)):
        found, told = asked(OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=6)).retrieve)
        assert numbers(found, nodes) == sorted(numbers(found, nodes))
        assert "in the order in which they were added to the store" in told[0]
        assert "index=" not in told[0]
    texts = {"a.md": "\n".join(SECTIONS)}
    retriever = index_of(nodes[::-1]).as_retriever(similarity_top_k=6)
    found, told = asked(OrderPreservingRetriever(retriever=retriever, read_source=texts).retrieve)
    assert numbers(found, nodes) == sorted(numbers(found, nodes))
    assert told == []


def test_the_filter_of_the_search_leaves_out_the_nodes_of_others():
    mine, others = windows("report.txt", 1, tenant="a"), windows("report.txt", 2, tenant="b")
    mixed = [node for pair in zip(others, mine, strict=True) for node in pair]
    filters = MetadataFilters(filters=[ExactMatchFilter(key="tenant", value="a")])
    plain = index_of(mixed).as_retriever(similarity_top_k=12, filters=filters)
    retriever = OrderPreservingRetriever(retriever=plain)
    found, told = asked(retriever.retrieve)
    assert numbers(found, mine) == sorted(numbers(found, mine))
    assert (len(found), told) == (12, [])
    (source,) = retriever.get_context(QUESTION).sources
    assert "SimpleVectorStore, 24 of 24 neighbors overlap" in source.field


def test_a_filter_that_is_not_known_leaves_the_sequence_to_what_was_found():
    nodes = windows("report.txt", 1)
    plain = index_of(nodes).as_retriever(similarity_top_k=12, vector_store_kwargs={"where": {"tenant": "a"}})
    found, told = asked(OrderPreservingRetriever(retriever=plain).retrieve)
    assert numbers(found, nodes) == sorted(numbers(found, nodes))
    assert len(found) == 12
    assert "in the order in which they were added to the store" in told[0]
