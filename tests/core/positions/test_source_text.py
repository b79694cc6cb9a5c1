"""Telling the places of repeated texts apart, with the other chunks of their source."""

import random
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.positions import source_text
from oprag.positions.source_text import SourceText
from tests.helpers import prose


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
