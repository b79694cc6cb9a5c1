"""Bad input: a clear error or the documented policy, never a foreign traceback, nothing lost or repeated."""

import json
import math
import random
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from oprag.errors import ChunkError, OpragWarning, QueryError
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever, stamp_positions
from tests.adapters.langchain.conftest import giving, numbers_of, parts, store_of
from tests.adapters.scripted import QUESTION


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


@pytest.mark.parametrize(
    "given",
    [None, "text", {"documents": []}, iter([Document("x")]), Document("x"), 5],
    ids=["None", "string", "dict", "iterator", "one document", "number"],
)
async def test_a_wrapped_runnable_that_gives_no_list(given: Any):
    retriever = OrderPreservingRetriever(retriever=giving(given))
    with pytest.raises(ChunkError, match="must return a list of documents"):
        retriever.invoke(QUESTION)
    with pytest.raises(ChunkError, match="must return a list of documents"):
        await retriever.ainvoke(QUESTION)


@pytest.mark.parametrize("wrong", ["text", None, {"page_content": "text"}, ("text", 0.5), (0.5, Document("x"))])
async def test_a_wrapped_runnable_that_gives_something_else_than_documents(wrong: Any):
    retriever = OrderPreservingRetriever(retriever=giving([Document("x"), wrong]))
    with pytest.raises(ChunkError, match="at index 1") as caught:
        retriever.invoke(QUESTION)
    assert caught.value.value is wrong
    with pytest.raises(ChunkError, match=r"RunnableLambda must return documents, .* at index 1"):
        await retriever.ainvoke(QUESTION)


async def test_a_wrapped_runnable_may_give_scores():
    """As `RunnableLambda(store.similarity_search_with_score)` does."""
    retriever = OrderPreservingRetriever(retriever=giving([(Document("x"), 0.5), (Document("y"), None)]), order="rank")
    for context in (retriever.get_context(QUESTION), await retriever.aget_context(QUESTION)):
        assert [(chunk.text, chunk.score) for chunk in context.kept] == [("x", 0.5), ("y", None)]


def through_retriever(documents: list[Document], **options: Any) -> list[Document]:
    return OrderPreservingRetriever(retriever=giving(documents), **options).invoke(QUESTION)


def through_compressor(documents: list[Document], **options: Any) -> list[Document]:
    return OrderPreservingCompressor(**options).compress_documents(documents, QUESTION)


SURFACES: list[Callable[..., list[Document]]] = [through_retriever, through_compressor]
both_surfaces = pytest.mark.parametrize("ordered", SURFACES, ids=["retriever", "compressor"])

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
@both_surfaces
def test_metadata_of_every_wrong_type(ordered: Any, key: str, options: dict[str, Any]):
    documents = [Document(f"Text {place}.", metadata={"source": "s", key: value}) for place, value in enumerate(WRONG)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpragWarning)
        found = ordered(documents, **options)
    # Stitched or not, every text is there once.
    assert sorted(re.findall(r"Text \d+\.", "".join(document.page_content for document in found))) == sorted(
        document.page_content for document in documents
    )


@pytest.mark.parametrize("options", [{"stitch": True}, {"annotate": True}], ids=str)
@pytest.mark.parametrize("key", [key for key in KEYS if key != "relevance_score"])
@both_surfaces
def test_what_is_added_can_be_written_as_json_whatever_the_metadata(ordered: Any, key: str, options: dict[str, Any]):
    documents = [Document(f"Text {place}.", metadata={"source": "s", key: value}) for place, value in enumerate(WRONG)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpragWarning)
        found = ordered(documents, **options)
    for document in found:
        added = document.metadata["oprag"]
        assert json.loads(json.dumps(added, allow_nan=False)) == added


KEY_VALUES = st.dictionaries(
    st.sampled_from([*KEYS, "other"]),
    st.one_of(
        st.sampled_from(WRONG),
        st.integers(-2, 12),
        st.integers(0, 12).map(str),
        st.floats(),
        st.text(max_size=3),
    ),
)


@given(metadata=st.lists(KEY_VALUES, max_size=12))
def test_nothing_is_lost_or_repeated_whatever_the_metadata(metadata: list[dict[str, Any]]):
    documents = [Document(f"Text {place}.", metadata=about) for place, about in enumerate(metadata)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpragWarning)
        for ordered in SURFACES:
            assert sorted(map(id, ordered(documents))) == sorted(map(id, documents))
            assert sum(found.page_content.count("Text") for found in ordered(documents, stitch=True)) == len(documents)


