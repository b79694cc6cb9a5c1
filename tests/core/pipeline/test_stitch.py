import random
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Passage, PositionKind, Span, build_context
from oprag.pipeline.stitch import stitch
from oprag.positions.source_order import Listing, order_of
from tests.helpers import cut, hit, prose, ranks, texts

TEXT = prose(120, seed=2)


def stitched(chunks: Iterable[Chunk], **options: Any) -> list[Passage]:
    return list(build_context(chunks, **options).passages)


def spans_of(passage: Passage) -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in passage.spans]


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([(0, 40), (40, 90)], id="touching"),
        pytest.param([(40, 90), (0, 40)], id="touching, given backwards"),
        pytest.param([(0, 60), (40, 100)], id="overlapping"),
        pytest.param([(0, 100), (40, 60)], id="contained"),
        pytest.param([(0, 100), (60, 100)], id="contained at the end"),
        pytest.param([(0, 100), (0, 60)], id="contained at the start"),
        pytest.param([(0, 40), (10, 20), (30, 50)], id="contained and overlapping"),
        pytest.param([(0, 50), (20, 70), (40, 90), (60, 110)], id="each overlapping two"),
        pytest.param([(0, 50), (50, 100), (100, 150), (75, 125)], id="a chunk across a border"),
    ],
)
def test_chunks_that_touch_or_overlap_are_one_passage(spans):
    end = max(end for _, end in spans)
    (passage,) = stitched(cut(TEXT, spans))
    assert passage.text == TEXT[:end]
    assert passage.spans == (Span(0, end),)
    assert sorted(ranks(passage.chunks)) == list(range(len(spans)))
    assert (passage.source, passage.rank) == ("book", 0)


@pytest.mark.parametrize("order", ["rank", "reverse_rank", "edges", "random"])
def test_in_other_orders_only_what_stands_behind_each_other_is_joined(order):
    chunks = cut(TEXT, [(50, 100), (0, 50), (100, 150)])
    passages = stitched(chunks, order=order)
    assert sum(len(passage.chunks) for passage in passages) == 3
    for passage in passages:
        starts = [chunk.span.start for chunk in passage.chunks if chunk.span]
        assert starts == sorted(starts)
        assert passage.text == TEXT[starts[0] : passage.spans[-1].end]


# --- chunks that follow each other ---


@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
def test_chunks_that_are_linked_as_neighbours_are_one_passage():
    def linked(text: str, rank: int, name: str, before: str | None) -> Chunk:
        return Chunk(text, rank, source="book", id=name, previous_id=before)

    chunks = [linked("first", 0, "a", None), linked("second", 1, "b", "a"), linked("fourth", 2, "d", "c")]
    assert [texts(passage.chunks) for passage in stitched([*chunks, linked("fifth", 3, "e", "d")])] == [
        ["first", "second"],
        ["fourth", "fifth"],
    ]


@pytest.mark.parametrize(("numbering", "passages"), [({}, 2), ({"chunk_numbering": "n0123456789ab"}, 1)])
def test_numbers_of_two_documents_are_adjacent_only_in_one_numbering(numbering, passages):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "numbers of chunks tell the order of several documents")
        chunks = [
            Chunk(f"Text {n}.", n, "s", {"chunk_index": n, **numbering}, document_id=f"document {n}") for n in (0, 1)
        ]
        context = build_context(chunks, stitch=True)
    assert len(context.passages) == passages
    assert context.certainty == ("known" if numbering else "assumed")


def test_stamps_that_are_no_neighbours_keep_touching_offsets_apart():
    # Offsets of a splitter that strips white space can seem to touch where a whole chunk stood between.
    chunks = [hit("abc", 0, chunk_index=0, start_index=0), hit("xyz", 1, chunk_index=2, start_index=3)]
    assert len(stitched(chunks)) == 2


def test_pages_are_not_joined():
    chunks = [hit("the end of a page", 0, page=1, start_index=0), hit("the next page", 1, page=2, start_index=17)]
    assert [spans_of(passage) for passage in stitched(chunks)] == [[(0, 17)], [(17, 30)]]


