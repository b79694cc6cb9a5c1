"""The retriever, around several of LlamaIndex's own and around one of somebody else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.indices.query.query_transform.base import IdentityQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import (
    QueryFusionRetriever,
    RecursiveRetriever,
    TransformRetriever,
)
from llama_index.core.schema import Document, QueryBundle
from pydantic import ValidationError

from oprag.errors import QueryError
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingRetriever,
    StampPositions,
)
from tests.adapters.llama_index.conftest import (
    HashedWords,
    ListRetriever,
    RecordingLLM,
    numbered,
    numbers,
    prose,
)

DOCUMENT = Document(text=prose(random.Random(1), 160), metadata={"file_name": "book"})
NODES = StampPositions()(SentenceSplitter(chunk_size=64, chunk_overlap=0, tokenizer=str.split)([DOCUMENT]))
QUESTION = " ".join(NODES[7].get_content().split()[1:7] + NODES[3].get_content().split()[1:7])


@pytest.fixture(scope="module")
def index() -> VectorStoreIndex:
    return VectorStoreIndex(NODES, embed_model=HashedWords())


@pytest.mark.parametrize("question", ["why?", QueryBundle("why?", custom_embedding_strs=["because"])])
def test_the_question_reaches_the_wrapped_retriever_unchanged(question: str | QueryBundle):
    wrapped = ListRetriever(numbered([1]))
    retriever = OrderPreservingRetriever(retriever=wrapped)
    retriever.retrieve(question)
    retriever.get_context(question)
    bundle = question if isinstance(question, QueryBundle) else QueryBundle(question)
    assert wrapped.questions == [bundle, bundle]


@pytest.mark.parametrize("question", ["", " \n\t", QueryBundle(""), QueryBundle("  ")])
def test_a_blank_question_is_refused_before_anything_is_searched(question: str | QueryBundle):
    wrapped = ListRetriever(numbered([1]))
    retriever = OrderPreservingRetriever(retriever=wrapped)
    with pytest.raises(QueryError, match="empty"):
        retriever.retrieve(question)
    with pytest.raises(QueryError, match="empty"):
        retriever.get_context(question)
    assert wrapped.questions == []


@pytest.mark.parametrize("question", [None, 5, ["why?"], b"why?"])
def test_a_question_of_another_type_is_refused(question: Any):
    retriever = OrderPreservingRetriever(retriever=ListRetriever(numbered([1])))
    with pytest.raises(QueryError, match=type(question).__name__):
        retriever.get_context(question)


@pytest.mark.parametrize("question", [QueryBundle("", embedding=[0.5, 0.5]), QueryBundle("", image_path="photo.png")])
def test_a_question_without_words_can_be_a_vector_or_an_image(question: QueryBundle):
    retriever = OrderPreservingRetriever(retriever=ListRetriever(numbered([3, 1])))
    assert numbers(retriever.retrieve(question)) == [1, 3]


def test_our_own_retriever_is_not_wrapped_unless_it_keeps_the_ranks():
    def fused(*retrievers: BaseRetriever) -> QueryFusionRetriever:
        return QueryFusionRetriever(list(retrievers), llm=MockLLM(), num_queries=1, use_async=False)

    inner = OrderPreservingRetriever(retriever=ListRetriever(numbered([7, 2, 9, 0])))
    for wrapped in (
        inner,
        fused(ListRetriever([]), inner),
        TransformRetriever(fused(inner), IdentityQueryTransform()),
        RecursiveRetriever("inner", retriever_dict={"inner": inner}),
    ):
        with pytest.raises(ValidationError, match=r"another order \(OrderPreservingRetriever\).* last and only once"):
            OrderPreservingRetriever(retriever=wrapped)
    inner.order = "rank"
    for wrapped in (inner, fused(inner)):
        assert numbers(OrderPreservingRetriever(retriever=wrapped, k=2).retrieve(QUESTION)) == [2, 7]


@pytest.mark.parametrize("options", [{}, {"annotate": True}, {"order": "edges"}], ids=str)
def test_a_postprocessor_directly_after_ours_knows_the_ranks(index: VectorStoreIndex, options: dict[str, Any]):
    plain = index.as_retriever(similarity_top_k=12)
    best = sorted(numbers(plain.retrieve(QUESTION))[:5])
    cut = OrderPreservingPostprocessor(k=5)
    ours = OrderPreservingRetriever(retriever=plain, **options)
    twice = [OrderPreservingPostprocessor(**options), cut]
    for retriever, postprocessors in ((ours, [cut]), (plain, twice)):
        engine = RetrieverQueryEngine.from_args(retriever, llm=RecordingLLM(), node_postprocessors=[*postprocessors])
        assert numbers(engine.query(QUESTION).source_nodes) == best


def test_prompts_can_be_read_and_updated():
    retriever = OrderPreservingRetriever(retriever=ListRetriever([]))
    assert retriever.get_prompts() == {}
    retriever.update_prompts({})


def test_callbacks_of_the_older_kind():
    handler = LlamaDebugHandler(print_trace_on_end=False)
    retriever = OrderPreservingRetriever(
        retriever=ListRetriever(numbered([7, 2])), callback_manager=CallbackManager([handler])
    )
    retriever.retrieve("why?")
    ((start, end),) = handler.get_event_pairs(CBEventType.RETRIEVE)
    assert start.payload is not None
    assert end.payload is not None
    assert start.payload["query_str"] == "why?"
    assert numbers(end.payload["nodes"]) == [2, 7]
