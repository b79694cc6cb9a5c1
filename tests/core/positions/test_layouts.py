"""The order of chunks as other tools write them: nested, flattened, in lists, and with numbers of a page."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from oprag import Chunk, build_context
from oprag.positions.fields import LAYOUTS, with_usual_fields
from oprag.positions.source_names import source_of

PAGES, EACH = 4, 5

Layout = Callable[[int, int, int], dict[str, Any]]


def flat(metadata: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested metadata as stores of plain values have them."""
    found: dict[str, Any] = {}
    for name, value in metadata.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def langchain_js(file: int, page: int, number: int) -> dict[str, Any]:
    lines = {"from": 1 + 6 * number, "to": 6 + 6 * number}
    return {"source": f"/data/{file}.pdf", "loc": {"pageNumber": page, "lines": lines}}


def n8n(file: int, page: int, number: int) -> dict[str, Any]:
    return {
        **langchain_js(file, page, number),
        "source": "blob",
        "blobType": "application/pdf",
        "file_id": f"drive {file}",
    }


def lines_of_a_text(file: int, page: int, number: int) -> dict[str, Any]:
    line = 1 + 7 * (EACH * (page - 1) + number)
    return {"source": f"/data/{file}.txt", "loc": {"lines": {"from": line, "to": line + 6}}}


def spring_ai(file: int, page: int, number: int) -> dict[str, Any]:
    return {"file_name": f"{file}.pdf", "page_number": page, "chunk_index": number, "total_chunks": EACH}


def docling(file: int, page: int, number: int) -> dict[str, Any]:
    items = [{"self_ref": f"#/texts/{number}", "prov": [{"page_no": EACH * page + number, "charspan": [0, 9]}]}]
    return {"dl_meta": {"doc_items": items, "headings": ["A"], "origin": {"filename": f"{file}.pdf"}}}


def ragflow(file: int, page: int, number: int) -> dict[str, Any]:
    place = {"page_num_int": [page], "top_int": [100 + 90 * number], "position_int": [[page, 50, 500, 100, 180]]}
    return {"docnm_kwd": f"{file}.pdf", "doc_id": f"d{file}", **place}


def ragflow_numbered(file: int, page: int, number: int) -> dict[str, Any]:
    return {"docnm_kwd": f"{file}.pdf", "page_num_int": [page], "chunk_order_int": float(EACH * page + number)}


def lightrag(file: int, page: int, number: int) -> dict[str, Any]:
    return {"full_doc_id": f"doc-{file}", "chunk_order_index": EACH * page + number, "tokens": 9}


def bedrock(file: int, page: int, number: int) -> dict[str, Any]:
    own = {
        "x-amz-bedrock-kb-source-uri": f"s3://bucket/{file}.pdf",
        "x-amz-bedrock-kb-document-page-number": float(EACH * page + number),
    }
    return {"location": {"s3Location": {"uri": f"s3://bucket/{file}.pdf"}, "type": "S3"}, "source_metadata": own}


def firecrawl(file: int, page: int, number: int) -> dict[str, Any]:
    return {"title": "Docs", "sourceURL": f"https://x.org/{file}", "start_index": 400 * (EACH * page + number)}


def dify(file: int, page: int, number: int) -> dict[str, Any]:
    return {"document_name": f"{file}.md", "segment_position": EACH * page + number, "position": 7 - number}


def langchain4j(file: int, page: int, number: int) -> dict[str, Any]:
    return {"file_name": f"{file}.txt", "index": str(EACH * page + number)}


TOOLS: list[Layout] = [
    *(langchain_js, n8n, lines_of_a_text, spring_ai, docling, ragflow, ragflow_numbered, lightrag, bedrock, firecrawl),
    *(dify, langchain4j),
]


@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("layout", TOOLS)
def test_the_order_is_read_from_what_the_tool_writes(layout: Layout, flatten: bool):
    places = [(file, page, number) for file in range(2) for page in range(1, PAGES + 1) for number in range(EACH)]
    metadata = {place: layout(*place) for place in places}
    if flatten:
        metadata = {place: flat(about) for place, about in metadata.items()}
    for seed in range(5):
        some = random.Random(seed).sample(places, 25)
        chunks = [Chunk(f"Text {place}.", rank, metadata=metadata[place]) for rank, place in enumerate(some)]
        kept = [some[chunk.rank] for chunk in build_context(chunks).kept]
        first = some[0][0]
        assert kept == sorted(some, key=lambda place: (place[0] != first, place))


def test_usual_fields_take_precedence():
    about = {"page_number": 7, "source": "a.pdf", "loc": {"pageNumber": 3, "lines": {"from": 2}}}
    assert with_usual_fields(about) == {**about, "line": 2}
    assert with_usual_fields({"loc": {"pageNumber": 3}})["page_number"] == 3
    plain = {"source": "a.pdf", "page": 3}
    assert with_usual_fields(plain) is plain


@pytest.mark.parametrize(
    "strange",
    [
        None,
        5,
        "text",
        [],
        {},
        {"lines": 5},
        {"lines": {"from": None}},
        {"pageNumber": {}, "lines": []},
        {"doc_items": "ab"},
        {"doc_items": []},
        {"doc_items": [None]},
        {"doc_items": [{"prov": []}]},
        {"origin": "a.pdf"},
        [[["deep"]]],
    ],
    ids=repr,
)
@pytest.mark.parametrize("root", sorted({str(path[0]) for paths in LAYOUTS.values() for path in paths}))
@pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")
def test_other_values_do_no_harm(root: str, strange: Any):
    chunks = [Chunk(f"Text {rank}.", rank, metadata={"source": "a.pdf", root: strange}) for rank in range(3)]
    assert [chunk.rank for chunk in build_context(chunks).kept] == [0, 1, 2]


def test_a_placeholder_is_no_source():
    chunks = [Chunk(f"Text {rank}.", rank, metadata={"source": "blob"}) for rank in range(3)]
    with pytest.warns(UserWarning, match="3 of 3 chunks do not name their source"):
        context = build_context(chunks)
    assert [chunk.source for chunk in context.kept] == [None] * 3


def test_a_key_that_the_caller_names_may_contain_a_placeholder():
    chunk = Chunk("Text.", 0, metadata={"kind": "blob", "source": "a.txt"})
    assert source_of(chunk, "kind") == "blob"


def test_numbers_that_are_shared_on_a_page_do_not_order_it():
    about = [{"source": "a", "page": page, "chunk_index": number} for page, number in [(2, 1), (1, 0), (2, 1), (1, 1)]]
    chunks = [Chunk(f"Text {rank}.", rank, metadata=one) for rank, one in enumerate(about)]
    with pytest.warns(UserWarning, match="share a page or another number"):
        assert [chunk.rank for chunk in build_context(chunks).kept] == [1, 3, 0, 2]


def test_a_citation_names_the_nested_page():
    chunks = [Chunk(f"Text {rank}.", rank, metadata=langchain_js(0, 3 - rank, 0)) for rank in range(3)]
    assert build_context(chunks, header="[{source}, {page}]").text.startswith("[/data/0.pdf, 1]")
