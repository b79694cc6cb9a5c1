"""LangChain's retrievers that have the documents themselves."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from oprag.stores.adapter import adapter_of
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("kind", ["tfidf", "knn"])
def test_documents_are_listed_in_order(kind: str, corpus: Corpus):
    from langchain_community.retrievers import KNNRetriever, TFIDFRetriever

    given = [Document(text, metadata={"source": "a"}) for text in corpus.texts[:30]]
    retriever = {
        "tfidf": lambda: TFIDFRetriever.from_documents(given, k=5),
        "knn": lambda: KNNRetriever.from_documents(given, KnownEmbeddings(corpus), k=5),
    }[kind]()
    adapter = adapter_of(retriever)
    assert adapter is not None
    assert [(chunk.text, chunk.metadata) for chunk in adapter.chunks() or ()] == [
        (document.page_content, document.metadata) for document in given
    ]
    found = [document.page_content for document in retriever.invoke(next(iter(corpus.questions)))]
    assert adapter.in_sequence(found) == [text for text in corpus.texts[:30] if text in found]
