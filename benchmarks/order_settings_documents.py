"""Documents of `benchmarks.orders_of_documents`: files of a folder, and files made of the language reference."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from pydoc_data.topics import topics

from tests.pdfs import pdf

__all__ = ["Material", "MissingError", "pages"]

MARKDOWN = Path(__file__).parent.parent / "docs" / "reference"
_WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
_CONTAINER = """<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
_PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf" version="2.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">1</dc:identifier></metadata>"""


class MissingError(Exception):
    """A document is not in the folder."""


class Material:
    """Files by name.

    Args:
        folder: The real documents, at any depth; files may end in `.gz`.
        written: An empty folder for copies and generated files.
    """

    def __init__(self, folder: Path, written: Path) -> None:
        self._folder = folder
        self._written = written

    def path(self, name: str) -> Path:
        """A copy of the file; `name` is the end of its path."""
        target = self._written / name.replace("/", "_")
        if not target.exists():
            target.write_bytes(_made(name) or self._found(name))
        return target

    @cached_property
    def _files(self) -> dict[str, Path]:
        return {path.as_posix().removesuffix(".gz"): path for path in sorted(self._folder.rglob("*"))}

    def _found(self, name: str) -> bytes:
        for path, file in self._files.items():
            if path.endswith(f"/{name}"):
                return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        raise MissingError(f"{name} is not in {self._folder}")


def pages(text: str, lines: int) -> list[str]:
    """Split a text into pages of a number of lines."""
    every = text.splitlines()
    return ["\n".join(every[start : start + lines]) for start in range(0, len(every), lines)]


def _made(name: str) -> bytes | None:
    """A topic of the language reference as a file, a page of this repository, or nothing."""
    if (MARKDOWN / name).exists():
        return (MARKDOWN / name).read_bytes()
    if name == "labeled.pdf":
        return _labeled_pdf()
    topic, _, kind = name.partition(".")
    if topic not in topics:
        return None
    paragraphs = [part for part in topics[topic].split("\n\n") if part.strip()]
    rows = [
        {"title": text.split()[0], "words": str(len(text.split())), "text": " ".join(text.split())}
        for text in paragraphs
    ]
    if kind == "csv":
        out = io.StringIO()
        csv.writer(out).writerows([list(rows[0]), *(row.values() for row in rows)])
        return out.getvalue().encode()
    if kind == "docx":
        body = "".join(f'<w:p><w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>' for text in paragraphs)
        return _archive({"word/document.xml": f"{_WORD}{body}</w:body></w:document>"})
    if kind == "epub":
        return _epub([f"<pre>{escape(page)}</pre>" for page in pages(topics[topic], 100)])
    texts = {
        "txt": topics[topic],
        "json": json.dumps(rows, indent=1, ensure_ascii=False),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
    }
    return texts[kind].encode()


def _labeled_pdf() -> bytes:
    """A book with a cover, roman and arabic numbers, plates between them, and an appendix."""
    from pypdf import PdfReader, PdfWriter

    leaves = [f"Leaf {number} of the book\n{page}" for number, page in enumerate(pages(topics["types"], 28))]
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(*leaves))))
    for first, last, style, prefix, start in (
        (0, 0, None, "Cover", None),
        (1, 5, "/r", None, 1),
        (6, 15, "/D", None, 1),
        (16, 18, "/D", "Plate ", 1),
        (19, len(leaves) - 7, "/D", None, 11),
        (len(leaves) - 6, len(leaves) - 1, "/D", "A-", 1),
    ):
        writer.set_page_label(first, last, style, prefix, start)  # type: ignore[arg-type]
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _epub(chapters: list[str]) -> bytes:
    names = [f"chapter{number}.xhtml" for number in range(len(chapters))]
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in names)
    spine = "".join(f'<itemref idref="{name}"/>' for name in names)
    texts = [f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{chapter}</body></html>' for chapter in chapters]
    package = f"{_PACKAGE}<manifest>{items}</manifest><spine>{spine}</spine></package>"
    files = {"META-INF/container.xml": _CONTAINER, "book.opf": package}
    return _archive({"mimetype": "application/epub+zip", **files, **dict(zip(names, texts, strict=True))})


def _archive(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()
