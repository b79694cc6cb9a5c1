from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, PositionKind, Span, arrange, build_context
from oprag.options import PositionKey
from oprag.positions.fields import NUMBER_FIELDS, PAGE_FIELDS, STAMPED_FIELDS
from oprag.positions.source_order import Listing, SourceOrder, order_of
from oprag.positions.source_text import SourceText
from tests.helpers import hit, ranks


def place_all(
    metadata: Sequence[Any], position_key: PositionKey | None = None, texts: Sequence[str] | None = None
) -> SourceOrder:
    """Read chunks with these metadata, best first, all of one source."""
    chunks = [
        Chunk(texts[rank] if texts else f"text {rank}", rank, metadata=each) for rank, each in enumerate(metadata)
    ]
    return order_of(Listing(chunks), position_key)


def kinds(metadata: Sequence[Any], **options: Any) -> list[PositionKind]:
    return [position.kind for position in place_all(metadata, **options).positions]


def sequence(metadata: Sequence[Any], **options: Any) -> list[int]:
    """The ranks of the chunks that have a position, in order."""
    positions = place_all(metadata, **options).positions
    known = [rank for rank, position in enumerate(positions) if position.known]
    return sorted(known, key=lambda rank: positions[rank].key)


@pytest.mark.parametrize(
    ("kind", "field", "metadata"),
    [
        *((PositionKind.STAMPED, field, {field: 4}) for field in STAMPED_FIELDS),
        *((PositionKind.PAGE_OFFSET, f"{page}, start_index", {page: 4, "start_index": 0}) for page in PAGE_FIELDS),
        (PositionKind.OFFSET, "start_char_idx", {"start_char_idx": 4}),
        *((PositionKind.PAGE, field, {field: "4"}) for field in (*PAGE_FIELDS, *NUMBER_FIELDS)),
        (PositionKind.NONE, "", {"title": 4}),
    ],
)
def test_each_kind_says_what_it_was_read_from(kind, field, metadata):
    (position,) = place_all([metadata]).positions
    assert (position.kind, position.field) == (kind, field)
    assert position.known == (kind is not PositionKind.NONE)


def test_no_chunks_have_no_positions():
    order = place_all([])
    assert (order.positions, order.spans) == ([], [])


STAMPED, PAGED, OFFSET, PAGE, NONE = (
    PositionKind.STAMPED,
    PositionKind.PAGE_OFFSET,
    PositionKind.OFFSET,
    PositionKind.PAGE,
    PositionKind.NONE,
)
ALL = {"chunk_index": 4, "page": 2, "start_index": 40}
SECTIONS = [0, 0, 500]  # offsets that restart


class Case(NamedTuple):
    """The metadata of the chunks of a source, how their positions are known, and the ranks of those that are, in order.

    One kind stands for all chunks.
    """

    metadata: Sequence[Mapping[str, Any]]
    kinds: PositionKind | list[PositionKind]
    order: list[int] | None = None
    texts: list[str] | None = None


def stamps_of(labels: Sequence[Any], field: str = "page_label", **more: Any) -> list[dict[str, Any]]:
    """Chunks that are stamped in sequence, with these pages."""
    return [{"chunk_index": number, field: label, **more} for number, label in enumerate(labels)]


TWO_CALLS = [{"chunk_index": 0, "chunk_numbering": "n1"}, {"chunk_index": 1, "chunk_numbering": "n2"}]