def test_stamped_pages_are_one_passage_with_a_span_each():
    chunks = [
        hit("the end of a page", 0, page=1, start_index=900, chunk_index=3),
        hit("the next page", 1, page=2, start_index=0, chunk_index=4),
    ]
    (passage,) = stitched(chunks)
    assert passage.text == "the end of a page\n\nthe next page"
    assert passage.spans == (Span(900, 917, 1), Span(0, 13, 2))


@pytest.mark.parametrize(("unknown", "spans"), [(0, []), (1, [(0, 4), (10, 15)]), (2, [])])
def test_spans_tell_where_a_passage_begins_and_ends_or_are_empty(unknown, spans):
    """Citations report the first and the last offset."""
    offsets = [{"start_index": start} for start in (0, 5, 10)]
    offsets[unknown] = {"start_index": -1}
    words = ("here", "they", "stood")
    chunks = [hit(text, rank, chunk_index=rank, **offsets[rank]) for rank, text in enumerate(words)]
    (passage,) = stitched(chunks)
    assert (passage.text.split(), spans_of(passage)) == ([*words], spans)


@pytest.mark.parametrize("places", [{"start_index": (0, 9)}, {"chunk_index": (3, 4)}])
def test_sources_are_not_joined(places):
    chunks = [
        hit(text, rank, source=source, **{name: numbers[rank] for name, numbers in places.items()})
        for rank, (text, source) in enumerate([("one text ", "a"), ("other text", "b")])
    ]
    assert len(stitched(chunks)) == 2


# --- offsets that lie ---


@pytest.mark.parametrize("lie", [1, 5, 19, -5])
def test_an_overlap_that_the_text_does_not_confirm_is_not_stitched(lie):
    chunks = [
        hit(TEXT[:60], 0, start_index=0, chunk_index=0),
        hit(TEXT[40:100], 1, start_index=40 + lie, chunk_index=1),
    ]
    context = build_context(chunks)
    assert all(chunk.text in context.text for chunk in chunks)


def test_a_repeated_text_is_not_lost_where_a_search_found_its_first_copy():
    copy = "See the table of limits."
    chunks = [
        hit(text, number, chunk_index=number, start_index=start)
        for number, (text, start) in enumerate([(copy, 0), (TEXT[:60], len(copy)), (copy, 0)])
    ]
    assert build_context(chunks, separator="|").text == f"{copy}{TEXT[:60]}|{copy}"


def test_an_overlap_shorter_than_a_period_is_not_stitched():
    # The offset of the second chunk may be too small by a whole period; nothing in the text would tell.
    pattern = prose(20, seed=3)[:40]
    text = pattern * 3
    for start in (30, 70):
        chunks = [hit(text[:60], 0, start_index=0), hit(text[start : start + 50], 1, start_index=30)]
        assert [passage.text for passage in stitched(chunks)] == texts(chunks)


@pytest.mark.parametrize("start", [0, 1, 2])
def test_spans_that_a_caller_gives_are_checked_against_the_text_too(start):
    one = Chunk("abcdef", 0, source="book", span=Span(0, 6))
    other = Chunk("xyz", 1, source="book", span=Span(start, start + 3))
    overlapping = Chunk("xyzabc", 1, source="book", span=Span(start, start + 6))
    assert texts(chunk for passage in stitch([one, other], "") for chunk in passage.chunks) == ["abcdef", "xyz"]
    assert [passage.text for passage in stitch([one, other], "")] == ["abcdef", "xyz"]
    assert [passage.text for passage in stitch([one, overlapping], "")] == ["abcdef", "xyzabc"]


@pytest.mark.parametrize(("end", "next_end"), [(45, 85), (40, 85)])
def test_a_span_that_is_not_as_long_as_its_text_is_not_stitched(end, next_end):
    # Somebody changed a text after it was cut, so the offsets of its characters are not known.
    chunks = [
        hit(TEXT[:40], 0, start_index=0, end_index=end),
        hit(TEXT[40:80], 1, start_index=end, end_index=next_end),
    ]
    assert [passage.text for passage in stitched(chunks)] == texts(chunks)


