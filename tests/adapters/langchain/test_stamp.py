"""Stamping: chunks are numbered at ingestion, through whatever made them and wherever they go."""

import copy
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.errors import ChunkError
from oprag.langchain import stamp_positions


def test_copies_are_stamped_and_nothing_else_differs():
    documents = [Document("x", id="1", metadata={"source": "a", "page": 3, "nested": {"k": [1]}})]
    before = copy.deepcopy(documents)
    stamped = stamp_positions(documents)
    assert documents == before
    added = {"chunk_index": 0, "chunk_numbering": stamped[0].metadata["chunk_numbering"]}
    assert stamped == [Document("x", id="1", metadata={**before[0].metadata, **added})]


@pytest.mark.parametrize("wrong", [Document("one"), "text", [None], ["text"], [Document("x"), 5]], ids=repr)
def test_something_else_than_documents_is_refused(wrong: Any):
    with pytest.raises(ChunkError, match="LangChain documents"):
        stamp_positions(wrong, source="a")
