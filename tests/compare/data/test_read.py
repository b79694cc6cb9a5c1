"""Choosing a format, its options, and what all formats share."""

import gzip

import pytest

from oprag.compare import read_data
from oprag.compare.data.formats import FORMATS
from oprag.errors import InputFileError, OptionError
from tests.compare.data.writing import compressed, refused, write, write_lines
from tests.helpers import run_python

ROW = {"question": "Who?", "answer": "Ada", "text": "Ada did."}


def test_the_names_of_the_formats():
    assert next(iter(FORMATS)) == "oprag"
    assert set(FORMATS) == {
        "oprag",
        "infinitebench",
        "kg_rag",
        "longbench",
        "medqa",
        "narrativeqa",
        "qmsum",
        "quality",
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "squad"}, "format must be one of oprag, infinitebench"),
        ({"format": None}, "format must be one of"),
        ({"format": "qmsum", "query": "all"}, "did you mean 'queries'"),
        ({"format": "quality", "strip": True}, "unknown option 'strip'; expected one of none"),
        ({"spilt": "test"}, "unknown option 'spilt'"),
        ({"builder": 1}, "unknown option 'builder'"),
        ({"format": "quality", "documents": "folder"}, "unknown option 'documents'"),
        ({"name": 3}, "name must be a string"),
        ({"documents": 3}, "documents must be the path"),
        ({"documents": ""}, "documents must be the path"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(options, words, tmp_path):
    with pytest.raises(OptionError, match=words):
        read_data(write(tmp_path / "q.jsonl", b"\xff"), **options)


@pytest.mark.parametrize("path", [None, 3, "", "a\0b"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(OptionError, match="path must be the path of a file or folder"):
        read_data(path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_file_is_named(name, tmp_path):
    with pytest.raises(InputFileError, match=r"no such file or folder: .*missing\.jsonl"):
        read_data(tmp_path / "missing.jsonl", name, **({"documents": tmp_path} if name == "medqa" else {}))


@pytest.mark.parametrize("name", ["infinitebench", "longbench", "quality"])
def test_a_folder_in_place_of_a_file_is_refused(name, tmp_path):
    with pytest.raises(InputFileError, match="is a folder"):
        read_data(tmp_path, name)


def test_the_set_has_the_name_of_the_file_unless_one_is_given(tmp_path):
    path = write_lines(tmp_path / "my.questions.jsonl", ROW)
    assert read_data(path).name == "my.questions"
    assert read_data(str(path), name="mine").name == "mine"
    assert read_data(compressed(path)).name == "my.questions"


def test_a_folder_has_its_name_from_wherever_it_is_called(tmp_path, monkeypatch):
    write_lines(tmp_path / "birds" / "questions.jsonl", ROW)
    monkeypatch.chdir(tmp_path / "birds")
    assert read_data(".").name == "birds"


def test_bytes_that_editors_and_systems_add_change_nothing(tmp_path):
    plain = write_lines(tmp_path / "q.jsonl", ROW, {**ROW, "question": "Ünd wo?"})
    expected = read_data(plain)
    data = plain.read_bytes()
    for content in (
        b"\xef\xbb\xbf" + data,
        data.replace(b"\n", b"\r\n"),
        data.rstrip(b"\n"),
    ):
        assert read_data(write(plain, content)) == expected
    blank = read_data(write(plain, b"\n  \n" + data.replace(b"\n", b"\n\n")))
    assert [question.text for question in blank.questions] == ["Who?", "Ünd wo?"]
    assert [question.id for question in blank.questions] == ["q-3", "q-5"]


def test_gzip_is_known_by_its_bytes_not_by_its_name(tmp_path):
    path = write_lines(tmp_path / "q.jsonl", ROW)
    expected = read_data(path)
    zipped = compressed(path)
    assert read_data(zipped) == expected
    assert read_data(zipped.rename(tmp_path / "q.jsonl")) == expected


@pytest.mark.parametrize("cut", [5, 40])
def test_damaged_gzip_is_one_sentence(tmp_path, cut):
    path = compressed(write_lines(tmp_path / "q.jsonl", *[{**ROW, "id": number} for number in range(50)]))
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(InputFileError, match=r"cannot read .*q\.jsonl\.gz: "):
        read_data(path)


def test_a_gzip_file_that_grows_too_much_is_refused(tmp_path, monkeypatch):
    path = compressed(write_lines(tmp_path / "q.jsonl", *[{**ROW, "id": number} for number in range(20_000)]))
    monkeypatch.setenv("OPRAG_MAX_UNPACKED_MEGABYTES", "1")
    message = r"cannot read .*q\.jsonl\.gz: it decompresses to more than 1 MB; .* OPRAG_MAX_UNPACKED_MEGABYTES"
    with pytest.raises(InputFileError, match=message):
        read_data(path)
    unpacked = write(tmp_path / "q.jsonl", gzip.decompress(path.read_bytes()))
    assert len(read_data(unpacked).questions) == 20_000
    monkeypatch.setenv("OPRAG_MAX_UNPACKED_MEGABYTES", "2")
    assert len(read_data(path).questions) == 20_000


def test_a_line_that_is_too_long_is_refused(tmp_path, monkeypatch):
    path = write_lines(tmp_path / "q.jsonl", ROW, {**ROW, "text": "a" * 1_000_000})
    monkeypatch.setenv("OPRAG_MAX_LINE_MEGABYTES", "1")
    message = r"cannot read .*: line 2 has more than 1 MB; if you trust the file, raise the limit OPRAG_MAX_LINE_MEGAB"
    with pytest.raises(InputFileError, match=message):
        read_data(path)


def test_an_empty_file_has_no_questions(tmp_path):
    assert refused(write(tmp_path / "q.jsonl", b"\n\n")).endswith("q.jsonl contains no questions")


def test_the_first_problem_is_told_with_its_line(tmp_path):
    rows = [ROW if number % 2 else {**ROW, "question": number} for number in range(1, 21)]
    path = write_lines(tmp_path / "q.jsonl", *rows)
    assert refused(path) == f"{path}, line 2: question must be a string, got 2"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "invalid JSON: EOF while parsing an object at character 1, in '{'"),
        ('{"question": NaN}', "invalid JSON: expected value at character 14"),
        ('{"question": ' + "9" * 5000 + "}", "invalid JSON: "),
        ("[" * 100_000, "invalid JSON: "),
        ("[1]", "must be a JSON object, {…}, got [1]"),
        ("null", "must be a JSON object, {…}, got None"),
        ("Who wrote this?", "invalid JSON"),
        ("x" * 1_000_000, "invalid JSON"),
    ],
)
def test_lines_that_are_no_objects(tmp_path, line, words):
    message = refused(write_lines(tmp_path / "q.jsonl", ROW, line))
    assert ", line 2: " in message
    assert words in message
    assert len(message) < 500


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_are_refused_with_the_line(tmp_path, encoding):
    path = write(tmp_path / "q.jsonl", '{"question": "Où?", "text": "Là."}\n'.encode(encoding))
    message = refused(path)
    assert ", line 1: is not UTF-8 text: byte " in message
    assert "iconv" in message


def test_a_line_may_be_a_whole_book(tmp_path):
    book = "word " * 1_000_000
    data = read_data(write_lines(tmp_path / "q.jsonl", {**ROW, "text": book}, {**ROW, "text": book}))
    assert list(data.documents.values()) == [book]


def test_line_separators_inside_a_string_end_no_line(tmp_path):
    path = write_lines(tmp_path / "q.jsonl", {**ROW, "text": "one\u2028two\x85three\x0bfour"}, ROW)
    assert [question.id for question in read_data(path).questions] == ["q-1", "q-2"]


def test_half_of_a_surrogate_pair_is_refused(tmp_path):
    path = write_lines(tmp_path / "q.jsonl", '{"question": "Who \\ud83d?", "text": "Ada."}')
    assert "invalid JSON: unexpected end of hex escape" in refused(path)
    path = write_lines(tmp_path / "q.jsonl", '{"question": "Who?", "text": "Ada.", "of \\ud83d": 1}')
    assert "invalid JSON" in refused(path)
    whole = write_lines(tmp_path / "q.jsonl", '{"question": "Who \\ud83d\\ude00?", "text": "Ada."}')
    assert read_data(whole).questions[0].text == "Who 😀?"


def test_reading_twice_gives_the_same_in_every_process(tmp_path):
    path = write_lines(tmp_path / "q.jsonl", {**ROW, "b": 1, "a": {"y": 1, "x": 2}}, {**ROW, "text": "Ben did."})
    code = f"from oprag.compare import read_data; d = read_data({str(path)!r}); print(d.questions, d.documents)"
    printed = {run_python(code, PYTHONHASHSEED=str(seed)) for seed in range(3)}
    assert len(printed) == 1


def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "q.jsonl")
    with pytest.raises(InputFileError, match="not a regular file"):
        read_data(tmp_path / "q.jsonl")
