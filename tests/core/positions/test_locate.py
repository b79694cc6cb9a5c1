import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, ChunkError, MissingSourceError, Span, arrange, build_context, locate_positions
from tests.helpers import prose, ranks, with_answers

TEXT = prose(150, seed=6)


def chunk(text: str, rank: int = 0, **options: Any) -> Chunk:
    return Chunk(text, rank, source="book", **options)


def starts(pieces: Sequence[str | Chunk], text: str) -> list[int | None]:
    """Where pieces were found that were given in this sequence."""
    chunks = [piece if isinstance(piece, Chunk) else chunk(piece, rank) for rank, piece in enumerate(pieces)]
    return [located.start for located in locate_positions(chunks, {"book": text})]


def test_a_chunk_is_found_where_it_stands():
    (located,) = locate_positions([chunk(TEXT[30:90], id="x")], {"book": TEXT})
    assert (located.source, located.start, located.end, located.detail) == ("book", 30, 90, "")
    assert (located.id, located.metadata) == ("x", {"start_index": 30, "end_index": 90})


def test_results_stand_in_the_given_sequence_over_all_sources():
    other = prose(50, seed=7)
    chunks = [chunk(TEXT[50:80]), Chunk(other[10:30], 1, metadata={"url": "other"}), chunk(TEXT[:20])]
    found = locate_positions(iter(chunks), {"book": TEXT, "other": other})
    assert [(located.source, located.start) for located in found] == [("book", 50), ("other", 10), ("book", 0)]
    assert [located.chunk for located in found] == chunks


def test_what_was_found_gives_the_order_and_the_text_back():
    spans = [(start, min(start + 70, len(TEXT))) for start in range(0, len(TEXT), 50)]
    random.Random(2).shuffle(spans)
    given_chunks = [chunk(TEXT[start:end], rank) for rank, (start, end) in enumerate(spans)]
    located = locate_positions(given_chunks, {"book": TEXT})
    chunks = [Chunk(found.chunk.text, found.chunk.rank, "book", found.metadata) for found in located]
    assert build_context(chunks).text == TEXT
    assert ranks(arrange(chunks)) == sorted(range(len(spans)), key=lambda rank: spans[rank])


def test_white_space_may_have_been_folded_or_stripped():
    text = "  One\n\n  two\t three.\u00a0\u00a0Four   five.  "
    assert starts(["One two three.", "Four five.", " two three. "], text) == [2, 22, 9]
    (located,) = locate_positions([chunk("One two three. Four")], {"book": text})
    assert text[located.start : located.end] == "One\n\n  two\t three.\u00a0\u00a0Four"


@pytest.mark.parametrize("piece", ["not in it", "ONE", "", "   ", "one  two!"])
def test_what_is_not_in_the_text_stays_without_an_offset(piece):
    (located,) = locate_positions([chunk(piece)], {"book": "one two"})
    assert (located.start, located.end, located.metadata) == (None, None, {})
    assert located.detail == "its text was not found in the source"


def test_an_empty_source_holds_nothing():
    assert starts(["one"], "") == [None]


# --- text that stands at several places ---

AGAIN = "Yes. Alpha part. Yes. Beta part. Yes."


def test_nothing_is_guessed():
    (located,) = locate_positions([chunk("Yes.")], {"book": AGAIN})
    assert located.metadata == {}
    assert located.detail == "its text occurs at 3 places in the source, so its position is ambiguous"


@pytest.mark.parametrize("hint", [{"metadata": {"start_index": "17"}}, {"span": Span(17, 21)}])
def test_an_offset_that_the_chunk_has_tells_which(hint):
    assert starts([chunk("Yes.", **hint)], AGAIN) == [17]


@pytest.mark.parametrize(
    "metadata", [{"start_index": -1}, {"start_index": None}, {"start_index": 18}, {"start_index": []}]
)
def test_an_offset_that_cannot_be_tells_nothing(metadata):
    assert starts([chunk("Yes.", metadata=metadata)], AGAIN) == [None]


def test_an_offset_in_metadata_that_does_not_count_leaves_the_span():
    assert starts([chunk("Yes.", metadata={"start_index": None}, span=Span(17, 21))], AGAIN) == [17]


