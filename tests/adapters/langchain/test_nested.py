"""Order comes last and once: a list that was put in order is refused, or its ranks are known."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
)
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from oprag.langchain import (
    OrderPreservingChain,
    OrderPreservingCompressor,
    OrderPreservingRetriever,
    create_search_tool,
)
from tests.adapters.langchain.conftest import RecordingChatModel, giving, numbers_of
from tests.adapters.scripted import QUESTION


def own(store: InMemoryVectorStore, **options: Any) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(vectorstore=store, **options)


class Filter(BaseDocumentTransformer):
    """A step that makes a new list."""

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        return list(documents)


class LongContextReorder(Filter):
    """Has the name of the one in langchain-community."""


def compressed(retriever: Any, *steps: Any) -> ContextualCompressionRetriever:
    pipeline = DocumentCompressorPipeline(transformers=[Filter(), *steps])
    return ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=retriever)


def ensemble(*retrievers: Any) -> EnsembleRetriever:
    return EnsembleRetriever(retrievers=list(retrievers), weights=[1.0] * len(retrievers))


RETRIEVERS = {
    "itself": own,
    "with_config": lambda store: own(store).with_config(tags=["mine"]),
    "bind": lambda store: own(store).bind(k=3),
    "with_retry": lambda store: own(store).with_retry(),
    "with_fallbacks": lambda store: own(store).with_fallbacks([store.as_retriever()]),
    "compression": lambda store: compressed(own(store)),
    "ensemble": lambda store: ensemble(store.as_retriever(), own(store)),
    "merger": lambda store: MergerRetriever(retrievers=[own(store)]),
    "multi query": lambda store: MultiQueryRetriever(retriever=own(store), llm_chain=giving([])),
    "several": lambda store: ensemble(compressed(own(store)).with_retry()),
}
STEPS = {
    "compressor": lambda store: ContextualCompressionRetriever(
        base_compressor=OrderPreservingCompressor(), base_retriever=store.as_retriever()
    ),
    "pipeline": lambda store: compressed(store.as_retriever(), OrderPreservingCompressor()),
}


@pytest.mark.parametrize(
    ("wrapped", "name"),
    [
        *(pytest.param(wrapped, "OrderPreservingRetriever", id=case) for case, wrapped in RETRIEVERS.items()),
        *(pytest.param(wrapped, "OrderPreservingCompressor", id=case) for case, wrapped in STEPS.items()),
        pytest.param(lambda store: compressed(store.as_retriever(), LongContextReorder()), "LongContextReorder"),
    ],
)
def test_a_list_that_was_put_in_order_is_not_wrapped(store, wrapped: Any, name: str):
    with pytest.raises(ValidationError, match=rf"another order \({name}\).* last and only once"):
        OrderPreservingRetriever(retriever=wrapped(store), k=2)


def test_the_chain_and_the_search_tool_refuse_it_too(store):
    wrapped = ensemble(own(store))
    with pytest.raises(ValidationError, match="last and only once"):
        OrderPreservingChain(llm=RecordingChatModel(), retriever=wrapped)
    with pytest.raises(ValidationError, match="last and only once"):
        create_search_tool(wrapped)


@pytest.mark.parametrize("options", [{}, {"annotate": True}, {"order": "edges"}], ids=str)
async def test_a_step_directly_after_ours_knows_the_ranks(store, options: dict[str, Any]):
    inner = own(store, k=8, **options)
    best = sorted(numbers_of(store.similarity_search(QUESTION, k=3)))
    compressor = OrderPreservingCompressor(k=3)
    for outer in (
        ContextualCompressionRetriever(base_compressor=compressor, base_retriever=inner),
        OrderPreservingRetriever(retriever=RunnableLambda(inner.invoke, inner.ainvoke), k=3),
        OrderPreservingRetriever(retriever=RunnableLambda(str.strip) | inner, k=3),
    ):
        assert numbers_of(outer.invoke(QUESTION)) == numbers_of(await outer.ainvoke(QUESTION)) == best
    pipeline = DocumentCompressorPipeline(transformers=[OrderPreservingCompressor(**options), compressor])
    assert numbers_of(pipeline.compress_documents(store.similarity_search(QUESTION, k=8), QUESTION)) == best
