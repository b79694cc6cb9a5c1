"""Documents that questions refer to, each read on first use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pydantic import AliasChoices, Field

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.files import files_in, read_bytes, without_gz
from oprag.compare.data.records import DataRow, json_lines
from oprag.compare.validation import Name, Text
from oprag.files.pdf import is_pdf, pdf_pages
from oprag.files.reading import file_text
from oprag.masking import describe, listed

__all__ = ["DocumentLibrary", "document_file", "folder_library", "lines_library"]

_ENDINGS = (".txt", ".text", ".md", ".markdown", ".html", ".htm", ".pdf")


class DocumentLibrary:
    """Documents by name; documents that no question refers to are neither read nor part of the data set."""

    def __init__(
        self, place: Path, names: Iterable[str], read: Callable[[str], str | Sequence[str]], builder: DataSetBuilder
    ) -> None:
        self.names = dict.fromkeys(names)
        self._place = place
        self._read = read
        self._builder = builder

    def take(self, name: str) -> str:
        """Add a document to the data set and return its name."""
        if name not in self.names:
            close = difflib.get_close_matches(name[:200], self.names, n=1)
            hint = f"did you mean {describe(close[0])}?" if close else f"available documents: {listed(self.names)}"
            raise RecordError(f"document {describe(name)} not found in {self._place}; {hint}")
        return self._builder.document_once(name, str(self._place), lambda: self._read(name))

    def take_all(self) -> Sequence[str]:
        """Add all documents and return their names; raises if any of them cannot be read."""
        for name in self.names:
            with self._builder.at(str(self._place)):
                self.take(name)
        self._builder.check()
        return tuple(self.names)


def document_file(path: Path) -> str | Sequence[str]:
    """Read the text of a file, or the pages of a PDF file."""
    data = read_bytes(path)
    name = str(path)
    return pdf_pages(name, data, "compare") if is_pdf(without_gz(name), data) else file_text(name, data)


def folder_library(folder: Path, builder: DataSetBuilder) -> DocumentLibrary:
    """Text, Markdown, HTML and PDF files in a folder and its subfolders, named by relative path without `.gz`."""
    paths = files_in(folder, _ENDINGS)
    return DocumentLibrary(folder, paths, lambda name: document_file(builder.reads(paths[name])), builder)


class _DocumentRow(DataRow):
    document: Name = Field(validation_alias=AliasChoices("document", "document_id"))
    text: Text


def lines_library(path: Path, builder: DataSetBuilder) -> DocumentLibrary:
    """Documents of a JSON Lines file: `document` (or `document_id`) is the name, `text` the text."""
    texts: dict[str, str] = {}
    for record in json_lines(builder, path):
        with builder.at(record.place):
            line = _DocumentRow.read(record.fields)
            if line.document in texts:
                raise RecordError(f"duplicate document {describe(line.document)}; names must be unique")
            texts[line.document] = line.text
    builder.check()
    return DocumentLibrary(path, texts, texts.__getitem__, builder)