CASES = {
    # The highest kind that covers every chunk, else the one that covers most.
    "all have stamps": Case([{"chunk_index": 5, "page": 2, "start_index": 50}, ALL], STAMPED, [1, 0]),
    "all have offsets on pages": Case([{"chunk_index": None, "page": 2, "start_index": 50}, ALL], PAGED, [1, 0]),
    "all have offsets": Case([{"page": None, "start_index": 50}, ALL], OFFSET, [1, 0]),
    "all have pages": Case([{"page": 3, "start_index": -1}, ALL], PAGE, [1, 0]),
    "most have offsets": Case(
        [{"chunk_index": 1}, {"start_index": 90}, {"start_index": 10}, {}], [NONE, OFFSET, OFFSET, NONE], [2, 1]
    ),
    "a stamp and a page": Case([{"chunk_index": 1}, {"page": 3}], [STAMPED, NONE]),
    "a page and an offset": Case([{"page": 3}, {"start_index": 30}, {}], [NONE, OFFSET, NONE]),
    # Stamps.
    "a stamp for two texts": Case(
        [{"chunk_index": 0, "page": 2}, {"chunk_index": 0, "page": 1}, {"chunk_index": 1, "page": 1}], PAGE
    ),
    "stamps that go with the pages": Case(
        [{"chunk_index": number, "page": page} for number, page in [(7, 3), (2, 1), (0, 0), (3, 1), (9, 3)]], STAMPED
    ),
    "stamps against pages of some": Case(
        [{"chunk_index": 0, "page": 2}, {"chunk_index": 1, "page": 1}, {"chunk_index": 2}], STAMPED
    ),
    # Merged files, stamped in one call: the pages restart, and the stamps do not.
    **{
        f"stamps of one call against {field}": Case(stamps_of("112112", field, chunk_numbering="n1"), STAMPED)
        for field in PAGE_FIELDS
    },
    # Another tool may have stamped each page alone: only the pages tell.
    **{f"stamps against {field}": Case(stamps_of("211", field), PAGE) for field in PAGE_FIELDS},
    "stamps against numbers": Case(stamps_of([2.0, 1.0, 1.0], "page"), PAGE),
    "stamps against pages with offsets": Case(
        [{**one, "start_index": 90 * n} for n, one in enumerate(stamps_of([2, 1, 1], "page"))], PAGED
    ),
    "stamps against labels that contradict themselves": Case(stamps_of("1212", start_index=0), STAMPED),
    # The order of labels is a guess.
    **{
        f"stamps against labels {labels}": Case(stamps_of(labels, start_index=0), STAMPED)
        for labels in [("Cover", "i", "ii", "1", "2"), ("1", "A-1", "2"), ("1", "2", "i")]
    },
    "stamps of two calls": Case(TWO_CALLS, NONE),
    "stamps of a call and of a tool": Case([TWO_CALLS[0], {"chunk_index": 1}], NONE),
    "stamps of two calls, beside rows": Case([{**one, "row": row} for row, one in enumerate(TWO_CALLS)], PAGE),
    "stamps of two calls, beside others": Case([{**one, "split_id": n} for n, one in enumerate(TWO_CALLS)], STAMPED),
    "a stamp for two texts, beside another": Case(
        [{"chunk_index": 0, "split_id": 7}, {"chunk_index": 0, "split_id": 3}], STAMPED, [1, 0]
    ),
    "a stamp for one text twice": Case([{"chunk_index": 0}] * 2, STAMPED, texts=["same", "same"]),
    "a chunk without a stamp": Case(
        [{"chunk_index": 1, "chunk_numbering": "n1"}, {}, {"chunk_index": 0, "chunk_numbering": "n1"}],
        [STAMPED, NONE, STAMPED],
    ),
    **{
        f"a stamp of {value!r}": Case(
            [{"chunk_index": 1}, {"chunk_index": value}, {"chunk_index": 0}], [STAMPED, NONE, STAMPED]
        )
        for value in [None, -1, "-1", True, float("nan"), float("inf"), "", "x", [1], {"a": 1}, Decimal("NaN")]
    },
    # Offsets and pages.
    "offsets of pages": Case(
        [{"page": 2, "start_index": 0}, {"page": 1, "start_index": 500}, {"page": 1, "start_index": 0}],
        PAGED,
        [2, 1, 0],
    ),
    "offsets of sections": Case([{"start_index": start} for start in SECTIONS], NONE),
    "offsets that overlap with other text": Case([{"start_index": start} for start in (0, 4, 900)], NONE),
    "offsets that overlap with the same text": Case(
        [{"start_index": start} for start in (0, 4, 12)],
        OFFSET,
        texts=["one section of text", "section of text and more", "of"],
    ),
    "offsets of sections of a page": Case([{"page": 1, "start_index": start} for start in SECTIONS], PAGE),
    # A reader that makes a document for each element of a page, split with offsets.
    "offsets of elements": Case([{"page_number": page, "start_index": 0} for page in (2, 1, 1, 2)], PAGE, [1, 2, 0, 3]),
    "offsets against labels": Case([{"page_label": label, "start_index": 0} for label in "2121"], NONE),
    "offsets against labels, beside rows": Case(
        [{"page_label": label, "start_index": 0, "row": row} for row, label in enumerate("2121")], PAGE, [0, 1, 2, 3]
    ),
    "offsets against labels, beside pages": Case(
        [{"page_label": label, "start_index": 0, "page": page} for page, label in enumerate("2121")],
        PAGED,
        [0, 1, 2, 3],
    ),
    "offsets on labels": Case(
        [
            {"page_label": "2", "start_char_idx": 0},
            {"page_label": "iv", "start_char_idx": 700},
            {"page_label": "iv", "start_char_idx": 90},
        ],
        PAGED,
        [2, 1, 0],
    ),
    "a page of two chunks": Case([{"page": 1}, {"page": 1}, {"page": 0}], PAGE, [2, 0, 1]),
    "labels of several styles": Case(
        [{"page_label": label} for label in ["2", "iv", "10", "i", "A-10", "A-2", "1"]], PAGE, [3, 1, 6, 0, 2, 5, 4]
    ),
    "pages in source": Case([{"source": page, "file_path": "a.pdf"} for page in ("10", "9")], PAGE, [1, 0]),
    "pages in source, and offsets": Case(
        [{"source": page, "file_path": "a.pdf", "start_index": 5} for page in ("10", "9")], PAGED, [1, 0]
    ),
    "pages beside numbers in source": Case(
        [{"source": str(n), "file_path": "a.pdf", "page": 8 - n} for n in (1, 2)], PAGE, [1, 0]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_how_positions_are_known(name):
    metadata, expected, in_order, texts = CASES[name]
    assert kinds(metadata, texts=texts) == (expected if isinstance(expected, list) else [expected] * len(metadata))
    assert in_order in (None, sequence(metadata))


@pytest.mark.parametrize("field", ["chunk_index", "start_index", "page", "page_label", "row"])
def test_numbers_of_all_types_stand_in_one_order(field):
    values = ["1000", 90, "100", 20.0, np.int64(300), Decimal(40), "0"]
    assert sequence([{field: value} for value in values]) == [6, 3, 5, 1, 2, 4, 0]


# --- pages ---


def test_a_page_number_goes_before_its_label():
    metadata = [{"page": 5, "page_label": "1"}, {"page": "0", "page_label": "ii"}, {"page": 4.0, "page_label": "iii"}]
    assert sequence(metadata) == [1, 2, 0]
    assert place_all(metadata).positions[0].field == "page"


# --- chains ---


def test_links_are_taken_before_pages():
    chunks = [
        Chunk("c", 0, id="c", previous_id="b", metadata={"page": 1}),
        Chunk("a", 1, id="a", next_id="b", metadata={"page": 1}),
    ]
    positions = order_of(Listing(chunks)).positions
    assert [position.kind for position in positions] == [PositionKind.LINKS, PositionKind.LINKS]
    assert positions[1].key < positions[0].key


def test_links_that_connect_few_chunks_give_way_to_what_covers_more():
    chunks = [
        Chunk("c", 0, id="c", previous_id="b", metadata={"page": 3}),
        Chunk("a", 1, id="a", next_id="b", metadata={"page": 1}),
        Chunk("z", 2, id="z", metadata={"page": 2}),
    ]
    assert {position.kind for position in order_of(Listing(chunks)).positions} == {PositionKind.PAGE}


# --- position_key ---


def test_a_position_key_replaces_all_others():
    metadata = [{"chunk_index": 0, "verse": 7}, {"chunk_index": 1, "verse": 3}, {"chunk_index": 2}]
    assert kinds(metadata, position_key="verse") == [PositionKind.KEY, PositionKind.KEY, PositionKind.NONE]
    assert sequence(metadata, position_key="verse") == [1, 0]
    assert kinds(TWO_CALLS, position_key="chunk_index") == [PositionKind.KEY] * 2


def test_several_position_keys_form_one_key():
    metadata = [{"book": 2, "verse": 1}, {"book": 1, "verse": "10"}, {"book": 1, "verse": 9}, {"book": 1}]
    assert sequence(metadata, position_key=("book", "verse")) == [2, 1, 0]
    assert place_all(metadata, ("book", "verse")).positions[0].field == "book, verse"


def test_a_position_key_may_be_a_function():
    def verse(chunk):
        return chunk.metadata["at"]["verse"]

    metadata = [{"at": {"verse": 12}}, {"at": {"verse": "2"}}, {"at": {"verse": None}}]
    assert sequence(metadata, position_key=verse) == [1, 0]
    assert place_all(metadata, verse).positions[0].field == "verse"


def test_the_values_of_a_position_key_may_be_of_any_type():
    values = [
        "part 10",
        "part 9",
        [2, "b"],
        (2, "a"),
        date(2024, 3, 1),
        datetime(2024, 2, 1, 8, tzinfo=UTC),
        3,
        "2",
        Decimal("2.5"),
    ]
    order = sequence([{"at": value} for value in values], position_key="at")
    assert order == [7, 3, 2, 8, 6, 5, 4, 1, 0]


@pytest.mark.parametrize(
    "values",
    [
        ["1", "1.1", "1.1.1", "1.2", "1.9", "1.10", "2", "2.1"],  # sections
        ["1.2", "1.9", "1.10"],
        ["0.25", "0.5", "1.0", "1.25", "1.5"],  # seconds
        ["2.25", "2.50", "11.75"],
        ["2026-07-01T23:00:00+02:00", datetime(2026, 7, 1, 22, 30, tzinfo=UTC), "2026-07-01T22:45:00Z"],
        ["2026-07-01T22:30:00", "2026-07-01T23:00:00"],
        ["2026-02-29T23:00:00+02:00", "2026-02-30T22:45:00Z"],  # days that there are not
    ],
    ids=str,
)
def test_sections_and_dates(values):
    assert sequence([{"at": value} for value in values[::-1]], position_key="at") == [*range(len(values))][::-1]


@pytest.mark.parametrize(
    "value",
    [
        *(None, -1, "-1", "", "  ", True, float("nan"), b"1", object()),
        *({}, {"a": 1}, [], (), [1, None], (True,), [[1]], {1}),
    ],
)
def test_a_value_of_a_position_key_that_does_not_count_is_no_position(value):
    assert kinds([{"at": value}, {"at": 1}], position_key="at") == [PositionKind.NONE, PositionKind.KEY]


def test_a_value_that_is_nested_very_deeply_is_no_foreign_error():
    nested: object = 1
    for _ in range(5000):
        nested = [nested]
    assert kinds([{"at": nested}, {"at": 1}], position_key="at")[1] is PositionKind.KEY


@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
            lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner),
            max_leaves=5,
        ),
        max_size=6,
    )
)
def test_the_values_of_a_position_key_always_compare(values):
    positions = place_all([{"at": value} for value in values], "at").positions
    keys = [position.key for position in positions if position.known]
    assert sorted(sorted(keys), reverse=True) == sorted(keys, reverse=True)


