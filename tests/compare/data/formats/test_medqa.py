"""MedQA's questions and its textbooks."""

import pytest

from oprag import InputFileError, OptionError
from oprag.compare import read_data
from tests.compare.data.writing import compressed, only, refused, write, write_lines
from tests.pdfs import pdf


def row(**fields):
    return {
        "question": "Which herb helps?",
        "answer": "Sage",
        "options": {"A": "Mint", "B": "Sage", "C": "Thyme", "D": "Rue", "E": "Dill"},
        "meta_info": "step1",
        "answer_idx": "B",
        **fields,
    }


@pytest.fixture
def books(tmp_path):
    write(tmp_path / "textbooks" / "en" / "Herbs.txt", "Sage helps.")
    compressed(write(tmp_path / "textbooks" / "en" / "Roots.txt", "Roots do not."))
    return tmp_path / "textbooks" / "en"


def test_every_question_is_searched_over_the_whole_corpus(tmp_path, books):
    write(books / "Leaves.pdf", pdf("Leaves may."))
    four = {"A": "Mint", "B": "Sage", "C": "Thyme", "D": "Rue"}
    path = write_lines(tmp_path / "test.jsonl", row(), row(options=four, metamap_phrases=["herb"]))
    data = read_data(path, "medqa", documents=books)
    assert data.documents == {"Herbs.txt": "Sage helps.", "Leaves.pdf": ["Leaves may."], "Roots.txt": "Roots do not."}
    first, second = data.questions
    assert (first.id, first.text) == ("test-1", "Which herb helps?")
    assert first.documents == second.documents == ("Herbs.txt", "Leaves.pdf", "Roots.txt")
    assert first.choices == ("Mint", "Sage", "Thyme", "Rue", "Dill")
    assert first.labels == ("Sage", "B")
    assert first.answers == ("Sage",)
    assert first.about == {"meta_info": "step1"}
    assert second.about == {"meta_info": "step1", "metamap_phrases": '["herb"]'}


def test_without_a_letter_the_text_decides_and_of_equal_options_the_letter(tmp_path, books):
    options = {"A": "Sage", "B": "Sage", "C": "Rue"}
    path = write_lines(tmp_path / "q.jsonl", row(answer_idx=None), row(options=options))
    assert [question.right_choice for question in read_data(path, "medqa", documents=books).questions] == [1, 1]


def test_letters_in_any_order(tmp_path, books):
    path = write_lines(tmp_path / "q.jsonl", row(options={"C": "Rue", "A": "Mint", "B": "Sage"}))
    assert only(read_data(path, "medqa", documents=books)).choices == ("Mint", "Sage", "Rue")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"answer_idx": "A"}, "no choice has the text 'Sage' and the letter 'A'"),
        ({"answer_idx": "F"}, "no choice has the text 'Sage' and the letter 'F'"),
        ({"answer_idx": 1}, "no choice has the text 'Sage' and the letter 1"),
        ({"answer": "Basil"}, "no choice has the text 'Basil'"),
        ({"answer": None}, "answer must be a string, got None"),
        ({"options": ["Mint", "Sage"]}, "options must be a mapping, got ['Mint', 'Sage']"),
        ({"options": {"A": "Mint", "C": "Sage"}}, "consecutive letters from A, got A, C"),
        ({"options": {"a": "Mint", "b": "Sage"}}, "consecutive letters from A"),
        ({"options": {str(number): "x" for number in range(27)}}, "consecutive letters from A"),
        ({"options": {"A": "Sage", "B": 3}}, "options.B must be a string, got 3"),
        ({"options": {}}, "no choice has the text 'Sage' and the letter 'B'; the choices are []"),
        ({"question": ""}, "question must not be empty"),
    ],
)
def test_wrong_rows(tmp_path, books, fields, words):
    path = write_lines(tmp_path / "q.jsonl", row(), row(**fields))
    message = refused(path, "medqa", documents=books)
    assert message.startswith(f"{path}, line 2: ")
    assert words in message


def test_the_corpus_is_needed_and_read_whole(tmp_path, books):
    path = write_lines(tmp_path / "q.jsonl", row())
    with pytest.raises(OptionError, match="medqa requires documents"):
        read_data(path, "medqa")
    with pytest.raises(InputFileError, match="cannot read the folder"):
        read_data(path, "medqa", documents=tmp_path / "nowhere")
    write(books / "Bad.txt", b"\xff")
    write(books / "Worse.txt", b"")
    lines = refused(path, "medqa", documents=books).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [str(books)] * 2
    assert "Bad.txt is not UTF-8" in lines[0]
    assert "Worse.txt contains no text" in lines[1]
