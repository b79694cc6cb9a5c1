import re

import pytest

from oprag.compare.providers.likelihood import split_answer
from oprag.errors import LikelihoodError, OptionError

BEGIN = 0


def words_and_spaces(text):
    """One token for a word with the space before it, one for any other character; the first begins every text."""
    return [BEGIN, *(sum(map(ord, piece)) for piece in re.findall(r" ?\w+|\W", text))]


def numbers(*pieces):
    return [sum(map(ord, piece)) for piece in pieces]


def test_the_answer_begins_behind_the_prompt_and_a_space():
    split = split_answer("Answer:", "in 1984.", words_and_spaces, 99)
    assert split.given == [BEGIN, *numbers("Answer", ":")]
    assert split.scored == numbers(" in", " 1984", ".")


@pytest.mark.parametrize(("prompt", "answer"), [("Answer:", "\nParis"), ("Answer:\n", "Paris")])
def test_no_space_where_there_is_white_space(prompt, answer):
    split = split_answer(prompt, answer, words_and_spaces, 99)
    assert split.given + split.scored == [BEGIN, *numbers("Answer", ":", "\n", "Paris")]
    assert split.scored[-1:] == numbers("Paris")


def test_a_token_across_the_border_is_scored_as_a_whole():
    # Alone, the prompt ends with a space of its own.
    assert words_and_spaces("Answer: ")[-1:] == numbers(" ")
    split = split_answer("Answer: ", "Paris", words_and_spaces, 99)
    assert split.given == [BEGIN, *numbers("Answer", ":")]
    assert split.scored == numbers(" Paris")


def test_tokens_that_end_every_text_do_not_separate_prompt_and_answer():
    split = split_answer("Answer:", "Paris", lambda text: [*words_and_spaces(text), -1], 99)
    assert split.given == [BEGIN, *numbers("Answer", ":")]


@pytest.mark.parametrize("answer", ["", " ", "\n\t"])
def test_an_empty_answer(answer):
    with pytest.raises(LikelihoodError, match="the answer is empty"):
        split_answer("Answer:", answer, words_and_spaces, 99)


def test_an_answer_that_the_tokenizer_does_not_see():
    with pytest.raises(LikelihoodError, match="gives the answer no token of its own: 'Paris'"):
        split_answer("Answer:", "Paris", lambda text: [7], 99)


def test_nothing_before_the_answer():
    with pytest.raises(LikelihoodError, match="there is no token before the answer"):
        split_answer("", "Paris", lambda text: words_and_spaces(text)[1:], 99)
    assert split_answer("", "Paris", words_and_spaces, 99).given == [BEGIN]


def test_the_window_holds_both_and_the_error_names_all_figures():
    prompt, answer = "word " * 1_200 + "Answer:", "in the year 1984"
    tokens = len(words_and_spaces(f"{prompt} {answer}"))
    assert len(split_answer(prompt, answer, words_and_spaces, tokens).scored) == 4
    figures = f"{tokens - 4:,} tokens and the answer with 4 have {tokens:,} together, and the window is {tokens - 1:,}"
    with pytest.raises(LikelihoodError, match=figures) as caught:
        split_answer(prompt, answer, words_and_spaces, tokens - 1)
    assert caught.value.value == tokens


@pytest.mark.parametrize(("prompt", "answer", "name"), [(None, "Paris", "prompt"), ("Answer:", 7, "answer")])
def test_what_is_no_text(prompt, answer, name):
    with pytest.raises(OptionError, match=f"{name} must be a string, got"):
        split_answer(prompt, answer, words_and_spaces, 99)
