import pytest

from oprag.errors import OpragError, QueryError
from oprag.options import check_question


@pytest.mark.parametrize("question", ["", " ", "\n\t", "\u00a0\u3000"])
def test_a_blank_question_is_refused(question):
    with pytest.raises(QueryError, match="the question is empty") as caught:
        check_question(question)
    assert caught.value.value == question
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("question", [None, 5, b"what", ["what"], {"query": "what"}])
def test_something_else_than_a_text_is_refused(question):
    with pytest.raises(QueryError, match=f"must be a string, got {type(question).__name__}") as caught:
        check_question(question)
    assert caught.value.value is question
    assert isinstance(caught.value, OpragError)


@pytest.mark.parametrize("question", ["?", "0", "Where?\n", "\ud800"])
def test_any_other_text_is_a_question(question):
    assert check_question(question) is None  # type: ignore[func-returns-value]
