"""Question sets, what they are held to, and samples of them."""

from dataclasses import replace
from typing import Any

import pytest

from oprag.compare import DataSet, Evidence, Question
from oprag.errors import DataError, OptionError

RIGHT = Question(
    id="1",
    text="Who bakes?",
    documents=("bread", "pages"),
    answers=("Ada",),
    choices=("Ada", "Ben"),
    right_choice=0,
    evidence=(Evidence("bread", 0, 3), Evidence("pages", 8, 13)),
)
DOCUMENTS: dict[Any, Any] = {"bread": "Ada bakes.", "pages": ["page 1", "and 2"], "other": "Nothing.", "none": []}


def refusal(questions, documents=None):
    with pytest.raises(DataError) as caught:
        DataSet(name="mine", documents=DOCUMENTS | (documents or {}), questions=questions)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"text": " \n"}, r"its text must not be empty, got ' \n'"),
        ({"documents": ("bread", "gone")}, "its document 'gone' is missing"),
        ({"documents": ("bread", "pages", "bread")}, "it lists a document twice"),
        ({"answers": "Ada"}, "its answers must be a list of strings, got 'Ada'"),
        ({"choices": ("a",) * 27}, "it must have no choices, or from 2 to 26, one per letter, got 27"),
        ({"right_choice": 2}, "right_choice is 2, but must be an index into its 2 choices"),
        (
            {"evidence": (Evidence("other", 0, 3),)},
            "[0] is in 'other', which is not a document of the question: bread, pages",
        ),
        (
            {"evidence": (Evidence("bread", 4, 11),)},
            "[0] must be a non-empty span of the document 'bread', which has 10 characters, ",
        ),
        ({"evidence": (Evidence("bread", -1, 3),)}, "got -1 to 3"),
        (
            {"evidence": (Evidence("pages", 8, 14),)},
            "must be a non-empty span of the document 'pages', which has 13 characters",
        ),
        ({"documents": ("none",), "evidence": (Evidence("none", 0, 1),)}, "'none', which has 0 characters"),
    ],
)
def test_what_is_wrong_is_told_with_set_and_question(changes, words):
    DataSet(name="mine", documents=DOCUMENTS, questions=[RIGHT])
    message = refusal([replace(RIGHT, **changes)])
    assert message.startswith("the data set 'mine': the question '1': ")
    assert words in message


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ({"text": 7}, "the document 'text' must be a string, or a list of pages"),
        ({"text": ["a", 7]}, "the document 'text' must be a string, or a list of pages"),
        ({3: "b"}, "3 is not a valid document name"),
        ({"caf\udce9": "b"}, "is not a valid document name; rename the document"),
    ],
)
def test_documents_that_cannot_be_used(documents, message):
    assert message in refusal([RIGHT], documents)


def test_questions_are_needed_and_have_ids_of_their_own():
    assert refusal([]) == "the data set 'mine' has no questions"
    assert refusal([RIGHT, RIGHT]) == "the data set 'mine': the question '1': another question has the same id"


def numbered(count):
    questions = [Question(id=str(number), text="Who?", documents=("a",)) for number in range(count)]
    return DataSet(name="set", documents={"a": "Ada."}, questions=questions)


def test_a_sample_keeps_the_order_and_is_the_same_for_the_same_seed():
    data = numbered(100)
    drawn = [int(question.id) for question in data.sample(10, seed=3).questions]
    assert len(set(drawn)) == 10
    assert drawn == sorted(drawn)
    assert drawn == [int(question.id) for question in data.sample(10, seed=3).questions]
    assert drawn != [int(question.id) for question in data.sample(10, seed=4).questions]
    assert data.sample(10).documents is data.documents
    assert all(data.sample(count) is data for count in (None, len(data.questions), len(data.questions) + 1))


@pytest.mark.parametrize(("count", "seed"), [(0, 0), (-1, 0), (1.5, 0), ("3", 0), (3, 0.5), (3, None)])
def test_wrong_samples(count, seed):
    with pytest.raises(OptionError):
        numbered(5).sample(count, seed)
