"""Which documents come back: the same objects, one a passage, or annotated copies."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever
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


def through_retriever(documents: list[Document], **options: Any) -> list[Document]:
    return OrderPreservingRetriever(retriever=giving(documents), **options).invoke(QUESTION)


def through_compressor(documents: list[Document], **options: Any) -> list[Document]:
    return OrderPreservingCompressor(**options).compress_documents(documents, QUESTION)


SURFACES: list[Callable[..., list[Document]]] = [through_retriever, through_compressor]


@pytest.fixture(params=SURFACES, ids=["retriever", "compressor"])
def ordered(request: pytest.FixtureRequest) -> Any:
    return request.param


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
