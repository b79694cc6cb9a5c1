"""Indexes kept in a folder: found again, made anew where they cannot be used, and never in the way of an answer."""

import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
from typer.testing import CliRunner

from oprag import DocumentIndex, IndexFileWarning, OptionError
from oprag.cli.app import app
from oprag.cli.index_cache import cached_index, cached_pages, clear_cache, index_key
from oprag.cli.options import Indexing
from oprag.index.splitting import Split
from tests.helpers import WordEmbedder, prose, texts, word_offsets

TEXT = prose(300, seed=8)
SOURCES: dict[str, str | list[str]] = {"book": TEXT}


class Maker:
    """Makes an index, and counts how often."""

    def __init__(self):
        self.made = 0

    def __call__(self):
        self.made += 1
        return DocumentIndex.from_texts({"book": TEXT}, WordEmbedder(), word_offsets, chunk_size=20)


def test_an_index_is_made_once(tmp_path):
    make = Maker()
    first = cached_index(tmp_path / "new" / "folder", "key", SOURCES, WordEmbedder(), make)
    second = cached_index(tmp_path / "new" / "folder", "key", SOURCES, WordEmbedder(), make)
    assert make.made == 1
    assert texts(first.chunks) == texts(second.chunks)
    assert first.search("ocean5", 9, "hybrid") == second.search("ocean5", 9, "hybrid")


ODD_TEXTS = [TEXT, "", "  \n ", "\n\none\n\n two  three\n\n\n", "x" * 200, "half \ud83d of a pair \r\n" * 9, " lead"]


@pytest.mark.parametrize("splitter", ["tokens", "words", "recursive"])
@pytest.mark.parametrize("overlap", [0, 3])
def test_an_index_is_found_again_whatever_its_texts_and_however_they_are_split(tmp_path, splitter, overlap):
    sources: dict[str, str | list[str]] = {f"text {number}": text for number, text in enumerate(ODD_TEXTS)}
    sources |= {"pages": ODD_TEXTS, "no page": [], "empty pages": ["", " "]}
    made = []

    def make():
        made.append(1)
        return DocumentIndex.from_texts(
            sources, WordEmbedder(), word_offsets, splitter=splitter, chunk_size=7, chunk_overlap=overlap
        )

    first, second = (cached_index(tmp_path, "key", sources, WordEmbedder(), make) for _ in range(2))
    assert texts(first.chunks) == texts(second.chunks)
    assert len(made) == 1


GIVEN: dict[str, Any] = {"sources": {"a": "text"}, "split": Split("tokens", 128, 0), "tokenizer": "t", "embedder": "e"}


@pytest.mark.parametrize(
    "change",
    [
        {"sources": {"a": "other"}},
        {"sources": {"b": "text"}},
        {"sources": {"a": ["text"]}},
        {"sources": {"a": "text", "b": "text"}},
        {"split": Split("tokens", 128, 1)},
        {"split": Split("tokens", 127, 0)},
        {"split": Split("recursive", 128, 0)},
        {"tokenizer": "other"},
        {"embedder": "other"},
        {"embedder": None},
    ],
)
def test_everything_that_an_index_depends_on_is_in_its_key(change):
    assert index_key(**GIVEN) == index_key(**GIVEN)
    assert index_key(**{**GIVEN, **change}) != index_key(**GIVEN)


def test_a_key_can_be_made_of_any_text():
    odd: dict[str, Any] = {"sources": {"half \ud83d": "of \ud83d a pair \x00"}}
    assert index_key(**{**GIVEN, **odd}).isalnum()


@pytest.mark.parametrize("content", [b"", b"damaged", b"PK\x03\x04" + b"\x00" * 50])
def test_a_damaged_file_is_told_and_replaced(tmp_path, content):
    make = Maker()
    cached_index(tmp_path, "key", SOURCES, WordEmbedder(), make)
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    with pytest.warns(IndexFileWarning, match="rebuilding it.*corrupt") as caught:
        cached_index(tmp_path, "key", SOURCES, WordEmbedder(), make)
    assert str(path) in str(caught[0].message)
    assert len(cached_index(tmp_path, "key", SOURCES, WordEmbedder(), make)) == 15
    assert make.made == 2


def test_pages_are_read_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return ["one", "", "half \ud83d"]

    for _ in range(2):
        assert cached_pages(tmp_path, b"%PDF-", make) == ["one", "", "half \ud83d"]
    assert cached_pages(tmp_path, b"%PDF-other", make)
    assert len(made) == len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"pages": 5}', b'{"pages": []}', b"\xff"])
