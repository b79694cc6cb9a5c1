"""The order as a step of a compression pipeline."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document

from oprag.errors import ChunkError
from oprag.langchain import OrderPreservingCompressor
from tests.adapters.langchain.conftest import numbers_of, parts
from tests.adapters.scripted import QUESTION


class EvenFirst(BaseDocumentCompressor):
    """A reranker: even parts before odd ones, the last ones first; with a score, as rerankers leave it."""

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        ranked = sorted(
            documents, key=lambda found: (found.metadata["chunk_index"] % 2, -found.metadata["chunk_index"])
        )
        return [
            found.model_copy(update={"metadata": {**found.metadata, "relevance_score": 1 - place / 100}})
            for place, found in enumerate(ranked)
        ]


class WithoutTheFirst(BaseDocumentTransformer):
    """A filter."""

    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        return list(documents)[1:]


async def test_behind_a_reranker_and_a_filter_in_a_pipeline(store):
    pipeline = DocumentCompressorPipeline(
        transformers=[EvenFirst(), WithoutTheFirst(), OrderPreservingCompressor(k=4, annotate=True)]
    )
    found = pipeline.compress_documents(parts(), QUESTION)
    assert numbers_of(found) == [2, 4, 6, 8]
    assert [document.metadata["oprag"]["rank"] for document in found] == [3, 2, 1, 0]
    assert [document.metadata["oprag"]["score"] for document in found] == [0.96, 0.97, 0.98, 0.99]
    assert await pipeline.acompress_documents(parts(), QUESTION) == found


async def test_async_gives_the_same_objects():
    given = parts()[::-1]
    compressor = OrderPreservingCompressor(k=5)
    sync_found = compressor.compress_documents(given, QUESTION)
    async_found = await compressor.acompress_documents(given, QUESTION)
    assert [id(document) for document in async_found] == [id(document) for document in sync_found]


@pytest.mark.parametrize("wrong", ["text", None, {"page_content": "text"}, (Document("x"), 0.5)])
async def test_something_else_than_documents_is_refused(wrong: Any):
    with pytest.raises(ChunkError, match="at index 1"):
        OrderPreservingCompressor().compress_documents([Document("x"), wrong], QUESTION)
    with pytest.raises(ChunkError, match="at index 1"):
        await OrderPreservingCompressor().acompress_documents([Document("x"), wrong], QUESTION)
