"""Our own format, and what a hostile or careless file of it meets."""

from typing import Any

import pytest

from oprag.compare import read_data
from oprag.compare.data.data_set import whole_text
from oprag.errors import InputFileError
from tests.compare.data.writing import compressed, evidence_texts, only, refused, write, write_lines
from tests.pdfs import pdf

HARBOUR = "The harbour has nine cranes. Its lamp burns by night."


def row(**fields):
    return {"question": "How many cranes?", "text": HARBOUR, **fields}


def read_one(tmp_path, **fields):
    return only(read_data(write_lines(tmp_path / "q.jsonl", row(**fields))))


# Questions


def test_all_that_a_question_can_have(tmp_path):
    path = write_lines(
        tmp_path / "q.jsonl",
        {
            "id": 7,
            "question": "How many cranes?",
            "answers": ["nine", "9"],
            "choices": ["one", "nine"],
            "right_choice": 1,
            "path": "a/harbour.txt",
            "evidence": [{"start": 16, "end": 27}],
            "category": "numbers",
            "hard": True,
            "weight": 0.5,
            "note": None,
            "tags": ["ä", 1],
        },
    )
    write(tmp_path / "a" / "harbour.txt", HARBOUR)
    data = read_data(path)
    question = only(data)
    assert data.documents == {"a/harbour.txt": HARBOUR}
    assert (question.id, question.documents) == ("7", ("a/harbour.txt",))
    assert (question.answers, question.choices, question.right_choice) == (("nine", "9"), ("one", "nine"), 1)
    assert question.labels == ("nine", "B")
    assert evidence_texts(data, question) == ["nine cranes"]
    assert question.about == {"category": "numbers", "hard": True, "weight": 0.5, "tags": '["ä", 1]'}


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        ({"answer": "nine"}, ("nine",)),
        ({"answers": "nine"}, ("nine",)),
        ({"answers": ["nine", "9"]}, ("nine", "9")),
        ({"answers": []}, ()),
        ({}, ()),
        ({"choices": ["one", "nine"], "right_choice": 1}, ("nine",)),
        ({"choices": ["one", "nine"], "right_choice": 1, "answers": ["9"]}, ("9",)),
        ({"choices": ["one", "nine"]}, ()),
    ],
)
def test_answers(tmp_path, fields, answers):
    assert read_one(tmp_path, **fields).answers == answers


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"question": None}, "question must be a string, got None"),
        ({"question": " \n"}, "question must not be empty"),
        ({"text": ""}, "text must not be empty"),
        ({"answers": None}, "answers[0] must be a string, got None"),
        ({"answers": ["nine", 9]}, "answers[1] must be a string, got 9"),
        ({"answers": [""]}, "answers[0] must not be empty"),
        ({"answer": None}, "answer[0] must be a string, got None"),
        ({"choices": ["one"]}, "no choices, or from 2 to 26"),
        ({"choices": ["one", 2]}, "choices[1] must be a string, got 2"),
        ({"choices": [str(number) for number in range(27)]}, "one per letter, got 27"),
        ({"right_choice": 0}, "exactly one of the choices [], got 0"),
        ({"choices": ["one", "nine"], "right_choice": 2}, "the index (from 0), the letter or the text of"),
        ({"choices": ["one", "nine"], "right_choice": True}, "the index (from 0), the letter or the text of"),
        ({"choices": ["one", "nine"], "right_choice": "C"}, "exactly one of the choices ['one', 'nine'], got 'C'"),
        ({"choices": ["B", "A"], "right_choice": "A"}, "text of exactly one of the choices"),
        ({"id": True}, "id must be a string, got True"),
        ({"id": ""}, "id must not be empty"),
        ({"path": "a.txt"}, "one of the fields 'document', 'path' and 'text', got ['path', 'text']"),
        ({"text": None}, "one of the fields 'document', 'path' and 'text', got none"),
        ({"text": None, "document": "one"}, "document is ['one'], but there are no documents to look it up in"),
    ],
)
def test_wrong_questions(tmp_path, fields, words):
    path = write_lines(tmp_path / "q.jsonl", row(question="Where?"), row(**fields))
    message = refused(path)
    assert message.startswith(f"{path}, line 2: ")
    assert words in message


@pytest.mark.parametrize("ids", [("a", "a"), (1, "1")])
def test_ids_are_distinct(tmp_path, ids):
    message = refused(write_lines(tmp_path / "q.jsonl", *[row(id=name) for name in ids]))
    assert f"line 2: the id '{ids[1]}' is used twice" in message


def test_ids_that_are_not_given_are_the_file_and_the_line(tmp_path):
    path = write_lines(tmp_path / "q.jsonl", row(), "", row(id=None), row(id="x"))
    expected = ["q-1", "q-3", "x"]
    assert [question.id for question in read_data(path).questions] == expected
    assert [question.id for question in read_data(compressed(path)).questions] == expected


