import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import Document as NodeDocument

from oprag import SourceFolder
from oprag.errors import OptionError, SourceReadError, SourceWarning
from oprag.positions.source_reader import SourceReader
from tests.pdfs import pdf

LINKS = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    inside = tmp_path / "docs"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.txt").write_text("äöü {x}\n", encoding="utf-8")
    (inside / "deep" / "b.txt").write_text("deep", encoding="utf-8")
    return inside


def test_a_file_of_the_folder(folder):
    read = SourceReader(folder)
    assert read("a.txt") == "äöü {x}\n"
    assert read("deep/b.txt") == "deep"
    assert read("deep/../a.txt") == "äöü {x}\n"
    assert read("./a.txt") == "äöü {x}\n"
    assert read(str(folder / "a.txt")) == "äöü {x}\n"


def test_a_name_that_begins_with_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    read = SourceReader("docs")
    assert read("docs/a.txt") == read("a.txt") == "äöü {x}\n"
    (folder / "docs").mkdir()
    (folder / "docs" / "a.txt").write_text("nearer", encoding="utf-8")
    assert read("docs/a.txt") == "nearer"


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt",
        "deep/../../secret.txt",
        "..",
        "../docs-old/x",
        "/etc/passwd",
        "//etc/passwd",
        "../docs/../secret.txt",
        "../docs2/x.txt",  # a folder whose name begins alike
        "{parent}/secret.txt",
        pytest.param("link to a file", marks=LINKS),
        pytest.param("link to a folder/secret.txt", marks=LINKS),
    ],
)
def test_nothing_outside_of_the_folder_is_read(folder, name):
    beside = folder.parent / "docs2"
    beside.mkdir()
    (beside / "x.txt").write_text("secret", encoding="utf-8")
    for kind, target in (("file", folder.parent / "secret.txt"), ("folder", folder.parent)):
        if f"link to a {kind}" in name:
            (folder / f"link to a {kind}").symlink_to(target)
    name = name.format(parent=folder.parent)
    with pytest.raises(SourceReadError, match="is outside") as caught:
        SourceReader(folder)(name)
    assert caught.value.value == name


@LINKS
def test_links_inside_of_the_folder_work(folder):
    (folder / "link").symlink_to(folder / "a.txt")
    (folder.parent / "way").symlink_to(folder)
    for where in (folder, folder.parent / "way"):
        read = SourceReader(where)
        assert read("link") == "äöü {x}\n"


@LINKS
def test_a_circle_of_links_is_no_file(folder):
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    read = SourceReader(folder)
    with pytest.raises(SourceReadError, match="'one'"):
        read("one")


@pytest.mark.parametrize(
    "name",
    ["lost.txt", "", ".", "deep", "a.txt/x", "x\0y", "\ud800", "a" * 5_000, "a/" * 3_000, "~/a.txt", "a.TXT\n", "*"],
)
def test_what_is_no_file_is_named(folder, name):
    read = SourceReader(folder)
    with pytest.raises(SourceReadError) as caught:
        read(name)
    assert caught.value.value == name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_no_file(folder):
    os.mkfifo(folder / "pipe")
    read = SourceReader(folder)
    with pytest.raises(SourceReadError, match="not found in"):
        read("pipe")


@pytest.mark.parametrize("data", [b"\xff\xfea\x00", b"\x80", "ä".encode("latin-1")])
def test_what_is_not_utf_8_is_refused(folder, data):
    (folder / "bad.txt").write_bytes(data)
    with pytest.raises(SourceReadError, match="not UTF-8"):
        SourceReader(folder)("bad.txt")


@pytest.mark.parametrize("name", ["a.TXT", "a.text", "a.md", "a.Markdown", "a.rst"])
def test_text_files_have_these_endings_and_perhaps_a_mark_at_the_start(folder, name):
    for mark in (b"", b"\xef\xbb\xbf"):
        (folder / name).write_bytes(mark + b"Read.")
        assert SourceReader(folder)(name) == "Read."


def test_a_pdf_is_read_page_by_page(folder):
    (folder / "a.pdf").write_bytes(pdf("First page.", "Second page."))
    (folder / "bad.pdf").write_bytes(b"no PDF")
    read = SourceReader(folder)
    assert [part.strip() for part in read("a.pdf").split("\n\n")] == ["First page.", "Second page."]
    with pytest.raises(SourceReadError, match=r"source 'bad\.pdf'"):
        read("bad.pdf")


def test_other_endings_and_sizes_can_be_asked_for(folder):
    (folder / "a.log").write_text("A log.", encoding="utf-8")
    with pytest.raises(SourceReadError, match=r"must end with one of \.txt, .*SourceFolder\(folder, suffixes="):
        SourceFolder(folder)("a.log")
    read = SourceReader(SourceFolder(folder, suffixes=[".LOG"], max_bytes=6))
    assert read("a.log") == "A log."
    with pytest.raises(
        SourceReadError, match=r"has 6 bytes, more than the limit of 5; .*SourceFolder\(folder, max_bytes="
    ):
        SourceFolder(folder, suffixes=[".log"], max_bytes=5)("a.log")


@pytest.mark.parametrize(
    "wrong", [{"suffixes": ".txt"}, {"suffixes": []}, {"suffixes": ["txt"]}, {"suffixes": [5]}, {"max_bytes": 0}]
)
def test_limits_that_mean_nothing_are_refused(folder, wrong: dict[str, Any]):
    with pytest.raises(OptionError):
        SourceFolder(folder, **wrong)