@pytest.mark.parametrize("period", ["ab", "la ", "abcabd", "x", "0123456789 "])
def test_an_overlap_in_a_repeating_text_is_not_stitched(period):
    text = period * 60
    spans = [(0, 100), (80, 180), (20, 60)]
    chunks = cut(text, [span for span in spans if span[1] <= len(text)], kind="periodic")
    context = build_context(chunks, separator="|")
    # Which of many overlaps is the true one cannot be told, so every text is there whole.
    assert Counter(context.text.split("|")) == Counter(texts(chunks))


def test_an_overlap_of_another_length_is_not_confirmed():
    # The offsets of both pairs say one letter; the second pair may as well share two.
    one = [hit("he opened a door", 0, start_index=0), hit("rather slowly", 1, start_index=15)]
    other = [hit("lava that he calls aa", 0, start_index=0), hit("aa is rough", 1, start_index=20)]
    assert stitched(one)[0].text == "he opened a doorather slowly"
    assert [passage.text for passage in stitched(other)] == texts(other)


@pytest.mark.parametrize(("true", "claimed"), [(60, 17), (17, 60)])
def test_an_overlap_in_a_border_that_repeats_is_not_stitched(true, claimed):
    # The border begins and ends with the same 17 characters, so the texts agree over 17 characters and over all 60.
    border = TEXT[:17] + TEXT[17:43] + TEXT[:17]
    before, after = TEXT[100:200] + border, border + TEXT[300:400]
    assert len(border) == 60
    for overlap in (true, claimed):
        chunks = [hit(before, 0, start_index=0), hit(after, 1, start_index=len(before) - overlap)]
        context = build_context(chunks, separator="|")
        assert context.text == f"{before}|{after}"


@given(st.data())
def test_true_offsets_give_the_text_of_the_source_back(data):
    alphabet = data.draw(st.sampled_from(["ab", "ab c\n", "abcdefghijklmnopqrstuvwxyz  "]))
    text = data.draw(st.text(alphabet, min_size=1, max_size=120))
    start = st.integers(0, len(text) - 1)
    spans = data.draw(st.lists(st.tuples(start, st.integers(1, 60)), min_size=1, max_size=7))
    chunks = cut(text, [(at, min(at + length, len(text))) for at, length in spans])
    separator = data.draw(st.sampled_from(["", "\n\n", "§"]))
    context = build_context(chunks, separator=separator)
    for passage in context.passages:
        assert passage.text == separator.join(text[span.start : span.end] for span in passage.spans)
        assert all(chunk.text in passage.text for chunk in passage.chunks)
    assert Counter(ranks(chunk for passage in context.passages for chunk in passage.chunks)) == Counter(
        ranks(context.kept)
    )


def marked(passage: Passage) -> Iterator[tuple[str, bool]]:
    """Each character of a passage, and whether it stands in the text of a chunk there."""
    known = [False] * len(passage.text)
    for chunk in passage.chunks:
        for found in re.finditer(f"(?={re.escape(chunk.text)})", passage.text):
            for place in range(found.start(), found.start() + len(chunk.text)):
                known[place] = True
    return zip(passage.text, known, strict=True)


@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
@given(st.data())
def test_offsets_that_lie_never_lose_or_invent_text(data):
    alphabet = data.draw(st.sampled_from(["ab", "ab c\n", "abcdefghijklmnopqrstuvwxyz  "]))
    text = data.draw(st.text(alphabet, min_size=1, max_size=120))
    start = st.integers(0, len(text) - 1)
    drawn = data.draw(
        st.lists(st.tuples(start, st.integers(1, 60), st.integers(-15, 15), st.integers(-3, 3)), min_size=1, max_size=7)
    )
    chunks = [
        hit(text[at : at + length], rank, start_index=max(0, at + lie), end_index=max(0, at + lie) + length + stretch)
        for rank, (at, length, lie, stretch) in enumerate(drawn)
    ]
    context = build_context(chunks)
    placed = [chunk for passage in context.passages for chunk in passage.chunks]
    assert Counter(ranks(placed)) == Counter(ranks(context.kept))
    for passage in context.passages:
        assert all(chunk.text in passage.text for chunk in passage.chunks)
        # Nor is any text invented: each character comes from a chunk, or from the separator where white space was.
        added = "".join(character for character, known in marked(passage) if not known)
        assert added == "\n\n" * (len(passage.spans) - 1)


