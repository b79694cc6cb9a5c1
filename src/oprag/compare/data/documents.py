"""Documents that questions name, each read when it is first named."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.files import files_in, read_bytes
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import DataRow, json_lines
from oprag.compare.validation import Name, String, Text
from oprag.errors import DataError
from oprag.files.pdf import is_pdf, pdf_pages
from oprag.files.reading import file_text
from oprag.masking import listed

__all__ = ["DocumentLibrary", "document_file", "folder_library", "lines_library"]

_ENDINGS = (".txt", ".text", ".md", ".markdown", ".html", ".htm", ".pdf")


class DocumentLibrary:
    """Documents by name; those that no question names are never read and are not part of the data set."""

    def __init__(
        self, place: Path, names: Iterable[str], read: Callable[[str], str | Sequence[str]], builder: DataSetBuilder
    ) -> None:
        self._place = place
        self._names = dict.fromkeys(names)
        self._read = read
        self._builder = builder

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all documents, in their order."""
        return tuple(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def take(self, name: str) -> str:
        """Add a document to the data set, and return its name."""
        if name not in self._names:
            close = difflib.get_close_matches(name[:200], self._names, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {listed(self._names)}"
            raise RecordError(f"there is no document {name!r} in {self._place}; {hint}")
        return self._builder.document_once(name, str(self._place), lambda: self._read(name))

    def take_all(self) -> tuple[str, ...]:
        """Add all documents, and return their names; what cannot be read is noted."""
        for name in self._names:
            with self._builder.problems.at(str(self._place)):
                self.take(name)
        return self.names


def document_file(path: Path) -> str | Sequence[str]:
    """The text of a file, or the pages of a PDF file."""
    data = read_bytes(path)
    name = str(path)
    bare = name[:-3] if name.lower().endswith(".gz") else name
    return pdf_pages(name, data, "compare") if is_pdf(bare, data) else file_text(name, data)


def folder_library(folder: Path, builder: DataSetBuilder) -> DocumentLibrary:
    """The text, Markdown, HTML and PDF files below a folder; their names are their paths in it, without `.gz`."""
    try:
        paths = files_in(folder, _ENDINGS)
    except RecordError as error:
        raise DataError(f"{folder}: {error}", str(folder)) from error
    return DocumentLibrary(folder, paths, lambda name: document_file(builder.reads(paths[name])), builder)


class _Line(DataRow):
    document: Name | None = None
    document_id: Name | None = None
    title: String | None = None
    text: Text


def lines_library(path: Path, builder: DataSetBuilder) -> DocumentLibrary:
    """The documents of a file of JSON lines: `document` (or `document_id`) names one, `text` is its text."""
    sources: dict[str, str] = {}
    for record in json_lines(builder.reads(path), builder.problems):
        with builder.problems.at(record.place):
            line = _Line.read(record.fields)
            name = line.document or line.document_id
            if name is None:
                raise RecordError(f"the field 'document' is missing; the fields are {listed(record.fields)}")
            if name in sources:
                raise RecordError(f"the document {name!r} was there before; names must be distinct")
            sources[name] = line.text
    builder.problems.check()
    return DocumentLibrary(path, sources, sources.__getitem__, builder)
