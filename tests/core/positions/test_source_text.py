"""Telling the places of repeated texts apart, with the other chunks of their source."""

import random
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Span, arrange, build_context
from oprag.positions import source_text
from oprag.positions.source_order import Listing, order_of
from oprag.positions.source_text import SourceText
from tests.helpers import prose, ranks, with_answers


def located(text, chunks, **options):
    return [place and place[0] for place in SourceText(text).locate(chunks, complete=True, **options)]


def test_a_repeated_passage_goes_where_nothing_else_can():
    # The two copies are cut at other characters.
    copy = "abcdefghij"
    text = f"12{copy}345{copy}6"
    assert located(text, ["hij6", "345abcdefg", "efghij34", "12abcd"]) == [22, 12, 6, 0]
    assert located(text, ["cdefghij", "12", "6", "ij345ab", "abcdefgh"]) == [17, 0, 25, 10, 2]


def test_the_ends_of_longer_chunks_are_told_apart():
    # A form: each line is also the end of the longer ones, and the last has no line break after it.
    ends = ["Signature: none\nBy the office.\n\n", "none\nBy the office.\n\n", "office.\n\n", "none\nBy the office."]
    parts = [f"Name: {name}\nSignature: none\nBy the office.\n\n" for name in "abcd"]
    text = "".join(parts).rstrip()
    chunks = [one for part, end in zip(parts, ends, strict=True) for one in (part[: -len(end)], end)]
    chunks[-2:] = parts[-1].rstrip()[: -len(ends[-1])], ends[-1]
    expected = [sum(map(len, chunks[:number])) for number in range(len(chunks))]
    mixed = random.Random(2).sample(range(len(chunks)), len(chunks))
    assert located(text, [chunks[number] for number in mixed]) == [expected[number] for number in mixed]


def test_a_long_passage_that_comes_again_is_told_apart_from_its_start():
    passage = prose(2_000, seed=2)
    text = f"First{passage}Second{passage}Third"
    starts = random.Random(1).sample(range(0, len(text), 100), k=len(text) // 100 + 1)
    chunks = [text[start : start + 100] for start in starts]
    assert sum(text.count(one) > 1 for one in chunks) > 200
    assert located(text, chunks) == starts


def test_places_that_were_not_looked_for_tell_nothing():
    # The first thousand places of the comma are known. After them, both places of "b,c" may have it.
    text = "a," * 1_100 + "b,c" + "a," * 5 + "b,c"
    assert located(text, ["a,", ",", "b,c"]) == [None, None, None]


def test_without_the_other_chunks_a_repeated_text_has_no_place():
    source = SourceText("one two one")
    assert source.locate(["one", "two"]) == [None, (4, 7)]
    assert source.locate(["one", "two", "one"]) == [(0, 3), (4, 7), (8, 11)]


def test_many_places_are_not_compared():
    text = "ab" * 3_000
    assert located(text, ["ab", "abab", *["ababab"] * 10]) == [None] * 12


def test_equal_neighbors_share_the_places_between_others():
    text = "One. Yes. Yes. No. Yes. Two. Yes. Three. No. Yes."
    chunks = ["One.", "Yes.", "Yes.", "No.", "Yes.", "Two.", "Three."]
    assert located(text, chunks, in_sequence=True) == [0, 5, 10, 15, 19, 24, 34]
    # Added later, after chunks that nothing else places.
    assert located(text, [*chunks, "Yes.", "Five."], in_sequence=True)[7] == 41 + 4
    assert located(text, random.Random(1).sample(chunks, len(chunks))).count(None) == 4


@pytest.mark.parametrize("complete", [True, False])
def test_a_stated_offset_of_the_first_place_may_have_been_searched_for(complete):
    source = SourceText("Yes. One. Yes. Two: Yes.")
    assert source.locate(["Yes."], offsets=[10], complete=complete) == [(10, 14)]
    assert source.locate(["Yes."], offsets=[0], complete=complete) == [(0, 4) if complete else None]
    assert source.locate(["Yes.", "Yes."], offsets=[0, 0], complete=complete) == [None, None]


def test_pages_tell_copies_apart_only_where_one_place_is_left():
    text = "One. Yes. Two. Yes. Yes. Three."
    chunks, pages = ["One.", "Yes.", "Two.", "Three."], [1, 1, 2, 3]
    assert located(text, chunks, pages=pages) == [0, 5, 10, 25]
    assert located(text, chunks, pages=[1, 2, 2, 3]) == [0, None, 10, 25]
    # Pages that run against the text tell nothing.
    assert located(text, chunks, pages=[3, 3, 2, 1]) == [0, None, 10, 25]
    # Each chunk was added twice.
    assert located(text, chunks * 2, pages=pages * 2) == [0, 5, 10, 25] * 2


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(0, 4))
def test_whatever_is_claimed_is_a_place_of_that_text_and_of_no_more_chunks_than_there_are(seed, letters, overlap):
    chance = random.Random(seed)
    text = "".join(chance.choices("abcdefgh"[:letters], k=200))
    edges = sorted({0, 200, *(chance.randrange(200) for _ in range(15))})
    chunks = [text[max(0, start - overlap) : end] for start, end in pairwise(edges)]
    chance.shuffle(chunks)
    places = located(text, chunks)
    for chunk, place in zip(chunks, places, strict=True):
        assert place is None or text.startswith(chunk, place)
    claimed = [(chunk, place) for chunk, place in zip(chunks, places, strict=True) if place is not None]
    assert len(set(claimed)) == len(claimed)
    # A text that is at one place is always found there.
    for chunk, place in zip(chunks, places, strict=True):
        if sum(text.startswith(chunk, at) for at in range(len(text))) == 1:
            assert place is not None


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(0, 4), st.sampled_from([2, 5, 1_000]))
def test_every_claim_about_chunks_in_sequence_is_true(seed, letters, overlap, most):
    chance = random.Random(seed)
    text = "".join(chance.choices("abcdefgh"[:letters], k=200))
    edges = sorted({0, 200, *(chance.randrange(overlap + 1, 200) for _ in range(40))})
    spans = [(max(0, start - overlap), end) for start, end in pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_text, "MAX_PLACES", most)
        places = SourceText(text).locate([text[slice(*span)] for span in spans], complete=True, in_sequence=True)
    assert [place or span for place, span in zip(places, spans, strict=True)] == spans


