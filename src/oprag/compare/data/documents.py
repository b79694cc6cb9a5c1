"""Documents that questions refer to, each read on first use."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.files import files_in, find_file, read_bytes, without_gz
from oprag.compare.data.records import Row, json_lines
from oprag.compare.validation import Name, Text
from oprag.files.pdf import is_pdf, pdf_pages
from oprag.files.reading import file_text
from oprag.masking import describe, listed

__all__ = ["Documents", "document_file", "documents_by_name", "documents_in"]

_ENDINGS = (".txt", ".text", ".md", ".markdown", ".html", ".htm", ".pdf")


class Documents:
    """Documents by name; those that no question refers to are neither read nor part of the data set.

    Attributes:
        names: Names of the documents.
        is_default: Whether a question that names no document is about them.
    """

    def __init__(
        self,
        builder: DataSetBuilder,
        place: Path,
        names: Iterable[str] = (),
        read: Callable[[str], str | Sequence[str]] = str,
        *,
        is_default: bool = False,
    ) -> None:
        self.names = dict.fromkeys(names)
        self.is_default = is_default
        self._builder = builder
        self._place = place
        self._read = read

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
    """Text of a file, or the pages of a PDF file."""
    data = read_bytes(path)
    name = str(path)
    return pdf_pages(name, data, "compare") if is_pdf(without_gz(name), data) else file_text(name, data)


def documents_in(folder: Path, builder: DataSetBuilder) -> Documents:
    """Text, Markdown, HTML and PDF files in a folder and its subfolders, named by relative path without `.gz`."""
    paths = files_in(folder, _ENDINGS)
    return Documents(builder, folder, paths, lambda name: document_file(builder.reads(paths[name])))


def documents_by_name(given: Path | None, folder: Path, builder: DataSetBuilder) -> Documents:
    """The given documents (JSON Lines, a folder or any other file), else those of `documents.jsonl` in the folder."""
    if given is not None and given.is_file() and not without_gz(given.name).endswith((".jsonl", ".json", ".ndjson")):
        name = without_gz(given.name)
        return Documents(builder, given, [name], lambda _: document_file(builder.reads(given)), is_default=True)
    lines = given if given is not None and given.is_file() else find_file(given or folder, "documents.jsonl")
    if lines is None:
        return Documents(builder, folder) if given is None else documents_in(given, builder)
    texts: dict[str, str] = {}
    for record in json_lines(builder, lines):
        with builder.at(record.place):
            row = Row(record.fields)
            name = row.get(Name, "document", "document_id")
            if name in texts:
                raise RecordError(f"duplicate document {describe(name)}; names must be unique")
            texts[name] = row.get(Text, "text")
    builder.check()
    return Documents(builder, lines, texts, texts.__getitem__)
