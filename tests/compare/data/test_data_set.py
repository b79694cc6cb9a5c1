"""Question sets, and samples of them."""

import pytest

from oprag import OptionError
from oprag.compare.data import DataSet, Question
from oprag.compare.data.data_set import whole_text


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


@pytest.mark.parametrize("count", [None, 5, 6])
def test_all_where_there_are_no_more(count):
    data = numbered(5)
    assert data.sample(count) is data


@pytest.mark.parametrize(("count", "seed"), [(0, 0), (-1, 0), (1.5, 0), ("3", 0), (3, 0.5), (3, None)])
def test_wrong_samples(count, seed):
    with pytest.raises(OptionError):
        numbered(5).sample(count, seed)


def test_labels_are_the_text_and_the_letter():
    question = Question(id="1", text="Who?", documents=("a",), choices=("x", "y", "z"), right_choice=2)
    assert question.labels == ("z", "C")
    assert Question(id="1", text="Who?", documents=("a",), choices=("x", "y")).labels is None


def test_pages_are_one_text_with_blank_lines_between():
    assert whole_text("One.") == "One."
    assert whole_text(["One.", "", "Two."]) == "One.\n\n\n\nTwo."


def test_long_texts_are_not_in_a_representation():
    assert "Ada." not in repr(numbered(2))
