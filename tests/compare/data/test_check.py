"""Data sets that are made in Python are held to what read ones are."""

from dataclasses import replace
from typing import Any

import pytest

from oprag.compare.data.check import check_data_set
from oprag.compare.data.data_set import DataSet, Evidence, Question
from oprag.errors import ExperimentError

RIGHT = Question(
    id="1",
    text="Who bakes?",
    documents=("bread", "pages"),
    answers=("Ada",),
    choices=("Ada", "Ben"),
    right_choice=0,
    evidence=(Evidence("bread", 0, 3), Evidence("pages", 8, 13)),
)
DOCUMENTS = {"bread": "Ada bakes.", "pages": ["page 1", "and 2"], "other": "Nothing."}


def refusal(**changes: Any) -> str:
    data = DataSet(name="set", documents=DOCUMENTS, questions=[replace(RIGHT, **changes)])
    with pytest.raises(ExperimentError) as caught:
        check_data_set("mine", data)
    return str(caught.value)


def test_what_is_right_passes():
    check_data_set("mine", DataSet(name="set", documents=DOCUMENTS, questions=[RIGHT]))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": " "}, "its text must not be empty"),
        ({"documents": ("bread", "gone")}, "there is no document 'gone'"),
        ({"documents": ("bread", "pages", "bread")}, "it names a document twice"),
        ({"answers": "Ada"}, "its answers must be a list of texts, got 'Ada'"),
        ({"answers": ("Ada", 3)}, "its answers must be a list of texts"),
        ({"choices": "AB"}, "its choices must be a list of texts"),
        ({"right_choice": 2}, "the right choice is number 2 of 2"),
        ({"evidence": (Evidence("other", 0, 3),)}, "evidence in 'other', which is none of its documents"),
        ({"evidence": (Evidence("bread", 4, 11),)}, "must lie in 'bread', which has 10 characters; got 4 to 11"),
        ({"evidence": (Evidence("bread", -1, 3),)}, "got -1 to 3"),
        ({"evidence": (Evidence("bread", 3, 3),)}, "got 3 to 3"),
        ({"evidence": (Evidence("pages", 8, 14),)}, "must lie in 'pages', which has 13 characters"),
    ],
)
def test_what_is_wrong_is_told_with_set_and_question(changes, words):
    message = refusal(**changes)
    assert message.startswith("the data set 'mine': the question '1': ")
    assert words in message


def test_two_questions_with_one_id():
    with pytest.raises(ExperimentError, match="'1': another one has the same id"):
        check_data_set("mine", DataSet(name="set", documents=DOCUMENTS, questions=[RIGHT, RIGHT]))