@given(st.data())
def test_an_overlap_is_stitched_only_where_no_other_one_can_be_true(data):
    unit = data.draw(st.text("abc", min_size=1, max_size=30))
    border = (unit * 40)[: data.draw(st.integers(1, 70))]
    texts_around = st.text("abcdefghijklmnop ", max_size=40)
    before = data.draw(texts_around) + border
    after = border[data.draw(st.integers(0, len(border) - 1)) :] + data.draw(texts_around)
    agreeing = [length for length in range(1, min(len(before), len(after)) + 1) if before.endswith(after[:length])]
    claimed = data.draw(st.sampled_from(agreeing))
    chunks = [hit(before, 0, start_index=0), hit(after, 1, start_index=len(before) - claimed)]
    context = build_context(chunks, separator="|")
    if context.text == f"{before}|{after}" or claimed == len(after):
        return
    # A run of both texts that only one overlap explains; a word that comes twice is much shorter than the overlap.
    assert context.text == before + after[claimed:]
    others = [length for length in agreeing if length != claimed]
    assert all(length < min(claimed, max(8, claimed // 4)) for length in others)


def test_stitching_many_overlapping_chunks_takes_linear_time():
    # Each look at the whole joined text would make this 5,000 × 400,000 characters.
    text = prose(50_000, seed=9)
    starts = list(range(0, len(text) - 200, 80))
    random.Random(1).shuffle(starts)
    context = build_context(cut(text, [(start, start + 200) for start in starts]))
    assert len(context.passages) == 1
    assert context.text == text[: max(starts) + 200]
    assert not re.search(r"\n\n\n", context.text)


def test_stitching_many_contained_chunks_takes_linear_time():
    # Each look at all chunks before would make this 16,000 × 16,000 / 2 comparisons.
    text = prose(20_000, seed=9)
    inside = [(start, start + 5) for start in range(0, 80_000, 5)]
    context = build_context(cut(text, [(0, 80_100), *inside]))
    assert context.passages[0].text == text[:80_100]
    assert sum(len(passage.chunks) for passage in context.passages) == len(inside) + 1


def test_chunks_that_only_the_sequence_of_a_store_orders_are_not_joined():
    # Not all chunks of the source were listed, so others may be between them.
    chunks = [
        Chunk(f"Line {page} of the log. ", rank, source="log", metadata={"page": page})
        for rank, page in enumerate([1, 1, 3, 5, 6, 9])
    ]
    places = order_of(Listing(chunks, in_sequence=True, store="Store")).places
    assert {place.kind for place in places} == {PositionKind.STORE}
    placed = [replace(chunk, place=place) for chunk, place in zip(chunks, places, strict=True)]
    assert len(build_context(placed).passages) == len(chunks)


@pytest.mark.parametrize("in_sequence", [True, False])
@pytest.mark.parametrize(("left_out", "passages"), [([], 1), ([1], 2), ([1, 2], 2)], ids=str)
def test_chunks_around_one_that_was_deleted_are_two_passages(left_out, passages, in_sequence):
    """Of a listing with a filter, other chunks are left out, too."""
    spans = [(0, 60), (40, 100), (101, 150), (151, 210)]
    chunks = [chunk for index, chunk in enumerate(cut(TEXT, spans)) if index not in left_out]
    listed = [replace(chunk, rank=rank, position=None) for rank, chunk in enumerate(chunks)]
    places = order_of(Listing(listed, in_sequence=in_sequence, complete=True)).places
    context = build_context([replace(one, place=place) for one, place in zip(listed, places, strict=True)], gap="[...]")
    assert len(context.passages) == passages
    assert ("[...]" in context.text) == (passages > 1)