# Evidence


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        ([{"start": 0, "end": 1}, {"start": 60, "end": 61}], "evidence[1] must be a non-empty span of"),
        ([{"start": -1, "end": 5}], "evidence[0].start must be an integer >= 0, got -1"),
        ([{"start": "0", "end": 5}], "evidence[0].start must be an integer >= 0, got '0'"),
        ([[0, 5]], "evidence[0] must be a mapping, got [0, 5]"),
        ({"start": 0, "end": 5}, "evidence must be a list, got a mapping"),
        ([{"start": 0, "end": 5, "document": 1}], "evidence[0].document must be a string"),
    ],
)
def test_wrong_evidence(tmp_path, evidence, words):
    assert words in refused(write_lines(tmp_path / "q.jsonl", row(evidence=evidence)))


def test_evidence_in_a_pdf_counts_over_all_pages(tmp_path):
    write(tmp_path / "a.pdf", pdf("First page.", "Second page."))
    fields = {"question": "Which?", "path": "a.pdf"}
    path = write_lines(tmp_path / "q.jsonl", {**fields, "evidence": [{"start": 13, "end": 19}]})
    data = read_data(path)
    assert data.documents == {"a.pdf": ["First page.", "Second page."]}
    (part,) = only(data).evidence
    assert whole_text(data.documents["a.pdf"])[part.start : part.end] == "Second"
    assert "has 25 characters" in refused(write_lines(path, {**fields, "evidence": [{"start": 0, "end": 26}]}))


# Documents in the line or in files


def test_equal_texts_are_one_document(tmp_path):
    data = read_data(write_lines(tmp_path / "q.jsonl", row(), row(text="Another."), row()))
    assert data.documents == {"q-1": HARBOUR, "q-2": "Another."}
    assert [question.documents for question in data.questions] == [("q-1",), ("q-2",), ("q-1",)]


def test_a_file_is_one_document_however_it_is_named(tmp_path):
    write(tmp_path / "a" / "b.txt", HARBOUR)
    (tmp_path / "c.txt").symlink_to(tmp_path / "a" / "b.txt")
    names = ["a/b.txt", "./a/b.txt", "a/../a/b.txt", "c.txt"]
    data = read_data(write_lines(tmp_path / "q.jsonl", *[{"question": "How many?", "path": name} for name in names]))
    assert data.documents == {"a/b.txt": HARBOUR}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.txt", "the file 'missing.txt' is missing in the folder"),
        ("empty.txt", "empty.txt contains no text"),
        ("zeros.txt", "contains null bytes"),
        ("latin.txt", "is not UTF-8 text: byte 1 is 0xe9"),
        ("scan.pdf", "run OCR first"),
        ("broken.pdf", "is not a PDF file, or is corrupt"),
        ("../secret.txt", "'../secret.txt' is outside the folder"),
        ("folder/../../secret.txt", "is outside the folder"),
        ("link.txt", "'link.txt' is outside the folder"),
        ("loop.txt", "loop.txt"),
        ("a\0b", "is not a valid file path"),
        ("a" * 5000, "line 1: "),
        ("", "path must not be empty"),
        (7, "path must be a string, got 7"),
    ],
)
def test_files_that_cannot_be_read_and_those_that_must_not(tmp_path, name, words):
    folder = tmp_path / "set"
    (folder / "folder").mkdir(parents=True)
    write(tmp_path / "secret.txt", "The key lies under the mat.")
    write(folder / "empty.txt", " \n")
    write(folder / "latin.txt", b"d\xe9j\xe0")
    write(folder / "zeros.txt", b"a\0b")
    write(folder / "scan.pdf", pdf(""))
    write(folder / "broken.pdf", b"%PDF-1.7\n")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "hidden.txt.gz").symlink_to(tmp_path / "secret.txt")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    message = refused(write_lines(folder / "q.jsonl", {"question": "Where?", "path": name}))
    assert message.startswith(f"{folder / 'q.jsonl'}, line 1: ")
    assert words in message
    assert "under the mat" not in message


# Documents in a file of their own

LOGS: list[dict[str, Any]] = [
    {"document": "one", "title": "First", "text": "The Swan came on Tuesday."},
    {"document_id": 2, "text": "The Heron came on Monday."},
    {"document": "three", "text": "Nobody came."},
]


def logs(tmp_path, *rows, name="questions.jsonl"):
    write_lines(tmp_path / "documents.jsonl", *LOGS)
    return write_lines(tmp_path / name, *rows)


def test_documents_beside_the_questions(tmp_path):
    path = logs(
        tmp_path,
        {"question": "Who?", "document": "one"},
        {"question": "Who?", "document": ["2", "one", "one"], "evidence": [{"document": "2", "start": 4, "end": 9}]},
        {"question": "Who?", "document_id": 2},
    )
    data = read_data(path)
    assert data.documents == {"one": LOGS[0]["text"], "2": LOGS[1]["text"]}
    assert [question.documents for question in data.questions] == [("one",), ("2", "one"), ("2",)]
    assert evidence_texts(data, data.questions[1]) == ["Heron"]
    compressed(path)
    compressed(tmp_path / "documents.jsonl")
    again = read_data(tmp_path)
    assert (again.documents, again.questions) == (data.documents, data.questions)