def test_as_many_equal_chunks_as_places_share_them_out():
    assert starts(["Yes.", "Yes.", "Yes."], AGAIN) == [0, 17, 33]
    assert starts(["Yes.", chunk("Yes.", 1, metadata={"start_index": 17}), "Yes."], AGAIN) == [0, 17, 33]
    assert starts(["Yes.", "Yes."], AGAIN) == [None, None]


REST = ["Gamma part.", "Delta part.", "Epsilon part."]
LONG = " ".join([AGAIN, *REST])


def test_neighbours_in_sequence_tell_which():
    assert starts(["Alpha part.", "Yes.", "Beta part.", *REST], LONG)[:3] == [5, 17, 22]
    assert starts(["Yes.", "Alpha part.", "Beta part.", *REST], LONG)[:3] == [0, 5, 22]
    assert starts(["Alpha part.", "Beta part.", "Yes.", *REST], LONG)[:3] == [5, 22, 33]


def test_a_few_neighbours_may_be_in_sequence_by_chance():
    assert starts(["Alpha part.", "Yes.", "Beta part."], AGAIN) == [5, None, 22]


def test_neighbours_that_leave_two_places_tell_nothing():
    assert starts(["Yes.", "Beta part."], AGAIN) == [None, 22]


def test_a_sequence_that_is_not_that_of_the_source_tells_nothing():
    assert starts(["Beta part.", "Yes.", "Alpha part."], AGAIN) == [22, None, 5]


def pages_with_a_notice():
    """A text and its chunks: the notice is a chunk of its own on page 0, and part of a longer one on page 2."""
    notice = "The keeper of the log signs each page at noon."
    parts = [["Nine men and a dog.", notice], ["They loaded salt."], [f"The end: {notice}", "The harbor was empty."]]
    chunks = [chunk(part, metadata={"page": number}) for number, page in enumerate(parts) for part in page]
    return " ".join(part for page in parts for part in page), chunks


@pytest.mark.parametrize("added", [1, 2])
def test_the_page_of_a_chunk_tells_which(added):
    text, chunks = pages_with_a_notice()
    expected = [text.index(one.text) for one in chunks]
    assert starts([replace(one, rank=rank) for rank, one in enumerate(chunks * added)], text) == expected * added
    # A part that was added again.
    again = [replace(one, rank=rank) for rank, one in enumerate([*chunks, chunks[1]])]
    assert starts(again, text) == [*expected, expected[1]]


def test_pages_that_run_against_the_text_tell_nothing():
    text, chunks = pages_with_a_notice()
    mixed = [replace(one, rank=rank, metadata={"page": rank % 2}) for rank, one in enumerate(chunks)]
    assert [start is None for start in starts(mixed, text)] == [False, True, False, False, False]


def test_chunks_that_were_added_again_do_not_share_out_the_places():
    text, chunks = pages_with_a_notice()
    twice = [chunk(one.text, rank) for rank, one in enumerate(chunks * 2)]
    assert [start is None for start in starts(twice, text)] == [False, True, False, False, False] * 2


def test_boilerplate_at_thousands_of_places_takes_no_time():
    text = "x" * 50_000 + "end"
    assert starts(["x" * 10] * 50 + ["end"], text) == [None] * 50 + [50_000]


@pytest.mark.parametrize("space", [" ", "\n\n "])
@pytest.mark.parametrize(
    "answers",
    [
        {0: "Yes, sir."},
        {700: "Yes, sir."},
        {899: "Yes, sir."},
        dict.fromkeys(range(600, 630), "Yes, sir."),
        {750: "Yes, sir. Yes, sir. Yes, sir."},
        {750: "Yes, sir. No. Yes, sir. No."},
    ],
    ids=["first", "middle", "last", "several", "equal neighbors", "mixed neighbors"],
)
def test_neighbours_tell_which_of_hundreds_of_places(answers, space):
    text, pieces = with_answers(answers)
    text = text.replace(", ", f",{space}")
    found = [start for start in starts(pieces, text) if start is not None]
    assert len(found) == len(pieces)
    assert found == sorted(found)
    assert [text[start : start + 3] for start in found] == [one[:3] for one in pieces]


