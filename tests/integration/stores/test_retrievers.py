"""LangChain's retrievers that have the documents themselves."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from oprag.stores.adapter import adapter_of
from tests.integration.stores.corpus import Corpus

pytestmark = pytest.mark.integration


def test_documents_are_listed_in_order(corpus: Corpus):
    from langchain_community.retrievers import TFIDFRetriever

    given = [Document(text, metadata={"source": "a"}) for text in corpus.texts[:30]]
    retriever = TFIDFRetriever.from_documents(given, k=5)
    adapter = adapter_of(retriever)
    assert adapter is not None
    assert [(chunk.text, chunk.metadata) for chunk in adapter.chunks() or ()] == [
        (document.page_content, document.metadata) for document in given
    ]
    found = [document.page_content for document in retriever.invoke(next(iter(corpus.questions)))]
    assert adapter.in_sequence(found) == [text for text in corpus.texts[:30] if text in found]