# --- spans ---


def test_spans_say_the_page_that_they_count_from():
    metadata = [
        {"page": "3", "start_index": 0},
        {"page": 2.0, "start_index": 0, "end_index": 6},
        {"page": " iv ", "start_index": 0},
        {"start_index": 0},
    ]
    assert place_all(metadata).spans == [Span(0, 6, 3), Span(0, 6, 2), Span(0, 6, "iv"), None]


def test_spans_without_a_page_count_from_the_start_of_the_source():
    # A metadata key of a user is not the page of a span, whatever it is called.
    assert place_all([{"start_index": 5, "": "x"}, {"start_index": 50, "": "y"}]).spans == [Span(5, 11), Span(50, 56)]


def test_spans_are_read_beside_a_better_kind():
    placement = place_all([{"chunk_index": 3, "start_index": 70}, {"chunk_index": 2, "start_index": 20}])
    assert placement.spans == [Span(70, 76), Span(20, 26)]
    assert placement.positions[0].kind is PositionKind.STAMPED


def test_offsets_that_contradict_each_other_are_no_spans():
    assert place_all([{"chunk_index": 0, "start_index": 0}, {"chunk_index": 1, "start_index": 0}]).spans == [None, None]


def test_the_page_of_a_span_is_the_one_that_it_counts_from():
    spans = [Span(0, 6, 2), Span(40, 46, 1), Span(0, 6, 1)]
    chunks = [Chunk(f"text {rank}", rank, source="book", span=span) for rank, span in enumerate(spans)]
    context = build_context(chunks, header="{page}", separator="|")
    assert context.text == "1\ntext 2|1\ntext 1|2\ntext 0"
    assert [chunk.span for chunk in context.kept] == [spans[2], spans[1], spans[0]]
    assert [(report.kind, report.field) for report in context.sources] == [
        (PositionKind.PAGE_OFFSET, "span.page, span")
    ]
    assert [drop.reason for drop in context.dropped] == []
    # Under another key the spans are read again.
    again = build_context(context.kept, position_key=lambda chunk: chunk.rank)
    assert [chunk.span for chunk in again.kept] == spans


