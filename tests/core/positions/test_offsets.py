from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Place, Position, PositionKind, Span
from oprag.chunk import changed
from oprag.positions.fields import START_FIELDS
from oprag.positions.readings import is_exact
from oprag.positions.source_order import Listing, Offsets, order_of

Claim = tuple[int | None, int, int] | None


def read(*chunks: Chunk) -> tuple[str, list[Span | None]]:
    order = order_of(Listing(chunks))
    return order.field, list(order.spans)


def disagree(texts: list[str], claims: list[Claim]) -> bool:
    """Whether chunks that claim these pages and characters are not placed by them."""
    chunks: list[Chunk] = []
    for rank, (text, claim) in enumerate(zip(texts, claims, strict=True)):
        page, start, end = claim or (None, None, None)
        found = {"page": page, "start_index": start, "end_index": end}
        chunks.append(Chunk(text, rank, metadata={name: value for name, value in found.items() if value is not None}))
    with_pages = any(claim is not None and claim[0] is not None for claim in claims)
    kind = PositionKind.PAGE_OFFSET if with_pages else PositionKind.OFFSET
    return all(position.kind is not kind for position in order_of(Listing(chunks)).positions)


def four(span: Any = None, **metadata: Any) -> Chunk:
    return Chunk("four", 0, metadata=metadata, span=span and Span(*span))


READ: list[tuple[list[Chunk], str, list[Any]]] = [
    *(([four(None, **{start: "10", end: 14.0})], start, [Span(10, 14)]) for start, end in START_FIELDS.items()),
    # Without a valid end, the length of the text tells it.
    ([four(start_index=10)], "start_index", [Span(10, 14)]),
    *(
        ([four(start_index=10, end_index=end)], "start_index", [Span(10, 14)])
        for end in (None, -1, 9, "x", 12.5, float("nan"), True)
    ),
    *(
        ([four(start_index=start)], "", [None])
        for start in (None, -1, "-1", 1.5, "x", float("inf"), False, [0], {"a": 0})
    ),
    # Metadata precede the span of a framework, as what `write_positions` corrects is written to them.
    (
        [four((3, 7), start_index=10), changed(four((3, 7), start_index=-1), rank=1)],
        "start_index, span",
        [Span(10, 14), Span(3, 7)],
    ),
    ([four((0, 4, 2))], "span.page, span", [Span(0, 4, 2)]),
    ([four((5, None))], "span", [Span(5, 9)]),
    *(([four((start, 4))], "", [None]) for start in (None, -1, "x", float("nan"))),
]


@pytest.mark.parametrize(("chunks", "field", "spans"), READ)
def test_offsets_are_read_as_splitters_and_stores_write_them(chunks, field, spans):
    assert read(*chunks) == (field, spans)


def test_a_span_is_exact_when_it_is_as_long_as_the_text():
    assert is_exact(Chunk("four", 0), Span(6, 10))
    assert not is_exact(Chunk("four", 0), Span(6, 11))


def test_true_offsets_agree():
    text = "abcdefghij"
    spans = [(0, 4), (2, 6), (2, 4), (4, 10), (0, 4)]
    assert not disagree([text[start:end] for start, end in spans], [(None, start, end) for start, end in spans])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(("abc", 0, 3), ("xyz", 0, 3), id="one place, two texts"),
        pytest.param(("abc", 0, 9), ("xyz", 0, 9), id="one inexact place, two texts"),
        pytest.param(("abcd", 0, 4), ("cxef", 2, 6), id="overlap"),
        pytest.param(("abcdef", 0, 6), ("xy", 2, 4), id="inside"),
    ],
)
def test_one_place_with_two_texts_is_a_contradiction(first, second):
    texts = [first[0], second[0]]
    assert disagree(texts, [(None, *first[1:]), (None, *second[1:])])
    # On two pages it is none.
    assert not disagree(texts, [(1, *first[1:]), (2, *second[1:])])


def test_what_claims_nothing_contradicts_nothing():
    assert not disagree(["abc", "xyz"], [(None, 0, 3), None])


@given(st.lists(st.tuples(st.integers(0, 8), st.text("ab", max_size=5), st.integers(1, 2)), min_size=1, max_size=7))
def test_contradictions_are_those_of_every_pair(claimed):
    claims: list[Claim] = [(page, start, start + len(text)) for start, text, page in claimed]

    def characters(index: int) -> dict[tuple[int, int], str]:
        start, text, page = claimed[index]
        return {(page, start + offset): letter for offset, letter in enumerate(text)}

    pairs = [(i, j) for i in range(len(claimed)) for j in range(i)]
    expected = any(
        characters(i)[place] != characters(j)[place] for i, j in pairs for place in characters(i).keys() & characters(j)
    )
    assert disagree([text for _, text, _ in claimed], claims) == expected


# Copies of a file that was added twice, a document for each page.


def of_files(*rows: tuple[str, int, int, str]) -> list[Chunk]:
    """Chunks from file, page, offset and text."""
    return [
        Chunk(text, rank, metadata={"page": page}, document_id=f"{file}{page}", span=Span(start, start + len(text)))
        for rank, (file, page, start, text) in enumerate(rows)
    ]


def by_offset(chunks: list[Chunk]) -> bool:
    return all(position.kind is PositionKind.PAGE_OFFSET for position in order_of(Listing(chunks)).positions)


