"""The section in headers and citations of LlamaIndex, from the headings of the searched sources."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, NodeWithScore, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from oprag import Context
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingQueryEngine,
    OrderPreservingRetriever,
    create_search_tool,
)
from oprag.pipeline.render import section_of
from tests.adapters.llama_index.conftest import RandomEmbedding
from tests.adapters.llama_index.engine.conftest import Model
from tests.adapters.llama_index.test_store_order import QUESTION

TEXTS = ["Before.", "# Install\n\nText.", "## On Windows\n\nRun it.", "Go on.", "# Use\n\nThe end."]
SECTIONS = ["", "Install", "Install > On Windows", "Install > On Windows", "Use"]
HEADER = "{section}|"


def guide() -> list[TextNode]:
    """Nodes that are linked as node parsers do."""
    nodes = [
        TextNode(id_=f"guide-{number}", text=text, metadata={"file_name": "guide.md", "chunk_index": number})
        for number, text in enumerate(TEXTS)
    ]
    for node, after in pairwise(nodes):
        node.relationships[NodeRelationship.NEXT] = after.as_related_node_info()
        after.relationships[NodeRelationship.PREVIOUS] = node.as_related_node_info()
    return nodes


@pytest.fixture
def index() -> Any:
    return VectorStoreIndex(nodes=guide(), embed_model=RandomEmbedding(embed_dim=16))


def sections(context: Context) -> list[str]:
    """The section of each chunk; the header of a passage has that of its first chunk."""
    assert all(context.text.count(f"{section_of(passage.chunks[0])}|\n") for passage in context.passages)
    return [section_of(chunk) for chunk in context.kept]


async def test_the_headings_are_read_from_the_index(index: Any):
    retriever = OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=8), header=HEADER)
    for context in (retriever.get_context(QUESTION), await retriever.aget_context(QUESTION)):
        assert sections(context) == SECTIONS
        assert [chunk.metadata for chunk in context.kept] == [node.metadata for node in guide()]
    assert [found.node.metadata for found in retriever.retrieve(QUESTION)] == [node.metadata for node in guide()]


def test_a_postprocessor_reads_a_docstore_or_an_index(index: Any):
    docstore = SimpleDocumentStore()
    docstore.add_documents(guide())
    nodes = [NodeWithScore(node=node) for node in guide()[2:]]
    for read in (docstore, index):
        step = OrderPreservingPostprocessor(read_neighbors=read, header=HEADER)
        assert sections(step.get_context(nodes)) == SECTIONS[2:]


async def test_citations_and_search_tools_have_the_section(index: Any):
    retriever = index.as_retriever(similarity_top_k=8)
    engine = OrderPreservingQueryEngine(
        llm=Model(reply=lambda prompt: "Run it [3, 4]."), retriever=retriever, cite=True, header="{section}"
    )
    for answer in (engine.answer(QUESTION), await engine.aanswer(QUESTION)):
        assert [citation.section for citation in answer.citations] == SECTIONS[2:4]
    tool = create_search_tool(index, header="{section}")
    assert "[3] Install > On Windows\n## On Windows" in str(tool.call(query=QUESTION))
    tool = create_search_tool(OrderPreservingRetriever(retriever=retriever, header="{section}"))
    assert "[3] Install > On Windows\n## On Windows" in str(await tool.acall(query=QUESTION))
