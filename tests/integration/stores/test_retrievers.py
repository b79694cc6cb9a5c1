"""LangChain's retrievers that have the documents themselves."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from oprag.stores.adapter import adapter_of
from tests.integration.stores.corpus import Corpus
from tests.integration.stores.known import KnownEmbeddings

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("kind", ["tfidf", "knn"])
def test_documents_get_metadata_and_are_found_as_before(kind: str, corpus: Corpus):
    from langchain_community.retrievers import KNNRetriever, TFIDFRetriever

    given = [Document(text, metadata={"source": "a"}) for text in corpus.texts[:30]]
    retriever = {
        "tfidf": lambda: TFIDFRetriever.from_documents(given, k=5),
        "knn": lambda: KNNRetriever.from_documents(given, KnownEmbeddings(corpus), k=5),
    }[kind]()
    question = next(iter(corpus.questions))
    found, adapter = retriever.invoke(question), adapter_of(retriever)
    assert adapter is not None
    adapter.write({text: {"chunk_index": number} for number, text in enumerate(corpus.texts[:30])})
    again = retriever.invoke(question)
    assert [document.page_content for document in again] == [document.page_content for document in found]
    for document in again:
        assert document.metadata == {"source": "a", "chunk_index": corpus.texts.index(document.page_content)}
    assert all(document.metadata == {"source": "a"} for document in found)
