"""Texts that nearly repeat another one are found without embeddings, and neighbors that overlap are not."""

import pytest

from oprag.positions.near_duplicates import near_duplicates
from tests.helpers import prose, run_python

WORDS = prose(600, seed=5).split()


def unrelated(one, other):
    return False


def words(start, end):
    return " ".join(WORDS[start:end])


def test_a_text_with_a_few_changed_words_is_one():
    edited = words(0, 150).replace(WORDS[20], "changed").replace(WORDS[100], "another")
    assert near_duplicates([words(0, 150), words(200, 350), edited], unrelated) == {2: 0}


def test_case_punctuation_and_white_space_do_not_matter():
    assert near_duplicates([words(0, 150), words(0, 150).upper().replace(" ", " ,\n")], unrelated) == {1: 0}


def test_of_several_the_first_is_named():
    assert near_duplicates([words(0, 100)] * 3, unrelated) == {1: 0, 2: 0}


def test_a_text_inside_of_an_earlier_one_counts_and_the_other_way_round_does_not():
    assert near_duplicates([words(0, 300), words(50, 150)], unrelated) == {1: 0}
    assert near_duplicates([words(50, 150), words(0, 300)], unrelated) == {}


@pytest.mark.parametrize("shared", [0, 20, 50, 75])
def test_an_overlap_of_half_a_text_is_none(shared):
    assert near_duplicates([words(0, 150), words(150 - shared, 300 - shared)], unrelated) == {}


def test_texts_that_are_related_do_not_count():
    assert near_duplicates([words(0, 150)] * 2, lambda one, other: True) == {}


@pytest.mark.parametrize("text", ["", "one two three", "of " * 500, "a\ud800b " * 50, "\0"])
def test_texts_without_enough_words_to_tell_are_none(text):
    assert near_duplicates([text, text], unrelated) == {}


def test_boilerplate_of_many_texts_makes_no_duplicates():
    page = words(0, 60)
    texts = [f"{page} {number} {' '.join(f'{number}x{place}' for place in range(60))}" for number in range(3_000)]
    assert near_duplicates(texts, unrelated) == {}
    assert near_duplicates([*texts, texts[2_000]], unrelated) == {3_000: 2_000}


def test_every_process_finds_the_same():
    code = """
from oprag.positions.near_duplicates import near_duplicates
from tests.helpers import prose
words = prose(2_000, seed=1).split()
texts = [" ".join(words[start : start + 100]) for start in range(0, 1_900, 17)]
print(near_duplicates(texts, lambda one, other: False))
"""
    first, second = (run_python(code, PYTHONHASHSEED=seed) for seed in "12")
    assert first == second
    assert ": " in first