def test_a_chunk_at_hundreds_of_places_is_left_out_alone():
    text, pieces = with_answers({750: "Yes, sir. Yes, sir."})
    pieces.remove("Yes, sir.")
    found = starts(pieces, text)
    assert [one for one, start in zip(pieces, found, strict=True) if start is None] == ["Yes, sir."]
    hinted = [chunk(one, rank, metadata={"start_index": text.rindex(one)}) for rank, one in enumerate(pieces)]
    assert starts(random.Random(1).sample(hinted, len(hinted)), text).count(None) == 0


def test_equal_chunks_do_not_share_out_the_first_thousand_of_more_places():
    found = locate_positions([chunk("Yes, sir.", rank) for rank in range(1_000)], {"book": "Yes, sir. " * 1_500})
    assert [one.start for one in found] == [None] * 1_000
    assert found[0].detail == "its text occurs at 1,000 or more places in the source, so its position is ambiguous"


# --- input ---


def test_the_text_may_be_read_by_a_function():
    asked = []

    def read(source):
        asked.append(source)
        return TEXT

    chunks = [chunk(TEXT[:20]), chunk(TEXT[40:60], 1)]
    assert [located.start for located in locate_positions(chunks, read)] == [0, 40]
    assert asked == ["book"]


def test_a_path_names_a_source_as_it_does_in_metadata():
    located = locate_positions([chunk(TEXT[40:60])], {Path("book"): TEXT})
    assert [(one.source, one.start) for one in located] == [("book", 40)]


@pytest.mark.parametrize("given_texts", [{}, {"book": None}, {"book": b"text"}, lambda source: None])
def test_a_text_that_was_not_given_is_refused(given_texts):
    with pytest.raises(MissingSourceError, match="source_texts has no text for the source 'book'") as caught:
        locate_positions([chunk("one")], given_texts)
    assert caught.value.value == "book"


def test_a_chunk_without_a_source_is_refused_unless_a_key_names_it():
    nameless = Chunk("one", 0, metadata={"title": "book"})
    with pytest.raises(MissingSourceError, match=r"metadata keys: title.*source_key") as caught:
        locate_positions([nameless], {"book": "one"})
    assert caught.value.value is nameless
    assert locate_positions([nameless], {"book": "one"}, source_key="title")[0].start == 0


def test_something_else_than_a_chunk_is_refused():
    with pytest.raises(ChunkError, match=r"expected oprag\.Chunk objects, got str"):
        locate_positions(["one"], {"book": "one"})  # type: ignore[list-item]


def test_no_chunks_need_no_texts():
    assert locate_positions([], {}) == []


def folded(text: str) -> str:
    return re.sub(r"\s+", " ", text.strip())


@given(st.data())
def test_what_is_found_is_the_text_of_the_chunk(data):
    alphabet = data.draw(st.sampled_from(["ab ", "ab  \n", "abcdefghijklmnop \n\u00a0"]))
    text = data.draw(st.text(alphabet, min_size=1, max_size=120))
    spans = data.draw(st.lists(st.tuples(st.integers(0, len(text) - 1), st.integers(1, 50)), max_size=6))
    pieces = [text[start : start + length] for start, length in spans]
    for number, change in enumerate(data.draw(st.lists(st.sampled_from([str, folded, str.strip]), max_size=6))):
        if number < len(pieces):
            pieces[number] = change(pieces[number])
    chunks = [chunk(piece, rank) for rank, piece in enumerate(pieces)]
    for piece, located in zip(pieces, locate_positions(chunks, {"book": text}), strict=True):
        if located.start is None:
            assert not piece.strip() or "its position is ambiguous" in located.detail
        else:
            assert folded(text[located.start : located.end]) == folded(piece)


@given(st.text("ab  \nc", min_size=1, max_size=60), st.data())
def test_a_piece_that_stands_at_one_place_is_always_found(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    piece = text[start:end]
    if piece.strip() and len(re.findall(f"(?={re.escape(piece)})", text)) == 1:
        assert starts([piece], text) == [start]
