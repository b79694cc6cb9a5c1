"""Recursive splitting, held against LangChain's own."""

import functools
import re
import string
from itertools import pairwise
from pydoc_data.topics import topics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import TokenWindow, split_recursive
from oprag.embedding.static import LocalEmbedder
from tests.helpers import word_offsets

REFERENCE = "\n\n".join(text for _, text in sorted(topics.items()))[:60_000]


@functools.cache
def tokenizer():
    return LocalEmbedder().tokenizer


def letters(text):
    """One token a character that is no white space."""
    return [(place, place + 1) for place, letter in enumerate(text) if not letter.isspace()]


def pairs(text):
    """One token for two characters, so that tokens of pieces do not add up to those of the whole."""
    return [(start, min(start + 2, len(text))) for start in range(0, len(text), 2)]


def langchains(text, count, size, overlap):
    """The chunks of the real splitter, but for those that are nothing but white space, which it keeps now and then."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, length_function=lambda piece: len(list(count(piece)))
    )
    return [chunk.strip() for chunk in splitter.split_text(text) if chunk.strip()]


def check(text: str, windows: list[TokenWindow], overlap: int) -> None:
    """Offsets are exact, and the windows hold the whole text in its order."""
    assert all(text[window.start : window.end] == window.text for window in windows)
    if not windows:
        assert not text.strip()
        return
    assert windows[0].start == 0
    assert windows[-1].end == len(text)
    for before, after in pairwise(windows):
        assert before.start < after.start <= before.end < after.end
        assert overlap or after.start == before.end


@pytest.mark.parametrize(("size", "overlap"), [(1000, 100), (200, 50), (128, 0), (25, 24), (3, 1), (1, 0)])
def test_windows_are_those_of_langchain_and_know_their_place(size, overlap):
    text = REFERENCE if size > 100 else REFERENCE[:8_000]
    windows = split_recursive(text, tokenizer(), size, overlap)

    def count(piece):
        return tokenizer().encode(piece, add_special_tokens=False).ids

    assert [window.text.strip() for window in windows] == langchains(text, count, size, overlap)
    check(text, windows, overlap)
    assert all(window.tokens == len(count(window.text)) for window in windows)


# Few letters, so that nearly everything repeats; the others are white space that is no separator.
repetitive = st.text(alphabet="ab \n\n\t\xa0", max_size=120)
any_text = st.one_of(st.text(max_size=80), repetitive, st.sampled_from(["\ud83d half", "e\u0301" * 9, "\U0010ffff a"]))
counters = st.sampled_from([word_offsets, letters, pairs])
sizes = st.integers(1, 12).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@given(any_text, counters, sizes)
def test_any_text_is_split_as_langchain_splits_it(text, count, how):
    windows = split_recursive(text, count, *how)
    assert [window.text.strip() for window in windows] == langchains(text, count, *how)
    check(text, windows, how[1])


@given(st.lists(st.sampled_from(["a", "aa", "a a", " ", "\n", "\n\n"]), max_size=60).map("".join), sizes)
def test_repeated_text_lies_where_the_same_layout_of_distinct_letters_lies(text, how):
    distinct = iter(string.ascii_letters * 2)
    unique = re.sub("a", lambda _: next(distinct), text)
    places = [(window.start, window.end) for window in split_recursive(text, letters, *how)]
    assert places == [(window.start, window.end) for window in split_recursive(unique, letters, *how)]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t"])
def test_nothing_but_white_space_has_no_windows(text):
    assert split_recursive(text, word_offsets) == []
