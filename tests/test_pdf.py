"""PDF files, read page by page."""

import logging
import sys

import pytest

from oprag import InputFileError, MissingExtraError
from oprag.pdf import is_pdf, pdf_pages
from tests.pdfs import encrypted, pdf

PAGES = (
    "The harbour of Aldmere has nine cranes.\nShips wait outside when the wind blows from the west.",
    "Bread rises for three hours in a cool cellar before it is baked.\nThe crust (as bakers say) must sing.",
    "",
    "A comet crossed the sky in March.\nEach crane of the harbour lifts forty tons.",
)


def test_the_text_of_each_page():
    assert pdf_pages("a.pdf", pdf(*PAGES), "cli") == list(PAGES)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.pdf", b"", True),
        ("A.PDF", b"text", True),
        ("-", b"%PDF-1.7\n", True),
        ("a.txt", b"%PDF-1.7\n", True),
        ("a.txt", b"A file begins with %PDF-", False),
    ],
)
def test_a_pdf_is_known_by_its_name_or_its_first_bytes(name, data, expected):
    assert is_pdf(name, data) is expected


def test_a_file_that_opens_without_a_password_is_read():
    assert pdf_pages("a.pdf", encrypted(pdf(*PAGES), user=""), "cli") == list(PAGES)


def test_any_damage_is_told_or_harmless():
    whole = pdf(*PAGES)
    told = 0
    for place in range(0, len(whole), 3):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        try:
            assert all(isinstance(page, str) for page in pdf_pages("a.pdf", bytes(broken), "cli"))
        except InputFileError as error:
            assert "a.pdf" in str(error)  # noqa: PT017
            told += 1
    assert told


def test_the_librarys_logger_is_left_as_it_was(caplog):
    logger = logging.getLogger("pypdf")
    before = logger.level
    pdf_pages("a.pdf", pdf(*PAGES), "cli")
    with pytest.raises(InputFileError):
        pdf_pages("a.pdf", b"", "cli")
    assert logger.level == before
    assert caplog.records == []


def test_a_list_of_more_than_a_hundred_thousand_things_is_read():
    # As the tables of tagged reports have it.
    long = pdf(*PAGES).replace(b"/Root 1 0 R", b"/Root 1 0 R /Marks [" + b"0 " * 100_001 + b"]")
    assert pdf_pages("a.pdf", long, "cli") == list(PAGES)


@pytest.mark.parametrize("extra", ["cli", "compare"])
def test_the_extra_that_is_missing_is_the_callers(monkeypatch, extra):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(MissingExtraError, match=rf"Reading a PDF file needs .* 'oprag\[{extra}\]'"):
        pdf_pages("a.pdf", pdf(*PAGES), extra)