@pytest.mark.parametrize("metadata", [None, [1], "source", 5], ids=repr)
@both_surfaces
def test_metadata_that_is_no_dictionary(ordered: Any, metadata: Any):
    document = Document("x")
    document.metadata = metadata
    with pytest.raises(ChunkError, match="metadata"):
        ordered([document])
    with pytest.raises(ChunkError, match="metadata"):
        stamp_positions([document], source="s")


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"]], ids=repr)
@both_surfaces
def test_a_text_that_is_no_string(ordered: Any, text: Any):
    document = Document("x")
    document.page_content = text
    with pytest.raises(ChunkError, match="must be a string"):
        ordered([document])


@both_surfaces
def test_keys_that_are_no_strings(ordered: Any):
    documents = [Document(text, metadata={"source": "s", 5: 1, None: 2, ("a",): 3}) for text in "xy"]
    with pytest.warns(OpragWarning, match="have no position"):
        assert ordered(documents) == documents


@both_surfaces
def test_texts_with_anything_in_them(ordered: Any):
    pieces = ["", " ", "\n\n", "\x00", "\ud800", "e\u0301", "👩‍👩‍👧", "\u202eabc", "x" * 100_000]
    documents = stamp_positions([Document(text) for text in pieces], source="s")
    assert ordered(documents[::-1]) == documents
    (stitched,) = ordered(documents[::-1], stitch=True, separator="|")
    assert stitched.page_content == "|".join(pieces)


@both_surfaces
def test_the_same_document_twice_is_kept_once(ordered: Any):
    documents = parts(3)
    assert numbers_of(ordered([documents[2], documents[0], documents[2], documents[1], documents[0]])) == [0, 1, 2]


@both_surfaces
def test_a_copy_of_a_document_is_kept_once_and_the_best_is_kept(ordered: Any):
    first, second = parts(2)
    twin = second.model_copy(update={"id": "twin"})
    found = ordered([second, first, twin])
    assert [id(document) for document in found] == [id(first), id(second)]


@both_surfaces
def test_equal_text_elsewhere_is_no_duplicate(ordered: Any):
    documents = stamp_positions([Document("Again.") for _ in range(4)], source="a")
    documents += stamp_positions([Document("Again.") for _ in range(2)], source="b")
    assert ordered(documents) == documents


@both_surfaces
def test_duplicates_do_not_take_the_place_of_others(ordered: Any):
    documents = parts(5)
    assert numbers_of(ordered([documents[4], documents[4], documents[4], documents[1], documents[3]], k=3)) == [1, 3, 4]


def test_duplicates_in_a_store_are_reported():
    retriever = OrderPreservingRetriever(vectorstore=store_of(parts(4) + parts(4)))
    assert numbers_of(retriever.invoke(QUESTION)) == [0, 1, 2, 3]
    context = retriever.get_context(QUESTION)
    assert sorted(drop.reason for drop in context.dropped) == ["duplicate"] * 4
    kept = {chunk.rank: chunk.text for chunk in context.kept}
    assert all(kept[int(drop.value or 0)] == drop.chunk.text for drop in context.dropped)


def many(count: int = 20_000) -> list[Document]:
    return [Document(f"Chunk {number}.", metadata={"source": f"source {number % 7}"}) for number in range(count)]


def test_20_000_documents():
    stamped = stamp_positions(many())
    ranked = random.Random(5).sample(stamped, len(stamped))
    expected = sorted(stamped, key=lambda found: (found.metadata["source"], found.metadata["chunk_index"]))
    assert through_compressor(ranked, source_ranking="name") == expected
    found = through_retriever(ranked, k=128, token_budget=16_384, source_ranking="name")
    best = {id(document) for document in ranked[:128]}
    assert [id(document) for document in found] == [id(document) for document in expected if id(document) in best]


def test_20_000_documents_without_any_metadata():
    documents = [Document(f"Chunk {number}.") for number in range(20_000)]
    with pytest.warns(OpragWarning) as caught:
        assert through_compressor(documents) == documents
    assert len(caught) == 1