@given(st.data())
def test_many_pieces_are_found_as_one_by_one(data):
    words = data.draw(st.lists(st.sampled_from(["ab", "abab", "b", "a\u00a0c"]), min_size=1, max_size=80))
    text = "".join(word + data.draw(st.sampled_from([" ", "\n", " \n  "])) for word in words)
    starts = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=10))
    pieces = {text[start : start + 3 * number] for number, start in enumerate(starts)} | set(map(str, range(50)))
    pieces |= {" ".join(piece.split()) for piece in pieces}
    source = SourceText(text)
    source.locate(list(pieces))
    for piece in pieces:
        assert source.places(piece) == SourceText(text).places(piece)
        verbatim = [(one.start(), one.start() + len(piece)) for one in re.finditer(f"(?={re.escape(piece)})", text)]
        assert not piece.strip() or not verbatim or source.places(piece) == verbatim


def test_a_source_of_thousands_of_chunks_takes_linear_time():
    text = prose(150_000, seed=8)
    chunks = [text[start : start + 90] for start in range(0, len(text), 60)]
    assert len(chunks) > 10_000
    assert located(text, chunks) == list(range(0, len(text), 60))


def test_threads_may_look_at_once():
    pieces = [f"piece {number} of many" for number in range(400)]
    text = "\n\n   ".join(pieces)
    wanted = [f"{pieces[number]} {pieces[number + 1]}" for number in range(0, 399, 7)]

    def found(source):
        return [place and text[slice(*place)].split() for place in source.locate(wanted)]

    for _ in range(5):
        source = SourceText(text)
        with ThreadPoolExecutor(8) as threads:
            results = list(threads.map(found, [source] * 8))
        assert results == [[one.split() for one in wanted]] * 8


# --- with what the chunks state ---

TEXT = prose(150, seed=6)


def chunk(text: str, rank: int = 0, **options: Any) -> Chunk:
    return Chunk(text, rank, source="book", **options)


def spans(pieces: Sequence[str | Chunk], text: str) -> Sequence[Span | None]:
    chunks = [piece if isinstance(piece, Chunk) else chunk(piece, rank) for rank, piece in enumerate(pieces)]
    return order_of(Listing(chunks), text=SourceText(text)).spans


def starts(pieces: Sequence[str | Chunk], text: str) -> list[int | None]:
    """Where pieces were found that were given in this sequence."""
    return [span and span.start for span in spans(pieces, text)]


def test_what_was_found_gives_the_order_and_the_text_back():
    cuts = [(start, min(start + 70, len(TEXT))) for start in range(0, len(TEXT), 50)]
    random.Random(2).shuffle(cuts)
    chunks = [chunk(TEXT[start:end], rank) for rank, (start, end) in enumerate(cuts)]
    places = order_of(Listing(chunks), text=SourceText(TEXT)).places
    placed = [replace(one, place=place) for one, place in zip(chunks, places, strict=True)]
    assert build_context(placed).text == TEXT
    assert ranks(arrange(placed)) == sorted(range(len(cuts)), key=lambda rank: cuts[rank])


