"""Both versions of LongBench."""

import json

import pytest

from oprag import OptionError
from oprag.compare import read_data
from tests.compare.data.writing import only, refused, write, write_lines

FIRST = {
    "input": "Who lit the lamp?",
    "context": "Ada lit the lamp at dusk.",
    "answers": ["Ada", "it was Ada"],
    "length": 6,
    "dataset": "lamps",
    "language": "en",
    "all_classes": None,
    "_id": "a1",
}
SECOND = {
    "_id": "b1",
    "domain": "Single-Document QA",
    "sub_domain": "Literary",
    "difficulty": "hard",
    "length": "short",
    "question": "Who lit the lamp?",
    "choice_A": "Ben",
    "choice_B": "Cy",
    "choice_C": "Ada",
    "choice_D": "Nobody",
    "answer": "C",
    "context": "Ada lit the lamp at dusk.",
}


def test_the_first_version(tmp_path):
    path = write_lines(tmp_path / "lamps.jsonl", FIRST, {**FIRST, "_id": "a2", "all_classes": ["x", "y"]})
    data = read_data(path, "longbench")
    first, second = data.questions
    assert data.documents == {"lamps-1": FIRST["context"]}
    assert (first.id, first.text, first.answers) == ("a1", "Who lit the lamp?", ("Ada", "it was Ada"))
    assert first.about == {"length": 6, "dataset": "lamps", "language": "en"}
    assert second.about["all_classes"] == '["x", "y"]'
    assert second.documents == ("lamps-1",)


@pytest.mark.parametrize("indent", [None, 2])
def test_the_second_version_is_a_json_list(tmp_path, indent):
    path = write(tmp_path / "data.json", json.dumps([SECOND, {**SECOND, "_id": "b2", "answer": "A"}], indent=indent))
    first, second = read_data(path, "longbench").questions
    assert first.choices == ("Ben", "Cy", "Ada", "Nobody")
    assert (first.labels, second.labels) == (("Ada", "C"), ("Ben", "A"))
    assert first.answers == ("Ada",)
    assert first.about == {
        "domain": "Single-Document QA",
        "sub_domain": "Literary",
        "difficulty": "hard",
        "length": "short",
    }


@pytest.mark.parametrize("name", ["data.jsonl", "data.json"])
def test_lines_whatever_the_name(tmp_path, name):
    data = read_data(write_lines(tmp_path / name, SECOND, FIRST), "longbench")
    assert [question.id for question in data.questions] == ["b1", "a1"]
    assert list(data.documents) == ["data-1"]


def test_one_object_alone(tmp_path):
    assert only(read_data(write(tmp_path / "a.json", json.dumps(FIRST, indent=1)), "longbench")).id == "a1"


def test_tasks_without_a_question_ask_the_one_that_is_given(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", {**FIRST, "input": ""})
    message = refused(path, "longbench")
    assert "line 1: input must not be empty (task lamps); set the option `question`" in message
    assert only(read_data(path, "longbench", question="Summarise it.")).text == "Summarise it."
    assert refused(path, "longbench", question=" ") == message
    with pytest.raises(OptionError, match="question must be a string or None"):
        read_data(path, "longbench", question=3)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({**FIRST, "answers": None}, "answers[0] must be a string, got None"),
        ({**FIRST, "answers": []}, "answers must contain at least 1"),
        ({**FIRST, "input": 3}, "input must be a string, got 3"),
        ({**FIRST, "context": ""}, "context must not be empty"),
        ({**FIRST, "_id": "x"}, "the id 'x' is used twice"),
        ({**SECOND, "answer": "E"}, "no choice has the letter 'E'; the choices are ['Ben', 'Cy', "),
        ({**SECOND, "answer": "Ada"}, "no choice has the letter 'Ada'"),
        ({**SECOND, "answer": None}, "answer must be a string, got None"),
        ({**SECOND, "choice_D": ""}, "choice_D must not be empty"),
        ({key: value for key, value in SECOND.items() if key != "choice_B"}, "choice_B is missing"),
        ({"question": "Who?"}, "input is missing; the fields are question"),
    ],
)
def test_wrong_records(tmp_path, fields, words):
    lines = write_lines(tmp_path / "a.jsonl", {**FIRST, "_id": "x"}, fields)
    message = refused(lines, "longbench")
    assert message.startswith(f"{lines}, line 2: ")
    assert words in message
    listed = write(tmp_path / "a.json", json.dumps([{**FIRST, "_id": "x"}, fields]))
    assert refused(listed, "longbench") == message.replace(f"{lines}, line 2", f"{listed}, item 2")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "item 1: must be a JSON object"),
        ('"text"', "must be a JSON object"),
        ('[{"input": 1},\n{"input"}]', "invalid JSON: expected `:` at line 2 column 9"),
        (b"\xff\xfe[", "is not UTF-8 text"),
        ("", "invalid JSON"),
        ("null", "must be a JSON object, {…}, got None"),
    ],
)
def test_files_that_are_no_json(tmp_path, content, words):
    assert words in refused(write(tmp_path / "a.json", content), "longbench")
