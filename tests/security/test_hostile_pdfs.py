"""PDF files that somebody else wrote: a few kilobytes must not take all time or memory, nor change this process."""

import contextlib
import logging
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from oprag._internal.files.pdf import pdf_pages
from oprag.errors import InputFileError
from tests.pdfs import one_page, pdf, stream

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of a process of Unix")


def nested_forms(text):
    """Ten forms, each of which draws the next one ten times: the text is there ten to the tenth times."""
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /F1 3 0 R >> %s >>"
    forms = [stream(b"/X Do " * 10, form % (b"/XObject << /X %d 0 R >>" % (7 + level))) for level in range(9)]
    return one_page(b"/X Do " * 10, *forms, stream(text, form % b""), resources=b"/XObject << /X 6 0 R >>")


def many_fonts(count):
    """Fonts of one page, which share one short table; pypdf makes 65,536 entries of it for each."""
    table = b"1 begincodespacerange <0000> <FFFF> endcodespacerange\n1 beginbfrange\n<0000> <FFFF> <0041>\nendbfrange"
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /A /Encoding /Identity-H /ToUnicode 7 0 R >>"
    names = b"/Font << " + b" ".join(b"/F%d 6 0 R" % number for number in range(count)) + b" >>"
    return one_page(b"BT /F1 12 Tf <0041> Tj ET", font, stream(table), resources=names)


def many_pages(depth):
    """Nodes of the page tree that list the next one ten times."""
    kids = [b"%d 0 R " % (7 + level) * 10 for level in range(depth - 1)] + [b"4 0 R " * 10]
    counts = [10 ** (depth - level) for level in range(depth)]
    nodes = [b"<< /Type /Pages /Kids [%s] /Count %d >>" % node for node in zip(kids, counts, strict=True)]
    return one_page(b"", *nodes, root=6)


@pytest.mark.parametrize(
    ("data", "limits", "message"),
    [
        pytest.param(
            nested_forms(b"BT /F1 12 Tf (ha) Tj ET"),
            {"SECONDS": 2},
            "exceeds the limit of 2 seconds of CPU time",
            id="time",
            marks=pytest.mark.process,
        ),
        pytest.param(
            many_fonts(2_000),
            {"SECONDS": 20, "MEGABYTES": 300},
            "exceeds the limit of 300 megabytes of memory",
            id="memory",
            marks=pytest.mark.process,
        ),
        pytest.param(many_pages(4), {"PAGES": 5_000}, r"exceeds the limit of 5,000 pages \(it has", id="pages"),
    ],
)
def test_a_small_file_that_takes_too_much_is_refused(monkeypatch, data, limits, message):
    assert len(data) < 100_000
    for name, number in limits.items():
        monkeypatch.setenv(f"OPRAG_MAX_PDF_{name}", str(number))
    with pytest.raises(InputFileError, match=f"^a.pdf {message}"):
        pdf_pages("a.pdf", data, "cli")


@pytest.mark.process
def test_threads_leave_warnings_and_loggers_as_they_were():
    filters, level = list(warnings.filters), logging.getLogger("pypdf").level
    files = [pdf("The harbour has nine cranes."), b"%PDF-1.4 nothing", pdf("A comet crossed the sky.")[:-99]] * 3

    def read(data):
        with contextlib.suppress(InputFileError):
            pdf_pages("a.pdf", data, "cli")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, files))
    assert (list(warnings.filters), logging.getLogger("pypdf").level) == (filters, level)


def test_a_program_without_a_main_guard_reads_a_file_once(tmp_path):
    # Some ways to start processes run the main program again in each of them.
    (tmp_path / "a.pdf").write_bytes(pdf("The harbour has nine cranes."))
    program = (
        "from oprag._internal.files.pdf import pdf_pages; print(pdf_pages('a.pdf', open('a.pdf', 'rb').read(), 'cli'))"
    )
    (tmp_path / "program.py").write_text(program)
    for command in (["-c", program], ["program.py"]):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("['The harbour has nine cranes.']\n", "")
