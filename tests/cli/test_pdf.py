"""PDF files on the command line, read page by page."""

import pytest

from tests.cli import commands
from tests.cli.commands import check_refusal, run
from tests.pdfs import encrypted, pdf

PAGES = (
    "The harbour of Aldmere has nine cranes.\nShips wait outside when the wind blows from the west.",
    "Bread rises for three hours in a cool cellar before it is baked.\nThe crust (as bakers say) must sing.",
    "",
    "A comet crossed the sky in March.\nEach crane of the harbour lifts forty tons.",
)


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.pdf"
    path.write_bytes(pdf(*PAGES))
    return path


def json_of(*arguments, **kwargs):
    return commands.json_of("ask", *arguments, **kwargs)


# Pages


@pytest.mark.parametrize("splitter", ["tokens", "recursive"])
def test_chunks_say_their_page_and_their_characters_on_it(book, splitter):
    data = json_of(book, "crane", "--chunk-size", 8, "--chunk-overlap", 0, "--splitter", splitter, "--no-stitch")
    assert [one["position"] for one in data["kept"]] == list(range(len(data["kept"])))
    for passage in data["passages"]:
        (span,) = passage["spans"]
        assert PAGES[span["page"] - 1][span["start"] : span["end"]] == passage["text"]
    pages = [passage["spans"][0]["page"] for passage in data["passages"]]
    assert pages == sorted(pages)
    assert set(pages) == {1, 2, 4}


def test_a_passage_over_two_pages_says_where_it_begins_and_ends(book):
    assert "page 1, character 0, to page 4, character " in run("ask", book, "crane").stdout


def test_a_pdf_among_other_files_and_on_standard_input(book, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("A crane in a text file.")
    data = json_of(book, other, "-", "crane", "--source-ranking", "name", input=pdf("A crane by standard input."))
    assert [passage["source"] for passage in data["passages"]] == [str(book), str(other), "<stdin>"]
    assert [passage["spans"][0]["page"] for passage in data["passages"]] == [1, None, 1]


# What cannot be read


def check_unreadable(path, *words):
    check_refusal(run("ask", path, "crane"), str(path), *words)


@pytest.mark.parametrize("pages", [("",), ("", " ", "")])
def test_scans_need_ocr(tmp_path, pages):
    path = tmp_path / "scan.pdf"
    path.write_bytes(pdf(*pages))
    check_unreadable(path, "no text", f"({len(pages)})", "ocrmypdf")


def test_a_file_with_a_password_must_be_decrypted(tmp_path):
    path = tmp_path / "secret.pdf"
    path.write_bytes(encrypted(pdf(*PAGES), user="secret"))
    check_unreadable(path, "encrypted", "qpdf --decrypt")