def test_paths_and_numbers_name_the_texts_of_a_mapping_as_they_do_in_metadata():
    texts: Any = {Path("a/b.txt"): "B", 5: "Five", "a": "A", "empty": ""}
    for read in (SourceReader(texts), SourceReader(MappingProxyType(texts))):
        assert [read(name) for name in ("a/b.txt", "5", "a", "empty")] == ["B", "Five", "A", ""]


@pytest.mark.parametrize(("value", "what"), [(None, "nothing"), (b"bytes", "bytes"), (5, "int")])
def test_a_text_is_a_string(value, what):
    given: Any = {"a": value}
    for read in (SourceReader(given), SourceReader(given.get)):
        with pytest.raises(SourceReadError, match=f"must return the text of source 'a', got {what}$"):
            read("a")
    assert SourceReader(str.upper)("a") == "A"


def failing(error):
    def read(name):
        raise error

    return SourceReader(read)


def test_the_error_of_a_function_is_the_cause():
    error = PermissionError("no key sk-0123456789abcdefXY")
    with pytest.raises(SourceReadError, match=r"failed on source 'a': PermissionError: no key \*\*\*$") as caught:
        failing(error)("a")
    assert caught.value.__cause__ is error
    assert caught.value.value == "a"


@pytest.mark.parametrize(
    "error", [OptionError("wrong", 1), SourceReadError("missing", "a"), SourceWarning("odd"), KeyboardInterrupt()]
)
def test_errors_that_are_ours_or_stop_the_program_come_through(error):
    with pytest.raises(type(error)) as caught:
        failing(error)("a")
    assert caught.value is error


def test_a_name_that_is_longer_than_any_path_is_refused_unread(folder, monkeypatch):
    resolved: list[int] = []

    def resolve(path):
        resolved.append(len(str(path)))
        return path

    monkeypatch.setattr(Path, "resolve", resolve)
    with pytest.raises(SourceReadError, match="cannot be read: File name too long") as caught:
        SourceReader(folder)("a/" * 400_000)
    assert max(resolved) < 10_000
    assert len(str(caught.value)) < 400


NO_DOCUMENTS = "must be a list of LangChain or LlamaIndex documents"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *((one, "must be an existing folder") for one in ("no-such-folder", "", Path("a.txt"))),
        *((one, "must be a folder, a mapping, a function") for one in (5, b"docs")),
        *(([one], NO_DOCUMENTS) for one in ("a.txt", {"page_content": "a"}, None, Path("a.txt"))),
        ([Document("Text.")], "does not name its source"),
    ],
    ids=str,
)
def test_what_reads_nothing_is_refused(given, message, folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(OptionError, match=message):
        SourceReader(given)


def test_a_file_is_read_once_until_it_changes(folder, monkeypatch):
    from oprag._internal.files import pdf as module
    from oprag.positions import source_reader

    parsed: list[str] = []
    pages = module.pdf_pages

    def counted(name, data, extra):
        parsed.append(name)
        return pages(name, data, extra)

    monkeypatch.setattr(module, "pdf_pages", counted)
    path = folder / "a.pdf"
    path.write_bytes(pdf("One.", "Two."))
    # Every reader of the folder, also of a part of it, and concurrent ones.
    readers = [SourceReader(folder), SourceReader(SourceFolder(folder)), SourceReader(folder.parent)]
    names = ["a.pdf", "a.pdf", "docs/a.pdf"]
    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(lambda number: readers[number](names[number]), range(3)))) == 1
    assert len(parsed) == 1
    path.write_bytes(pdf("Another page."))
    assert "Another page." in readers[0]("a.pdf")
    assert len(parsed) == 2
    # Of those that do not fit, the least recently used is read again.
    monkeypatch.setattr(source_reader, "_MAX_PDFS", 2)
    for name in ("b.pdf", "c.pdf"):
        (folder / name).write_bytes(pdf(name))
    for name in ("b.pdf", "a.pdf", "c.pdf", "a.pdf", "b.pdf"):
        assert readers[0](name)
    assert parsed[2:] == ["b.pdf", "c.pdf", "b.pdf"]
    path.unlink()
    with pytest.raises(SourceReadError, match="not found"):
        readers[0]("a.pdf")


def test_a_cached_text_passes_the_limits_of_each_folder(folder):
    assert SourceReader(folder)("a.txt")
    with pytest.raises(SourceReadError, match="more than the limit of 3"):
        SourceFolder(folder, max_bytes=3)("a.txt")
    with pytest.raises(SourceReadError, match="must end with one of"):
        SourceFolder(folder, suffixes=[".md"])("a.txt")
    with pytest.raises(SourceReadError, match="is outside"):
        SourceFolder(folder / "deep")("../a.txt")


def test_the_documents_of_a_loader():
    pages = [Document(f"Page {number}.", metadata={"source": "a.pdf", "page": number}) for number in range(2)]
    read = SourceReader([*pages, Document("Other.", metadata={"file_path": "b.html"})])
    assert (read("a.pdf"), read("b.html")) == ("Page 0.\n\nPage 1.", "Other.")
    nodes = [NodeDocument(text="Named.", metadata={"file_name": "c.docx"}), NodeDocument(text="Of an id.", id_="d1")]
    read = SourceReader(nodes)
    assert (read("c.docx"), read("d1")) == ("Named.", "Of an id.")
    with pytest.raises(SourceReadError, match=r"text of source 'c\.html', got nothing"):
        read("c.html")