def test_white_space_may_have_been_folded_or_stripped():
    text = "  One\n\n  two\t three.\u00a0\u00a0Four   five.  "
    assert starts(["One two three.", "Four five.", " two three. "], text) == [2, 22, 9]
    (span,) = spans(["One two three. Four"], text)
    assert span is not None
    assert text[span.start : span.end] == "One\n\n  two\t three.\u00a0\u00a0Four"


def test_the_mark_at_the_start_of_a_file_may_be_left_in_the_first_chunk():
    """Loaders leave it there, and it is no part of the text that is read from a folder."""
    assert SourceText("one two").places("\ufeffone") == [(0, 3)]
    assert SourceText("\ufeffone two").places("\ufeffone") == [(0, 4)]
    assert SourceText("\ufeffone two").places("one") == [(1, 4)]


# --- text that stands at several places ---

AGAIN = "Yes. Alpha part. Yes. Beta part. Yes."
REST = ["Gamma part.", "Delta part.", "Epsilon part."]
LONG = " ".join([AGAIN, *REST])


def stating(**metadata: Any) -> Chunk:
    return chunk("Yes.", 1, metadata=metadata)


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        *(([piece], "one two", [None]) for piece in ("not in it", "ONE", "", "   ", "one  two!")),
        (["one"], "", [None]),
        # Nothing is guessed, unless an offset that the chunk states is one of the places.
        (["Yes."], AGAIN, [None]),
        ([stating(start_index="17")], AGAIN, [17]),
        *(([stating(start_index=start)], AGAIN, [None]) for start in (-1, None, 18, "x")),
        ([chunk("Yes.", span=Span(17, 21))], AGAIN, [17]),
        ([chunk("Yes.", metadata={"start_index": None}, span=Span(17, 21))], AGAIN, [17]),
        # As many equal chunks as places.
        (["Yes.", "Yes.", "Yes."], AGAIN, [0, 17, 33]),
        (["Yes.", stating(start_index=17), "Yes."], AGAIN, [0, 17, 33]),
        (["Yes.", "Yes."], AGAIN, [None, None]),
        # Neighbors in sequence, if these are not there by chance, and leave one place.
        (["Alpha part.", "Yes.", "Beta part.", *REST], LONG, [5, 17, 22, 38, 50, 62]),
        (["Yes.", "Alpha part.", "Beta part.", *REST], LONG, [0, 5, 22, 38, 50, 62]),
        (["Alpha part.", "Beta part.", "Yes.", *REST], LONG, [5, 22, 33, 38, 50, 62]),
        (["Alpha part.", "Yes.", "Beta part."], AGAIN, [5, None, 22]),
        (["Yes.", "Beta part."], AGAIN, [None, 22]),
        (["Beta part.", "Yes.", "Alpha part."], AGAIN, [22, None, 5]),
    ],
)
def test_the_places_of_pieces_in_this_sequence(pieces: list[str | Chunk], text: str, expected: list[int | None]):
    assert starts(pieces, text) == expected


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
    assert starts(["Yes, sir."] * 1_000, "Yes, sir. " * 1_500) == [None] * 1_000


def folded(text: str) -> str:
    return re.sub(r"\s+", " ", text.strip())


@given(st.data())
def test_what_is_found_is_the_text_of_the_chunk(data):
    alphabet = data.draw(st.sampled_from(["ab ", "ab  \n", "abcdefghijklmnop \n\u00a0"]))
    text = data.draw(st.text(alphabet, min_size=1, max_size=120))
    cuts = data.draw(st.lists(st.tuples(st.integers(0, len(text) - 1), st.integers(1, 50)), max_size=6))
    pieces = [text[start : start + length] for start, length in cuts]
    for number, change in enumerate(data.draw(st.lists(st.sampled_from([str, folded, str.strip]), max_size=6))):
        if number < len(pieces):
            pieces[number] = change(pieces[number])
    for piece, span in zip(pieces, spans(pieces, text), strict=True):
        if span is None:
            assert not piece.strip() or len(SourceText(text).places(piece)) > 1
        else:
            assert folded(text[span.start : span.end]) == folded(piece)


@given(st.text("ab  \nc", min_size=1, max_size=60), st.data())
def test_a_piece_that_stands_at_one_place_is_always_found(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    piece = text[start:end]
    if piece.strip() and len(re.findall(f"(?={re.escape(piece)})", text)) == 1:
        assert starts([piece], text) == [start]
