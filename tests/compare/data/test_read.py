"""Choosing a format, its options, and what all formats share."""

import gzip

import pytest

from oprag.compare import read_data
from oprag.compare.data.read import FORMATS
from oprag.errors import InputFileError, OptionError
from tests.compare.data.writing import compressed, refused, write, write_lines

ROW = {"question": "Who?", "answer": "Ada", "text": "Ada did."}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "squad"}, "format must be one of oprag, infinitebench"),
        ({"format": "qmsum", "query": "all"}, "did you mean 'queries'"),
        ({"format": "quality", "strip": True}, "unknown option 'strip'; expected one of none"),
        ({"spilt": "test"}, "unknown option 'spilt'"),
        ({"format": "quality", "documents": "folder"}, "unknown option 'documents'"),
        ({"name": 3}, "name must be a string"),
        ({"documents": 3}, "documents must be the path"),
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


def test_bytes_that_editors_and_systems_add_change_nothing(tmp_path):
    plain = write_lines(tmp_path / "q.jsonl", ROW, {**ROW, "question": "Ünd wo?"})
    expected = read_data(plain)
    data = plain.read_bytes()
    for content in (b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"), data.rstrip(b"\n")):
        assert read_data(write(plain, content)) == expected
    assert refused(write(plain, b"\n\n")).endswith("q.jsonl contains no questions")
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
    with pytest.raises(InputFileError, match=r"cannot read .*q\.jsonl\.gz: Compressed file ended"):
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


def test_the_first_problem_is_told_with_its_line(tmp_path):
    rows = [ROW if number % 2 else {**ROW, "question": number} for number in range(1, 21)]
    path = write_lines(tmp_path / "q.jsonl", *rows)
    assert refused(path) == f"{path}, line 2: question must be a string, got 2"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "invalid JSON: EOF while parsing an object at character 1, in '{'"),
        ('{"question": NaN}', "invalid JSON: expected value at character 14"),
        ("[" * 100_000, "invalid JSON: "),
        ("null", "must be a JSON object, {…}, got None"),
        ("x" * 1_000_000, "invalid JSON"),
    ],
)
def test_lines_that_are_no_objects(tmp_path, line, words):
    message = refused(write_lines(tmp_path / "q.jsonl", ROW, line))
    assert ", line 2: " in message
    assert words in message
    assert len(message) < 500


@pytest.mark.parametrize("encoding", ["latin1", "utf-16"])
def test_other_encodings_are_refused_with_the_line(tmp_path, encoding):
    path = write(tmp_path / "q.jsonl", '{"question": "Où?", "text": "Là."}\n'.encode(encoding))
    message = refused(path)
    assert ", line 1: is not UTF-8 text: byte " in message
    assert f"iconv -f {encoding} -t utf-8" in message
