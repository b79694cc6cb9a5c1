"""Which documents come back: the same objects, one a passage, or annotated copies."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import Context
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever
from tests.adapters.langchain.conftest import giving, texts
from tests.adapters.scripted import QUESTION

TEXT = "The ship left at dawn. The wind was fair. Nobody looked back. At noon the fog came."
SENTENCES = [(0, 22), (23, 41), (42, 61), (62, 83)]


def sentences(*which: int, **metadata: Any) -> list[Document]:
    """Sentences of the text, with their offsets, in the given (rank) order."""
    return [
        Document(
            TEXT[start:end],
            id=f"s{number}",
            metadata={"source": "log.txt", "start_index": start, "end_index": end, **metadata},
        )
        for number, (start, end) in ((number, SENTENCES[number]) for number in which)
    ]


def through_retriever(documents: list[Document], **options: Any) -> list[Document]:
    return OrderPreservingRetriever(retriever=giving(documents), **options).invoke(QUESTION)


def through_compressor(documents: list[Document], **options: Any) -> list[Document]:
    return OrderPreservingCompressor(**options).compress_documents(documents, QUESTION)


SURFACES: list[Callable[..., list[Document]]] = [through_retriever, through_compressor]


@pytest.fixture(params=SURFACES, ids=["retriever", "compressor"])
def ordered(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_the_same_objects_come_back_in_the_order_of_the_source(ordered):
    ranked = sentences(3, 0, 2)
    found = ordered(ranked)
    assert [id(document) for document in found] == [id(ranked[index]) for index in (1, 2, 0)]


def test_the_documents_of_a_subclass_come_back_as_they_are(ordered):
    class Stateful(Document):
        state: dict[str, Any] = {}  # noqa: RUF012 - a field of pydantic, which copies it

    ranked = [
        Stateful(page_content=document.page_content, metadata=document.metadata, state={"v": 1})
        for document in sentences(1, 0)
    ]
    found = ordered(ranked)
    assert found[0] is ranked[1]
    assert found[1] is ranked[0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stitch": True},
        {"annotate": True},
        {"k": 2},
        {"order": "edges"},
        {"token_budget": 12},
        {"header": "{source}"},
    ],
    ids=str,
)
def test_nothing_given_is_changed(ordered, options: dict[str, Any]):
    ranked = sentences(3, 0, 1, nested={"list": [1, {"a": 2}]})
    before = copy.deepcopy(ranked)
    order = [id(document) for document in ranked]
    ordered(ranked, **options)
    assert ranked == before
    assert [id(document) for document in ranked] == order


def test_stitched_there_is_one_document_a_passage(ordered):
    found = ordered(sentences(3, 1, 0), stitch=True, separator=" ")
    assert texts(found) == [TEXT[:41], TEXT[62:]]
    first = found[0].metadata["oprag"]
    assert first["source"] == "log.txt"
    assert [TEXT[span["start"] : span["end"]] for span in first["spans"]] == [TEXT[:22], TEXT[23:41]]
    assert [chunk["rank"] for chunk in first["chunks"]] == [2, 1]
    assert [chunk["id"] for chunk in first["chunks"]] == ["s0", "s1"]
    assert [(span["start"], span["end"]) for span in found[1].metadata["oprag"]["spans"]] == [(62, 83)]


def test_stitched_documents_keep_the_metadata_that_their_chunks_share(ordered):
    ranked = sentences(1, 0, author="Ann", tags=["sea"]) + sentences(3, author="Bob", tags=["sea"])
    found = ordered(ranked, stitch=True, separator=" ")
    assert {key: value for key, value in found[0].metadata.items() if key != "oprag"} == {
        "source": "log.txt",
        "author": "Ann",
        "tags": ["sea"],
    }
    assert found[1].metadata["author"] == "Bob"


def test_a_stitched_document_has_an_id_only_if_it_is_one_chunk(ordered):
    assert [document.id for document in ordered(sentences(3, 1, 0), stitch=True)] == [None, "s3"]


def test_annotated_copies_say_rank_score_position_and_span(ordered):
    ranked = sentences(3, 0)
    ranked[0].metadata["relevance_score"] = 0.75
    found = ordered(ranked, annotate=True)
    assert [document.metadata["oprag"] for document in found] == [
        {
            "rank": 1,
            "score": None,
            "similarity": None,
            "id": "s0",
            "source": "log.txt",
            "position": [0, 22],
            "kind": "offset",
            "span": {"start": 0, "end": 22, "page": None},
            "neighbor_of": None,
        },
        {
            "rank": 0,
            "score": 0.75,
            "similarity": None,
            "id": "s3",
            "source": "log.txt",
            "position": [62, 83],
            "kind": "offset",
            "span": {"start": 62, "end": 83, "page": None},
            "neighbor_of": None,
        },
    ]


async def test_annotations_hold_the_scores_of_the_store(store):
    scores = {found.page_content: score for found, score in store.similarity_search_with_score(QUESTION, k=12)}
    retriever = OrderPreservingRetriever(vectorstore=store, annotate=True)
    for found in (retriever.invoke(QUESTION), await retriever.ainvoke(QUESTION)):
        assert {document.page_content: document.metadata["oprag"]["score"] for document in found} == scores


def test_what_was_annotated_can_be_ordered_again(ordered):
    once = ordered(sentences(3, 0, 1), annotate=True)
    again = ordered(once, annotate=True)
    assert texts(again) == texts(once)
    assert [document.metadata["oprag"]["rank"] for document in again] == [1, 2, 0]


def test_the_context_is_stitched_whatever_the_documents_are():
    ranked = sentences(1, 0)
    for stitch in (False, True):
        context = OrderPreservingRetriever(retriever=giving(ranked), stitch=stitch, separator=" ").get_context(QUESTION)
        assert isinstance(context, Context)
        assert context.text == TEXT[:41]


def test_the_context_leads_back_to_the_documents():
    ranked = sentences(3, 0, 1)
    context = OrderPreservingRetriever(retriever=giving(ranked), k=2).get_context(QUESTION)
    assert [id(chunk.origin) for chunk in context.kept] == [id(ranked[1]), id(ranked[0])]
    assert [(drop.chunk.origin, drop.reason, drop.value) for drop in context.dropped] == [(ranked[2], "k", 2)]
    assert context.dropped[0].chunk.origin is ranked[2]
