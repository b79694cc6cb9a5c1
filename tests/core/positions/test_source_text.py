"""Telling the places of repeated texts apart, with all chunks of their source."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk
from oprag.positions import source_text
from oprag.positions.source_text import SourceText
from tests.helpers import prose


def located(text, retrieved, all_chunks):
    source = SourceText(text)
    source.learn(all_chunks)
    chunks = [Chunk(one, rank) for rank, one in enumerate(retrieved)]
    return [place and place[0] for place in source.locate(chunks, unplaced=[True] * len(chunks))]


def test_a_repeated_passage_goes_where_nothing_else_can():
    # The two copies are cut at other characters.
    copy = "abcdefghij"
    text = f"12{copy}345{copy}6"
    chunks = ["12abcd", "efghij34", "345abcdefg", "hij6"]
    assert located(text, ["hij6", "345abcdefg", "efghij34", "12abcd"], chunks) == [22, 12, 6, 0]
    inside = ["12", "abcdefgh", "ij345ab", "cdefghij", "6"]
    assert located(text, ["cdefghij", "abcdefgh"], inside) == [17, 2]


def test_a_long_passage_that_comes_again_is_told_apart_from_its_ends():
    passage = prose(20_000, seed=2)
    text = f"First{passage}Second{passage}Third"
    spans = [(start, min(start + 100, len(text))) for start in range(0, len(text), 100)]
    chunks = [text[start:end] for start, end in spans]
    # Only those at the ends of the passage are at one place; each of the others is known by the one beside it.
    assert sum(text.count(one) > 1 for one in chunks) > 2_000
    retrieved = random.Random(1).sample(range(len(chunks)), k=500)
    assert located(text, [chunks[index] for index in retrieved], chunks) == [spans[index][0] for index in retrieved]


def test_places_that_were_not_looked_for_tell_nothing():
    # The first thousand places of the comma are known. After them, both places of "b,c" may have it.
    text = "a," * 1_100 + "b,c" + "a," * 5 + "b,c"
    assert located(text, ["b,c"], ["a,", ",", "b,c"]) == [None]


def test_without_the_other_chunks_a_repeated_text_has_no_place():
    source = SourceText("one two one")
    assert source.locate([Chunk("one", 0), Chunk("two", 1)], unplaced=[True, True]) == [None, (4, 7)]


def test_a_chunk_with_a_page_does_not_take_any_place():
    text = "chorus one chorus two"
    source = SourceText(text)
    source.learn(["chorus", "one", "chorus", "two"])
    chorus = [Chunk("chorus", 0)]
    assert source.locate(chorus, pages=[(1, 2)], unplaced=[False]) == [None]
    assert source.locate(chorus, unplaced=[True]) == [(0, 6)]


def test_many_places_are_not_compared():
    text = "ab" * 3_000
    assert located(text, ["ab", "abab"], ["ab", "abab", *["ababab"] * 10]) == [None, None]


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(0, 4))
def test_whatever_is_claimed_is_a_place_of_that_text_and_of_no_more_chunks_than_there_are(seed, letters, overlap):
    chance = random.Random(seed)
    text = "".join(chance.choices("abcdefgh"[:letters], k=200))
    edges = sorted({0, 200, *(chance.randrange(200) for _ in range(15))})
    spans = [(max(0, start - overlap), end) for start, end in pairwise(edges)]
    chunks = [text[start:end] for start, end in spans]
    retrieved = chance.sample(range(len(chunks)), k=len(chunks) * 2 // 3)
    places = located(text, [chunks[index] for index in retrieved], chunks)
    for index, place in zip(retrieved, places, strict=True):
        assert place is None or text.startswith(chunks[index], place)
    claimed = [(chunks[index], place) for index, place in zip(retrieved, places, strict=True) if place is not None]
    assert len(set(claimed)) == len(claimed)
    # A text that is at one place is always found there.
    for index, place in zip(retrieved, places, strict=True):
        if sum(text.startswith(chunks[index], at) for at in range(len(text))) == 1:
            assert place is not None


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(0, 4), st.sampled_from([2, 5, 1_000]))
def test_every_claim_about_chunks_in_sequence_is_true(seed, letters, overlap, most):
    chance = random.Random(seed)
    text = "".join(chance.choices("abcdefgh"[:letters], k=200))
    edges = sorted({0, 200, *(chance.randrange(overlap + 1, 200) for _ in range(40))})
    spans = [(max(0, start - overlap), end) for start, end in pairwise(edges)]
    chunks = [Chunk(text[start:end], rank) for rank, (start, end) in enumerate(spans)]
    source = SourceText(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_text, "MAX_PLACES", most)
        source.learn(one.text for one in chunks)
        places = source.locate(chunks, unplaced=[True] * len(chunks), in_sequence=True)
    assert [place or span for place, span in zip(places, spans, strict=True)] == spans


def test_threads_may_look_at_once():
    pieces = [f"piece {number} of many" for number in range(400)]
    text = "\n\n   ".join(pieces)
    wanted = [f"{pieces[number]} {pieces[number + 1]}" for number in range(0, 399, 7)]

    def found(source):
        return [place and text[slice(*place)].split() for place in source.locate([Chunk(one, 0) for one in wanted])]

    for _ in range(5):
        source = SourceText(text)
        with ThreadPoolExecutor(8) as threads:
            results = list(threads.map(found, [source] * 8))
        assert results == [[one.split() for one in wanted]] * 8


def test_a_source_may_have_more_chunks_than_are_remembered(monkeypatch):
    monkeypatch.setattr(source_text, "_MAX_CACHED", 5)
    chunks = [f"part {number}." for number in range(12)]
    text = " ".join(chunks)
    assert located(text, chunks, chunks) == [text.index(one) for one in chunks]
