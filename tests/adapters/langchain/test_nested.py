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
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from oprag.langchain import (
    OrderPreservingChain,
    OrderPreservingCompressor,
    OrderPreservingRetriever,
    create_search_tool,
)
from tests.adapters.langchain.conftest import RecordingChatModel, giving


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