def test_offsets_on_a_page_are_not_those_of_the_source():
    # Read without its page, the first would be the earliest.
    spans = [Span(0, 6, 2), Span(40, 46, 1), Span(5, 11)]
    chunks = [Chunk(f"text {rank}", rank, source="book", span=span) for rank, span in enumerate(spans)]
    positions = order_of(Listing(chunks)).positions
    assert [position.kind for position in positions] == [
        PositionKind.PAGE_OFFSET,
        PositionKind.PAGE_OFFSET,
        PositionKind.NONE,
    ]
    assert positions[1].key < positions[0].key


@pytest.mark.parametrize("label", ["iv", " iv "])
def test_the_page_of_a_span_may_be_a_label(label):
    chunks = [Chunk("a", 0, span=Span(0, 1, 1)), Chunk("b", 1, span=Span(0, 1, label))]
    assert [span and span.page for span in order_of(Listing(chunks)).spans] == [1, "iv"]
    assert order_of(Listing(chunks)).positions[1].key < order_of(Listing(chunks)).positions[0].key


def test_the_pages_of_spans_may_be_labels_of_any_kind():
    spans = [Span(0, 6, "A-10"), Span(0, 6, "A-2"), Span(0, 6, 3)]
    chunks = [Chunk(f"text {rank}", rank, source="book", span=span) for rank, span in enumerate(spans)]
    assert ranks(arrange(chunks)) == [2, 1, 0]


