"""Which documents come back: the same objects, one a passage, or annotated copies."""

import copy
import json
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import giving
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


def windows(*starts: int, **metadata: Any) -> list[Document]:
    """Pieces of 20 characters of the text, in the given (rank) order."""
    return [
        Document(
            TEXT[start : start + 20], id=f"w{start}", metadata={"source": "log.txt", "start_index": start, **metadata}
        )
        for start in starts
    ]


def test_stitched_documents_are_passages_of_the_text(ordered):
    ranked = windows(60, 10, 25, 0, author="Ada")
    ranked[1].metadata["author"] = "Bo"
    first, last = ordered(ranked, stitch=True, annotate=True)
    assert (first.page_content, last.page_content) == (TEXT[:45], TEXT[60:80])
    assert (first.id, last.id) == (None, "w60")
    about, of_last = first.metadata.pop("oprag"), last.metadata.pop("oprag")
    # What the chunks do not share is left out, except where the passage begins.
    assert first.metadata == {"source": "log.txt", "start_index": 0}
    assert last.metadata == ranked[0].metadata
    assert about["spans"] == [{"start": 0, "end": 45, "page": None}]
    assert [(chunk["id"], chunk["rank"]) for chunk in about["chunks"]] == [("w0", 3), ("w10", 1), ("w25", 2)]
    assert [(chunk["id"], chunk["rank"]) for chunk in of_last["chunks"]] == [("w60", 0)]
    assert json.loads(json.dumps([about, of_last])) == [about, of_last]


@pytest.mark.parametrize("metadata", [{}, {"page": 4}], ids=str)
def test_a_separator_stands_for_white_space_that_was_stripped(ordered, metadata: dict[str, Any]):
    (found,) = ordered(sentences(1, 0, **metadata), stitch=True)
    about = found.metadata.pop("oprag")
    assert found.page_content == "The ship left at dawn.\n\nThe wind was fair."
    assert [(span["start"], span["end"]) for span in about["spans"]] == [(0, 22), (23, 41)]
    assert found.metadata == {"source": "log.txt", **metadata}


def test_an_offset_in_the_source_is_not_one_on_a_page(ordered):
    ranked = [
        Document(TEXT[start:end], metadata={"source": "log.txt", "page": 4}) for start, end in ((20, 40), (5, 20))
    ]
    (found,) = ordered(ranked, stitch=True, read_source={"log.txt": TEXT})
    about = found.metadata.pop("oprag")
    assert (found.page_content, found.metadata) == (TEXT[5:40], {"source": "log.txt", "page": 4})
    assert about["spans"] == [{"start": 5, "end": 40, "page": None}]


def test_texts_that_contradict_their_offsets_are_not_joined(ordered):
    ranked = windows(0, 10)
    ranked[1].metadata["start_index"] = 12
    found = ordered(ranked, stitch=True, on_uncertain="ignore")
    assert [document.page_content for document in found] == [TEXT[:20], TEXT[10:30]]


@pytest.mark.parametrize("order", ["rank", "reverse_rank"])
def test_stitched_documents_in_another_order(ordered, order: str):
    expected = [TEXT[40:60], TEXT[0:35]] if order == "rank" else [TEXT[15:35], TEXT[0:20], TEXT[40:60]]
    found = ordered(windows(40, 0, 15), stitch=True, order=order)
    assert [document.page_content for document in found] == expected


def test_the_context_of_stitched_documents_has_their_texts():
    retriever = OrderPreservingRetriever(retriever=giving(windows(60, 10, 25, 0)), stitch=True, token_budget=25)
    context = retriever.get_context(QUESTION)
    assert [document.page_content for document in retriever.invoke(QUESTION)] == [one.text for one in context.passages]
    assert context.tokens <= 25