def test_copies_of_a_page_have_the_same_places():
    twice = [(file, page, start, f"{page} {start}") for page in (1, 2) for start in (0, 10) for file in "AB"]
    assert by_offset(of_files(*twice))
    # The search is cut off between the last node and its copy.
    assert by_offset(of_files(*twice[:-1]))
    assert by_offset(of_files(*twice, *(("C", page, start, text) for _, page, start, text in twice[:4])))


@pytest.mark.parametrize(
    "rows",
    [
        # A page of two files has a letterhead in common.
        [("A", 1, 0, "letterhead"), ("B", 1, 0, "letterhead"), ("A", 1, 20, "one"), ("B", 1, 30, "two")],
        # Two files have a page in common.
        [("A", 1, 0, "terms"), ("B", 1, 0, "terms"), ("A", 2, 0, "one"), ("B", 3, 0, "two")],
        [("A", 1, 0, "one"), ("B", 1, 10, "two")],
    ],
)
def test_files_that_share_a_part_are_no_copies(rows):
    assert not by_offset(of_files(*rows))


@given(st.data())
def test_chunks_that_are_taken_for_copies_may_be_of_one_file(data):
    texts = st.sampled_from(["terms", "other"])
    files = {file: {(page, start): data.draw(texts) for page in range(3) for start in (0, 10)} for file in "AB"}
    rows = [(file, page, start, text) for file, chunks in files.items() for (page, start), text in chunks.items()]
    found = data.draw(st.lists(st.sampled_from(rows), min_size=1, unique=True))
    pages = {(file, page) for file, page, _, _ in found}
    if len({page for _, page in pages}) < len(pages) and by_offset(of_files(*found)):
        assert any(all(chunks[page, start] == text for _, page, start, text in found) for chunks in files.values())


USUAL: list[dict[str, Any]] = [{}, {"source": "book"}, {"source": "b", "url": "c"}, {"source": 7, "file_path": "b"}]
ODD: list[dict[str, Any]] = [
    {"page": 1},
    {"page_label": "b"},
    {"row": 2},
    {"top": 2},
    {"loc": {"pageNumber": 2}},
    {"chunk_index": 3},
    {"chunk_numbering": "n"},
    {"start_seconds": 4},
    {"end_index": 60},
    {"start_char": 5},
    {"source": "book&t=3s"},
    {"source": 7},
    {"source": None},
    {"url": "https://example.org/watch?v=book&t=3s"},
    {"start_index": "5"},
    {"start_index": 5},
    {"start_index": -1},
    {"Header 2": "of a section"},
    {"title": "of no place"},
    {"span": Span(0, 9)},
    {"next_id": "next"},
    {"place": Place((3,), PositionKind.STORE)},
    {"position": Position((3,), PositionKind.STAMPED)},
]
FIELDS = {"span", "next_id", "place", "position"}
TEXT = "".join(chr(97 + (number * number // 3) % 26) for number in range(60))


@st.composite
def of_one_source(draw: st.DrawFn) -> list[Chunk]:
    """Chunks with offsets, a few of which lie, or are not all that tells a place."""
    usual = draw(st.sampled_from(USUAL))
    chunks: list[Chunk] = []
    for rank, start in enumerate(draw(st.lists(st.integers(0, 50), min_size=1, max_size=7))):
        odd = draw(st.sampled_from(ODD)) if draw(st.integers(0, 19)) == 0 else {}
        fields = {name: value for name, value in odd.items() if name in FIELDS}
        metadata = {**usual, "start_index": start, **odd}
        chunks.append(Chunk(TEXT[start : start + draw(st.integers(0, 8))], rank, metadata=metadata, **fields))
    return chunks


@given(of_one_source(), st.integers(1, 7))
def test_offsets_that_are_all_that_is_stated_tell_the_order_that_is_decided_from_everything(chunks, first):
    offsets = Offsets.of(chunks[:first])
    for known, found in ((offsets, chunks[:first]), (offsets and offsets.with_more(chunks[first:]), chunks)):
        if known is not None:
            decided = order_of(Listing(found))
            assert known.order == decided
            assert (
                known.sequence
                == decided.sequence
                == sorted(range(len(found)), key=lambda index: decided.keys[index] or ())
            )


@pytest.mark.parametrize("odd", ODD)
def test_nothing_else_that_tells_a_place_is_passed_over(odd):
    fields = {name: value for name, value in odd.items() if name in FIELDS}
    metadata = {"source": "book", "start_index": 20, **odd}
    usual = Chunk(TEXT[10:20], 0, metadata={"source": "book", "start_index": 10})
    offsets = Offsets.of([usual])
    assert offsets is not None
    more = offsets.with_more([Chunk(TEXT[20:30], 1, metadata=metadata, **fields)])
    assert (more is not None) == ("title" in odd)


@pytest.mark.parametrize(
    "spans", [[(0, 30), (5, 10)], [(0, 30), (5, 10), (12, 20)], [(0, 9), (0, 9)], [(0, 9), (0, 12)]]
)
def test_chunks_amid_or_at_the_start_of_others_are_weighed(spans):
    chunks = [Chunk(TEXT[start:end], rank, metadata={"start_index": start}) for rank, (start, end) in enumerate(spans)]
    assert Offsets.of(chunks) is None
