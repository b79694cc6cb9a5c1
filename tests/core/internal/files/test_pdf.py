"""PDF files, read page by page."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from oprag._internal.files import pdf_child
from oprag._internal.files.pdf import is_pdf, pdf_pages
from oprag.errors import InputFileError, MissingExtraError
from tests.pdfs import pdf

PAGES = (
    "The harbour of Aldmere has nine cranes.\nShips wait outside when the wind blows from the west.",
    "Bread rises for three hours in a cool cellar before it is baked.\nThe crust (as bakers say) must sing.",
    "",
    "A comet crossed the sky in March.\nEach crane of the harbour lifts forty tons.",
)


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


def test_any_damage_is_told_or_harmless():
    # In this process: one for each of 500 files would take minutes.
    whole = pdf(*PAGES)
    limits = {"pdf_pages": 10, "pdf_characters": 10_000}
    problems = set()
    for place in range(0, len(whole), 3):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        reply = pdf_child.read(bytes(broken), limits)
        assert all(isinstance(page, str) for page in reply.get("pages", ()))
        problems.add(reply.get("problem"))
    assert problems == {None, "damaged"}


@pytest.mark.parametrize("data", [b"", b"no PDF", pdf(*PAGES)[:200]])
def test_the_reason_why_a_file_cannot_be_read_is_told_in_words(data):
    with pytest.raises(InputFileError, match=r"a\.pdf is not a PDF file, or is corrupt \([^()]+ [^()]+\); repair it"):
        pdf_pages("a.pdf", data, "cli")


def test_a_list_of_more_than_a_hundred_thousand_things_is_read():
    # As the tables of tagged reports have it.
    long = pdf(*PAGES).replace(b"/Root 1 0 R", b"/Root 1 0 R /Marks [" + b"0 " * 100_001 + b"]")
    assert pdf_pages("a.pdf", long, "cli") == list(PAGES)


@pytest.mark.parametrize(
    ("variable", "number", "message"),
    [
        (
            "OPRAG_MAX_PDF_PAGES",
            "3",
            r"exceeds the limit of 3 pages \(it has 4\); if you trust the file",
        ),
        ("OPRAG_MAX_PDF_CHARACTERS", "100", "exceeds the limit of 100 characters; if you trust the file"),
    ],
)
def test_a_variable_sets_a_limit(monkeypatch, variable, number, message):
    monkeypatch.setenv(variable, number)
    with pytest.raises(InputFileError, match=rf"a\.pdf {message}.* {variable}") as raised:
        pdf_pages("a.pdf", pdf(*PAGES), "cli")
    assert raised.value.value == "a.pdf"
    monkeypatch.setenv(variable, "1_000")
    assert pdf_pages("a.pdf", pdf(*PAGES), "cli") == list(PAGES)


def test_a_frozen_program_reads_in_its_own_process(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr("subprocess.run", None)
    assert pdf_pages("a.pdf", pdf(*PAGES), "cli") == list(PAGES)


def test_nothing_is_imported_from_the_current_folder(monkeypatch, tmp_path):
    for name in ("json", "pypdf", "zlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    assert pdf_pages("a.pdf", pdf(*PAGES), "cli") == list(PAGES)


@pytest.mark.parametrize("extra", ["cli", "compare"])
def test_the_extra_that_is_missing_is_the_callers(monkeypatch, extra):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(MissingExtraError, match=rf"Reading a PDF file requires .* 'oprag\[{extra}\]'"):
        pdf_pages("a.pdf", pdf(*PAGES), extra)


@pytest.mark.parametrize("executable", ["", None, "/usr/sbin/uwsgi"])
def test_a_program_with_python_in_it_uses_the_interpreter_of_its_environment(monkeypatch, executable):
    started = Mock(side_effect=subprocess.run)
    monkeypatch.setattr(subprocess, "run", started)
    monkeypatch.setattr(sys, "executable", executable)
    assert pdf_pages("a.pdf", pdf(*PAGES), "cli") == list(PAGES)
    assert started.call_args.args[0][0] == str(Path(sys.exec_prefix, "bin", "python3"))
