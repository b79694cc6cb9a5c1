"""Bad input: a clear error or the documented policy, never a foreign traceback, nothing lost or repeated."""

import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document

from oprag.errors import ChunkError, OpragWarning, QueryError
from oprag.langchain import OrderPreservingRetriever, stamp_positions


@pytest.mark.parametrize("question", ["", " \n\t ", None, 5, ["a"], {"input": "a"}, b"a"])
async def test_a_question_that_cannot_be_searched_for_is_refused(store, question: Any):
    retriever = OrderPreservingRetriever(vectorstore=store)
    with pytest.raises(QueryError):
        retriever.invoke(question)
    with pytest.raises(QueryError):
        await retriever.ainvoke(question)
    with pytest.raises(QueryError):
        retriever.get_context(question)
    with pytest.raises(QueryError):
        await retriever.aget_context(question)


WRONG: list[Any] = [
    *(None, True, -1, 0, 1.5, -0.0, math.nan, math.inf, -math.inf, 10**400, 1j),
    *("", " ", "10", "-1", "nan", "1e999", "9" * 5000, "٣", "iv", "\x00", "\ud800"),
    *(b"9", [], [1, [2]], {}, {"a": {"b": [1]}}, (), {1}, object(), print, Ellipsis),
    *(Decimal("NaN"), Decimal(3), Fraction(1, 3), np.float32(2), np.int64(7), np.nan, np.arange(3), np.bool_(True)),
]
KEYS = ["source", "chunk_index", "start_index", "end_index", "page", "page_label", "row", "relevance_score", "oprag"]


@pytest.mark.parametrize(
    "options", [{}, {"stitch": True}, {"annotate": True}, {"source_ranking": "score_sum"}], ids=str
)
@pytest.mark.parametrize("key", KEYS)
def test_metadata_of_every_wrong_type(ordered: Any, key: str, options: dict[str, Any]):
    documents = [Document(f"Text {place}.", metadata={"source": "s", key: value}) for place, value in enumerate(WRONG)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpragWarning)
        found = ordered(documents, **options)
    # Stitched or not, every text is there once.
    assert sorted(re.findall(r"Text \d+\.", "".join(document.page_content for document in found))) == sorted(
        document.page_content for document in documents
    )


@pytest.mark.parametrize("metadata", [None, [1], "source", 5], ids=repr)
def test_metadata_that_is_no_dictionary(ordered: Any, metadata: Any):
    document = Document("x")
    document.metadata = metadata
    with pytest.raises(ChunkError, match="metadata"):
        ordered([document])
    with pytest.raises(ChunkError, match="metadata"):
        stamp_positions([document], source="s")


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"]], ids=repr)
def test_a_text_that_is_no_string(ordered: Any, text: Any):
    document = Document("x")
    document.page_content = text
    with pytest.raises(ChunkError, match="must be a string"):
        ordered([document])
