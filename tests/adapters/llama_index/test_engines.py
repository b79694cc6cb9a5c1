"""Inside LlamaIndex's engines, tools and pipelines: what the model reads stands in source order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import BaseNode, NodeWithScore

from oprag.llama_index import OrderPreservingPostprocessor, StampPositions
from tests.adapters.llama_index.conftest import HashedWords, RecordingLLM, numbers, pdf_pages

PAGES = pdf_pages(random.Random(1), ["i", "ii", "iii", "iv", *map(str, range(1, 21))])
NODES = StampPositions()(SentenceSplitter(chunk_size=80, chunk_overlap=0, tokenizer=str.split)(PAGES))
QUESTION = " ".join(" ".join(NODES[place].get_content().split()[1:6]) for place in (40, 3, 22))


@pytest.fixture(scope="module")
def index() -> VectorStoreIndex:
    return VectorStoreIndex(NODES, embed_model=HashedWords())


@pytest.fixture
def llm() -> RecordingLLM:
    return RecordingLLM()


def _in_order(nodes: Sequence[NodeWithScore], count: int) -> None:
    assert len(nodes) == count
    assert numbers(nodes) == sorted(numbers(nodes))


def _prompted_in_order(prompt: str, nodes: Sequence[NodeWithScore]) -> None:
    """The texts of these nodes stand in the prompt, each behind the one before it."""
    places = [prompt.index(scored.text) for scored in nodes]
    assert places == sorted(places)


@pytest.mark.parametrize("mode", [ResponseMode.COMPACT, ResponseMode.SIMPLE_SUMMARIZE, ResponseMode.TREE_SUMMARIZE])
def test_query_engine(index: VectorStoreIndex, llm: RecordingLLM, mode: ResponseMode):
    engine = index.as_query_engine(
        llm=llm, similarity_top_k=10, response_mode=mode, node_postprocessors=[OrderPreservingPostprocessor()]
    )
    response = engine.query(QUESTION)
    _in_order(response.source_nodes, 10)
    (prompt,) = llm.prompts
    if mode is ResponseMode.SIMPLE_SUMMARIZE:
        prompt = prompt.replace("\\n", "\n")
    _prompted_in_order(prompt, response.source_nodes)


# Ingestion


def _stamps(nodes: Sequence[BaseNode]) -> list[int]:
    return [node.metadata["chunk_index"] for node in nodes]


def _pipeline(**options: Any) -> IngestionPipeline:
    return IngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=80, chunk_overlap=0), StampPositions(), HashedWords()], **options
    )


def test_pipeline_numbers_through_all_pages():
    nodes = _pipeline().run(documents=PAGES)
    assert len(nodes) > len(PAGES)
    assert _stamps(nodes) == list(range(len(nodes)))
    assert all(node.embedding for node in nodes)
