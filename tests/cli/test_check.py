"""`oprag check`, run as a user runs it."""

import gzip
import json
import os

import pytest

from tests.cli import commands
from tests.helpers import prose

FINE, INVALID_INPUT, PROBLEMS_FOUND = 0, 2, 3
TEXT = prose(900, seed=21)
PIECES = [TEXT[start : start + 200] for start in range(0, len(TEXT) - 40, 160)]


def run(*arguments):
    result = commands.run("check", *arguments, env={"COLUMNS": "200"})
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert "Traceback" not in result.output
    return result


def told(*arguments, code):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.stdout if code != INVALID_INPUT else result.stderr


def rows(source="book.txt", **metadata):
    return [{"id": str(n), "text": text, "metadata": {"source": source, **metadata}} for n, text in enumerate(PIECES)]


def with_offsets(source="book.txt"):
    return [{**row, "metadata": {**row["metadata"], "start_index": TEXT.index(row["text"])}} for row in rows(source)]


def write(path, documents, form="lines"):
    text = json.dumps(documents) if form == "list" else "\n".join(map(json.dumps, documents))
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# Files.


@pytest.mark.parametrize(
    ("name", "form"),
    [("docs.jsonl", "lines"), ("docs.json", "list"), ("docs.json", "lines"), ("docs.jsonl.gz", "lines")],
)
def test_documents_as_json(tmp_path, name, form):
    path = write(tmp_path / name, with_offsets(), form)
    output = told(path, code=FINE)
    assert output.startswith(f"chunks: {len(PIECES)} chunks from 1 source; no problems found\n")
    assert "kind 3, offset: start_index" in output


# Options.


def test_json_has_a_check_for_each_path(tmp_path):
    fine, amiss = write(tmp_path / "fine.jsonl", with_offsets()), write(tmp_path / "amiss.jsonl", rows())
    checks = json.loads(told(fine, amiss, "--json", code=PROBLEMS_FOUND))["checks"]
    assert [(check["path"], check["ok"]) for check in checks] == [(str(fine), True), (str(amiss), False)]
    assert checks[1]["sources"][0]["kind"] == "none"
    output = told(fine, amiss, code=PROBLEMS_FOUND)
    assert f"── {fine}\n" in output
    assert f"── {amiss}\n" in output
    assert "    documents = stamp_positions(documents)  # and fill a new store\n" in output


def test_texts_of_the_sources(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "book.txt").write_text(TEXT, encoding="utf-8")
    path = write(tmp_path / "docs.jsonl", rows())
    assert "kind 3, offset: text of the source" in told(path, "--read-source", texts, code=FINE)
    (texts / "book.txt").unlink()
    assert "the text of 1 source cannot be read, such as 'book.txt'" in told(
        path, "--read-source", texts, code=PROBLEMS_FOUND
    )
    assert "read_source must be an existing folder" in told(path, "--read-source", texts / "none", code=INVALID_INPUT)


def test_keys_of_metadata(tmp_path):
    documents = [{"text": text, "metadata": {"book": "b", "verse": n}} for n, text in enumerate("abc")]
    path = write(tmp_path / "docs.jsonl", documents)
    assert "do not name their source" in told(path, code=PROBLEMS_FOUND)
    assert "kind 0, position_key: verse" in told(
        path, "--source-key", "title,book", "--position-key", "verse", code=FINE
    )
    result = run(path, "--source-key", "bok")
    assert "Warning: source_key='bok': no chunk has this metadata key" in result.stderr


# What others may have put there.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no JSON", "line 1: invalid JSON"),
        ('{"text": 5}', "line 1: text or page_content must be a string, got 5"),
        ('{"text": "a", "metadata": [1]}', "metadata must be an object, got [1]"),
        ("[" * 100_000, "recursion limit"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, message):
    path = tmp_path / "docs.jsonl"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert message in told(path, code=INVALID_INPUT)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in told(tmp_path / "pipe", code=INVALID_INPUT)


def test_a_store_is_checked_in_python(tmp_path):
    advice = "check a store or an index in Python: check_positions(store)"
    assert f"{tmp_path} is a folder; oprag check reads chunks as JSON or JSON lines; {advice}" in told(
        tmp_path, code=INVALID_INPUT
    )
    for content in (b"SQLite format 3\x00\xff", b"PK\x03\x04", b"\x80\x05."):
        (tmp_path / "store").write_bytes(content)
        assert advice in told(tmp_path / "store", code=INVALID_INPUT)
