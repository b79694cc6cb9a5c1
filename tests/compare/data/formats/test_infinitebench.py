"""∞Bench's JSON lines."""

import pytest

from oprag.compare import read_data
from tests.compare.data.writing import only, refused, write_lines

BOOK = "The tower stood on a ridge. " * 20


def row(**fields):
    return {
        "id": 0,
        "context": BOOK,
        "input": "Where did the tower stand?",
        "answer": ["on a ridge"],
        "options": [],
        **fields,
    }


def choices(answer, options=("in a marsh", "on a ridge", "by an inlet", "in a valley")):
    return row(answer=answer, options=list(options))


def test_questions_with_answers(tmp_path):
    path = write_lines(
        tmp_path / "longbook_qa_eng.jsonl",
        row(),
        row(id=1, answer=["a ridge", "the ridge"]),
        row(id=4, context="Another book.", answer="nowhere"),
    )
    data = read_data(path, "infinitebench")
    assert data.documents == {"longbook_qa_eng-1": BOOK, "longbook_qa_eng-3": "Another book."}
    assert [question.id for question in data.questions] == ["0", "1", "4"]
    assert [question.answers for question in data.questions] == [
        ("on a ridge",),
        ("a ridge", "the ridge"),
        ("nowhere",),
    ]
    assert [question.documents[0] for question in data.questions] == ["longbook_qa_eng-1"] * 2 + ["longbook_qa_eng-3"]
    assert data.questions[0].text == "Where did the tower stand?"
    assert data.questions[0].labels is None


@pytest.mark.parametrize("answer", ["on a ridge", ["on a ridge"], ["on a ridge", "B"]])
def test_the_right_option_is_found_by_its_text(tmp_path, answer):
    question = only(read_data(write_lines(tmp_path / "mc.jsonl", choices(answer)), "infinitebench"))
    assert question.choices == ("in a marsh", "on a ridge", "by an inlet", "in a valley")
    assert question.labels == ("on a ridge", "B")
    assert question.answers == ("on a ridge",)


def test_of_equal_options_the_first_is_right_as_in_the_benchmarks_own_code(tmp_path):
    question = only(
        read_data(write_lines(tmp_path / "mc.jsonl", choices(["x"], ["y", "x", "x", "z"])), "infinitebench")
    )
    assert question.right_choice == 1


def test_other_fields_are_kept_and_options_may_be_missing(tmp_path):
    fields = row(task="qa", length=3)
    del fields["options"], fields["id"]
    question = only(read_data(write_lines(tmp_path / "a.jsonl", fields), "infinitebench"))
    assert (question.id, question.about) == ("a-1", {"task": "qa", "length": 3})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (row(input=""), "input must not be empty"),
        (row(input=None), "input must be a string, got None"),
        (row(context=" "), "context must not be empty"),
        (row(answer=None), "answer[0] must be a string, got None"),
        (row(answer=[]), "answer must contain at least 1"),
        (row(answer=[None]), "answer[0] must be a string, got None"),
        (row(answer=3), "answer[0] must be a string, got 3"),
        (row(options=""), "options[0] must not be empty"),
        (choices(["in a well"]), "no choice has the text 'in a well'; the choices are ['in a marsh', "),
        (choices(["on a ridge", "A"]), "no choice has the text 'on a ridge' and the letter 'A'"),
        (choices(["on a ridge", "E"]), "no choice has the text 'on a ridge' and the letter 'E'"),
        (choices(["on a ridge", "B", "C"]), "and the letter ['B', 'C']"),
        (choices(["on a ridge", "in a marsh"]), "and the letter 'in a marsh'"),
        (choices("c0", [f"c{number}" for number in range(27)]), "at most 26 choices"),
        (row(id=7), "the id '7' is used twice"),
        (row(id=[1]), "id must be a string"),
    ],
)
def test_wrong_rows(tmp_path, fields, words):
    path = write_lines(tmp_path / "a.jsonl", row(id=7), {"id": 8, **fields} if "id" not in fields else fields)
    message = refused(path, "infinitebench")
    assert message.startswith(f"{path}, line 2: ")
    assert words in message