def test_damaged_pages_are_told_and_replaced(tmp_path, content):
    cached_pages(tmp_path, b"%PDF-", lambda: ["text"])
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    with pytest.warns(IndexFileWarning, match="rebuilding it.*corrupt"):
        assert cached_pages(tmp_path, b"%PDF-", lambda: ["text"]) == ["text"]
    assert json.loads(path.read_bytes())["pages"] == ["text"]


def test_an_index_of_another_embedder_is_told_and_replaced(tmp_path):
    make = Maker()
    cached_index(tmp_path, "key", SOURCES, WordEmbedder(), make)
    with pytest.warns(IndexFileWarning, match="created with the embedder 'words', got 'other'"):
        cached_index(tmp_path, "key", SOURCES, WordEmbedder(name="other"), make)
    assert make.made == 2


@pytest.mark.parametrize("others", [{"book": [TEXT]}, {"book": "Other."}, {"other": TEXT}])
def test_an_index_of_other_files_is_told_and_replaced(tmp_path, others):
    cached_index(tmp_path, "key", SOURCES, WordEmbedder(), Maker())
    with pytest.warns(IndexFileWarning, match="its chunks do not match the text of the files"):
        cached_index(tmp_path, "key", others, WordEmbedder(), Maker())


@pytest.mark.filterwarnings("ignore:cannot use the cached file")
def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    place = tmp_path / "file"
    place.write_text("no folder")
    make = Maker()
    for folder in (place, place / "inside"):
        with pytest.warns(IndexFileWarning, match="cannot write to the cache folder"):
            assert len(cached_index(folder, "key", SOURCES, WordEmbedder(), make)) == 15
    assert place.read_text() == "no folder"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.warns(IndexFileWarning, match="cannot write to the cache folder .*ermission"):
        assert len(cached_index(tmp_path, "key", SOURCES, WordEmbedder(), Maker())) == 15


def test_many_at_once_leave_one_whole_file(tmp_path):
    start = threading.Barrier(8)
    found = []

    def work():
        start.wait()
        found.append(len(cached_index(tmp_path, "key", SOURCES, WordEmbedder(), Maker())))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [15] * 8
    (path,) = tmp_path.iterdir()
    assert len(DocumentIndex.load(path, WordEmbedder())) == 15


# --- on the command line ---


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def run(*arguments):
    result = CliRunner().invoke(app, ["context", *map(str, arguments), "--chunk-size", "30", "--k", "3"])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("search", ["dense", "bm25", "hybrid"])
def test_a_second_question_splits_and_embeds_nothing(book, tmp_path, monkeypatch, search):
    arguments = (book, TEXT.split()[50], "--index-cache", tmp_path / "kept", "--search", search, "--json")
    first = run(*arguments)

    def refuse(*_, **__):
        raise AssertionError("made again")

    monkeypatch.setattr(DocumentIndex, "from_texts", refuse)
    second = run(*arguments)
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert first.stderr == second.stderr == ""
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_a_changed_file_is_another_index(book, tmp_path):
    run(book, "ocean", "--index-cache", tmp_path / "kept")
    book.write_text(TEXT + " quasar", encoding="utf-8")
    assert "quasar" in run(book, "quasar", "--index-cache", tmp_path / "kept", "--search", "bm25").stdout
    assert "quasar" in run(book, "quasar", "--index-cache", tmp_path / "kept", "--raw", "--k", "99").stdout


def test_a_folder_that_cannot_be_used_is_a_warning_and_the_question_is_answered(book, tmp_path):
    result = run(book, TEXT.split()[50], "--index-cache", book)
    assert "Warning: " in result.stderr
    assert "cannot write to the cache folder" in result.stderr
    assert result.stdout == run(book, TEXT.split()[50]).stdout


def test_an_empty_name_is_refused(book):
    result = CliRunner().invoke(app, ["context", str(book), "ocean", "--index-cache", " "])
    assert result.exit_code == 2
    assert "index_cache must not be empty" in result.stderr


@pytest.mark.process
def test_two_processes_at_once_both_answer(book, tmp_path):
    command = [sys.executable, "-c", "from oprag.cli import main; main()", "context", str(book), "ocean", "--raw"]
    processes = [
        subprocess.Popen(
            [*command, "--index-cache", str(tmp_path / "kept")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    results = [process.communicate(timeout=120) for process in processes]
    assert results[0] == results[1]
    assert results[0][0].strip()
    assert results[0][1] == b""
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_clearing_needs_a_folder_and_takes_a_missing_one(tmp_path):
    with pytest.raises(OptionError, match="--clear-index-cache requires --index-cache"):
        Indexing(clear_index_cache=True)
    clear_cache(tmp_path / "missing")
    (tmp_path / f"{'0' * 32}.oprag-pages").mkdir()
    with pytest.raises(OptionError, match=r"cannot delete the cached files in .*delete them manually"):
        clear_cache(tmp_path)