def test_source_documents_are_searched_where_they_are_all_there(tmp_path):
    rows = [
        {"question": "Who?", "document_id": "three", "source_documents": ["one", "2"]},
        {"question": "Who?", "document_id": "three", "source_documents": ["one", "unknown"]},
    ]
    first, second = read_data(logs(tmp_path, *rows)).questions
    assert (first.documents, first.about) == (("one", "2"), {})
    assert (second.documents, second.about) == (("three",), {"source_documents": '["one", "unknown"]'})


def test_a_folder_of_files(tmp_path):
    books = tmp_path / "books"
    write(books / "a.txt", HARBOUR)
    write(books / "more" / "b.md", "# Bread\n")
    compressed(write(books / "c.txt", "Compressed."))
    write(books / ".hidden", b"\xff")
    rows = [{"question": "Who?", "document": name} for name in ("more/b.md", "c.txt", "*")]
    data = read_data(write_lines(tmp_path / "q.jsonl", *rows), documents=books)
    assert [question.documents for question in data.questions] == [
        ("more/b.md",),
        ("c.txt",),
        ("a.txt", "c.txt", "more/b.md"),
    ]
    assert data.documents == {"a.txt": HARBOUR, "c.txt": "Compressed.", "more/b.md": "# Bread\n"}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("other", [{"path": "one"}, {"text": "Another text."}])
def test_two_documents_of_one_name_are_never_taken_for_each_other(tmp_path, other, turned):
    write(tmp_path / "one", "Another text.")
    write_lines(tmp_path / "documents.jsonl", {"document": "one", "text": "A."}, {"document": "q-1", "text": "B."})
    rows = [{"question": "Who?", "document": ["one", "q-1"]}, {"question": "Who?", **other}]
    path = write_lines(tmp_path / "q.jsonl", *(reversed(rows) if turned else rows))
    if "text" in other and not turned:  # named by its line, the second
        assert read_data(path).documents == {"one": "A.", "q-1": "B.", "q-2": "Another text."}
    else:
        name = "q-1" if "text" in other else "one"
        assert f"line 2: another document '{name}' already exists with a different text" in refused(path)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("ones", "document 'ones' not found in"),
        (["one", 2.5], "document[1] must be a string, got 2.5"),
        ([], "document must contain at least 1"),
        ("../q.jsonl", "document '../q.jsonl' not found"),
    ],
)
def test_documents_that_are_not_there(tmp_path, document, words):
    assert words in refused(logs(tmp_path, {"question": "Who?", "document": document}))


def test_evidence_in_one_of_several_documents_must_say_in_which(tmp_path):
    path = logs(tmp_path, {"question": "Who?", "document": ["one", "2"], "evidence": [{"start": 0, "end": 3}]})
    assert "evidence[0] must have a field 'document', since the question has 2 documents" in refused(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"document": "one", "text": "Again."}, "duplicate document 'one'"),
        ({"document": "four"}, "text is missing"),
        ({"document": "four", "text": " "}, "text must not be empty"),
        ({"document": True, "text": "No name."}, "document must be a string"),
        ("{", "invalid JSON"),
    ],
)
def test_wrong_documents_are_told_even_if_no_question_names_them(tmp_path, line, words):
    path = logs(tmp_path, {"question": "Who?", "document": "one"})
    documents = write_lines(tmp_path / "documents.jsonl", *LOGS, line)
    message = refused(path)
    assert message.startswith(f"{documents}, line 4: ")
    assert words in message


@pytest.mark.parametrize(
    ("name", "words"),
    [("notes.csv", "unexpected file or link notes.csv"), ("image.png", "unexpected file or link image.png")],
)
def test_a_folder_of_documents_has_nothing_else_in_it(tmp_path, name, words):
    write(tmp_path / "books" / "a.txt", HARBOUR)
    write(tmp_path / "books" / name, "x")
    path = write_lines(tmp_path / "q.jsonl", {"question": "Who?", "document": "a.txt"})
    with pytest.raises(InputFileError, match=words):
        read_data(path, documents=tmp_path / "books")


def test_a_folder_of_documents_has_its_files_itself(tmp_path):
    path = write_lines(tmp_path / "q.jsonl", {"question": "Who?", "document": "a.txt"})
    (tmp_path / "books").mkdir()
    with pytest.raises(InputFileError, match="has no files with the extensions"):
        read_data(path, documents=tmp_path / "books")
    (tmp_path / "books" / "a.txt").symlink_to(write(tmp_path / "secret.txt", "x"))
    with pytest.raises(InputFileError, match=r"'a\.txt' is outside the folder"):
        read_data(path, documents=tmp_path / "books")
