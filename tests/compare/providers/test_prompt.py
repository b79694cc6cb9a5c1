import pytest

from oprag.compare.providers.likelihood import likelihood_prompt
from oprag.errors import OptionError, QueryError


def test_a_text_to_be_continued():
    prompt = likelihood_prompt("First.\n\nSecond {brace}.", "What {is} it?")
    assert prompt == "First.\n\nSecond {brace}.\n\nQuestion: What {is} it?\nAnswer:"


def test_choices_have_their_letters():
    prompt = likelihood_prompt("It rained.", "Was it dry?", ("yes", "no", "nobody knows"))
    assert prompt == "It rained.\n\nQuestion: Was it dry?\nA. yes\nB. no\nC. nobody knows\nAnswer:"


def test_closed_book_begins_with_the_question():
    assert likelihood_prompt("", "What?") == "Question: What?\nAnswer:"


def test_what_cannot_be_prompted():
    with pytest.raises(QueryError, match="the question is empty"):
        likelihood_prompt("Text.", " ")
    with pytest.raises(OptionError, match="choices must be at most 26, got 27"):
        likelihood_prompt("Text.", "What?", ["no"] * 27)