@pytest.mark.parametrize("seconds", [[90, 30.5], ["90", "30"], [90.0, None]])
def test_the_seconds_that_a_chunk_begins_with_are_a_position(seconds):
    url = "https://youtu.be/abc?t=30"
    metadata = [{"source": url, "start_seconds": each} if each is not None else {"source": url} for each in seconds]
    placement = place_all([{**each, "start_index": 0} for each in metadata])
    assert placement.positions[1].key < placement.positions[0].key
    assert placement.positions[0].kind is PositionKind.PAGE_OFFSET
    assert placement.spans[0] == Span(0, 6, "90 s")
    assert sequence(metadata) == [1, 0]


def test_a_chunk_without_an_offset_leaves_only_its_own_page_without_order():
    metadata = [{"page": page, "start_index": start} for page in range(4) for start in (0, 800, 1600)]
    metadata[7]["start_index"] = -1  # LangChain's splitter did not find it
    placement = place_all(metadata[::-1])
    assert {position.kind for position in placement.positions} == {PositionKind.PAGE}
    assert placement.positions[0].field == "page, start_index"
    keys = [position.key for position in placement.positions][::-1]
    assert keys[:6] == sorted(set(keys[:6]))
    assert keys[9:] == sorted(set(keys[9:]))
    assert len(set(keys[6:9])) == 1


def test_stamps_order_the_pages_on_which_all_chunks_have_one():
    """A parent without a stamp costs only its own page."""
    pages = [(2, 5), (1, 1), (2, 4), (1, 0), (3, None), (3, 7)]
    chunks = [
        hit(f"text {rank}", rank, page=page, **({} if stamp is None else {"chunk_index": stamp}))
        for rank, (page, stamp) in enumerate(pages)
    ]
    positions = order_of(Listing(chunks)).positions
    in_order = sorted(chunks, key=lambda chunk: (positions[chunk.rank].key, chunk.rank))
    assert [chunk.rank for chunk in in_order] == [3, 1, 2, 0, 4, 5]
    assert {position.field for position in positions} == {"page, chunk_index"}
    assert positions[4] == positions[5]


def test_offsets_order_pages_if_stamps_cover_fewer_of_them():
    places = [(2, 60), (1, 70), (2, 0), (3, 50), (1, 0), (3, 0), (4, None)]
    chunks = [
        hit(
            f"text {rank}",
            rank,
            page=page,
            **({} if start is None else {"start_index": start}),
            **({"chunk_index": start} if page == 1 else {}),
        )
        for rank, (page, start) in enumerate(places)
    ]
    positions = order_of(Listing(chunks)).positions
    assert sorted(range(7), key=lambda rank: positions[rank].key) == [4, 1, 2, 0, 5, 3, 6]


def test_stamps_of_a_store_do_not_go_before_the_text():
    numbering = {"chunk_numbering": "s0123456789ab"}
    chunks = [
        hit(text, rank, page=1, chunk_index=stamp, **numbering)
        for rank, (text, stamp) in enumerate([("two", 0), ("one", 1), ("three", 2)])
    ]
    lacking = hit("other", 3, page=2)
    positions = order_of(Listing([*chunks, lacking]), text=SourceText("one two three")).positions
    assert sorted(range(4), key=lambda rank: positions[rank].key) == [1, 0, 2, 3]
