import re

import pytest

from oprag.compare.providers.likelihood import split_answer
from oprag.errors import LikelihoodError, OptionError

BEGIN = 0  # the token that begins every text


def words_and_spaces(text):
    """One token for a word with the space before it, one for any other character."""
    return numbers(*re.findall(r" ?\w+|\W", text))


def numbers(*pieces):
    return [sum(map(ord, piece)) for piece in pieces]


def split_of(prompt, answer, tokenize=words_and_spaces, first=(BEGIN,), window=99):
    return split_answer(prompt, answer, tokenize, list(first), window)


def test_the_answer_begins_behind_the_prompt_and_a_space():
    split = split_of("Answer:", "in 1984.")
    assert split.given == [BEGIN, *numbers("Answer", ":")]
    assert split.scored == numbers(" in", " 1984", ".")


@pytest.mark.parametrize(("prompt", "answer"), [("Answer:", "\nParis"), ("Answer:\n", "Paris")])
def test_no_space_where_there_is_white_space(prompt, answer):
    split = split_of(prompt, answer)
    assert split.given + split.scored == [BEGIN, *numbers("Answer", ":", "\n", "Paris")]
    assert split.scored[-1:] == numbers("Paris")


def test_a_token_across_the_border_is_scored_as_a_whole():
    # Alone, the prompt ends with a space of its own.
    assert words_and_spaces("Answer: ")[-1:] == numbers(" ")
    split = split_of("Answer: ", "Paris")
    assert split.given == [BEGIN, *numbers("Answer", ":")]
    assert split.scored == numbers(" Paris")


def test_tokens_that_end_every_text_do_not_separate_prompt_and_answer():
    split = split_of("Answer:", "Paris", lambda text: [*words_and_spaces(text), -1])
    assert split.given == [BEGIN, *numbers("Answer", ":")]


@pytest.mark.parametrize("answer", ["", " ", "\n\t"])
def test_an_empty_answer(answer):
    with pytest.raises(LikelihoodError, match="the answer is empty"):
        split_of("Answer:", answer)


def test_an_answer_that_the_tokenizer_does_not_see():
    with pytest.raises(LikelihoodError, match="returns no tokens for the answer 'Paris'"):
        split_of("Answer:", "Paris", lambda text: [7], first=())


def test_nothing_before_the_answer():
    with pytest.raises(LikelihoodError, match="has no token before the answer"):
        split_of("", "Paris", first=())
    assert split_of("", "Paris").given == [BEGIN]


def test_the_window_holds_both_and_the_error_names_all_figures():
    prompt, answer = "word " * 1_200 + "Answer:", "in the year 1984"
    tokens = 1 + len(words_and_spaces(f"{prompt} {answer}"))
    assert len(split_of(prompt, answer, window=tokens).scored) == 4
    figures = (
        rf"\({tokens - 4:,} tokens\) and the answer \(4\) have {tokens:,} tokens together, .* window of {tokens - 1:,};"
    )
    with pytest.raises(LikelihoodError, match=figures) as caught:
        split_of(prompt, answer, window=tokens - 1)
    assert caught.value.value == tokens


@pytest.mark.parametrize(("prompt", "answer", "name"), [(None, "Paris", "prompt"), ("Answer:", 7, "answer")])
def test_what_is_no_text(prompt, answer, name):
    with pytest.raises(OptionError, match=f"{name} must be a string, got"):
        split_of(prompt, answer)


def test_a_text_that_has_the_first_token_in_writing_gets_no_second_one():
    split = split_of("\0Answer:", "Paris", first=numbers("\0"))
    assert split.given == numbers("\0", "Answer", ":")
