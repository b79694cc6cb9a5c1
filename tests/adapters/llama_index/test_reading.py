"""Reading the sources of a LlamaIndex store with the framework-free core of the reading tools."""

import random
from functools import partial
from typing import Any

import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores import ExactMatchFilter, MetadataFilters

from oprag import arrange
from oprag.agents.reading import StoredSources
from oprag.errors import OptionError
from oprag.llama_index.nodes import chunk_of, chunks_of
from oprag.llama_index.wrapped import searched_by, store_of
from oprag.options import ContextOptions
from tests.adapters.llama_index.conftest import HashedWords, prose


def stored_sources(index: VectorStoreIndex, **options: Any) -> tuple[StoredSources, Any]:
    """What reads the sources of an index, and the retriever that searches it."""
    retriever: Any = index.as_retriever(similarity_top_k=3, **options)
    (searched,) = searched_by(retriever)
    sources = StoredSources(
        partial(store_of, searched, ("filters", "node_ids")),
        ContextOptions(),
        lambda stored, rank: chunk_of(stored.node, rank, origin=NodeWithScore(node=stored.node)),
    )
    return sources, retriever


@pytest.fixture
def index() -> VectorStoreIndex:
    """Two tenants with two files each; one name is in both."""
    rng = random.Random(5)
    documents = [
        Document(text=prose(rng, 60), metadata={"file_name": name, "tenant": tenant})
        for tenant in ("red", "blue")
        for name in ("both.txt", f"{tenant}.txt")
    ]
    nodes = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents(documents)
    rng.shuffle(nodes)
    return VectorStoreIndex(nodes, embed_model=HashedWords())


def test_nodes_are_read_in_order_with_the_filter_of_the_search(index):
    only_red = MetadataFilters(filters=[ExactMatchFilter(key="tenant", value="red")])
    sources, retriever = stored_sources(index, filters=only_red)
    wanted = sorted(
        (node for node in index.docstore.docs.values() if node.metadata == {"file_name": "both.txt", "tenant": "red"}),
        key=lambda node: node.start_char_idx,
    )
    reading = sources.range("both.txt", 2, 5)
    assert [chunk.id for chunk in reading.chunks] == [node.node_id for node in wanted[1:5]]
    assert reading.note == f"(Chunks 2 to 5 of {len(wanted)} of both.txt)"
    assert [line.split(":")[0] for line in sources.outline().splitlines()] == ["2 sources", "- both.txt", "- red.txt"]
    with pytest.raises(OptionError, match=r"unknown source blue\.txt"):
        sources.range("blue.txt", 1, 2)
    # As a working context has it, with its source.
    (found, *_) = arrange(chunks_of(retriever.retrieve("anything")))
    around = sources.around(found, 1, 1)
    ids = [chunk.id for chunk in around.chunks]
    assert found.id in ids
    assert {chunk.metadata["tenant"] for chunk in around.chunks} == {"red"}
    starts = [chunk.origin.node.start_char_idx for chunk in around.chunks]
    assert starts == sorted(starts)
