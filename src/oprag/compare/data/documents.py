"""Documents that questions refer to by name, each read on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath

from oprag._internal.files.pdf import is_pdf, pdf_pages
from oprag._internal.files.reading import file_text
from oprag._internal.masking import describe, listed
from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.data_set import DocumentText
from oprag.compare.data.files import files_in, find_file, read_bytes, without_gz
from oprag.compare.data.records import Row, json_lines
from oprag.compare.validation import Name, Text, pydantic

__all__ = ["Documents", "document_file", "documents_by_name", "documents_in"]

_ENDINGS = (".txt", ".text", ".md", ".markdown", ".html", ".htm", ".pdf")


class Documents:
    """Documents by name; those that no question refers to are neither read nor part of the data set."""

    def __init__(self, builder: DataSetBuilder, place: Path, readers: Mapping[str, Callable[[], DocumentText]]) -> None:
        self.names = tuple(readers)
        self._builder = builder
        self._place = place
        self._readers = readers

    def take(self, name: str) -> Sequence[str]:
        """Add the document with this name to the data set, or all whose names match this pattern; return their names.

        A name may lack the folder or the extension.
        """
        names = [name] if name in self._readers else [one for one in self.names if _matches(one, name)]
        if not names:
            raise RecordError(
                f"document {describe(name)} not found in {self._place}; available documents: {listed(self.names)}"
            )
        return [self._builder.document((self._place, one), one, self._readers[one]) for one in names]


def _matches(name: str, pattern: str) -> bool:
    path = PurePosixPath(name)
    return any(one == pattern or fnmatchcase(one, pattern) for one in (name, path.name, path.stem))


def document_file(builder: DataSetBuilder, path: Path) -> DocumentText:
    """Text of a file, or the pages of a PDF file."""
    data, name = read_bytes(builder.reads(path)), str(path)
    return pdf_pages(name, data, "compare") if is_pdf(without_gz(name), data) else file_text(name, data)


def documents_in(folder: Path, builder: DataSetBuilder) -> Documents:
    """Text, Markdown, HTML and PDF files in a folder and its subfolders, named by relative path without `.gz`."""
    paths = files_in(folder, _ENDINGS)
    return Documents(builder, folder, {name: partial(document_file, builder, path) for name, path in paths.items()})


class _Line(Row):
    document: Name = pydantic.Field(validation_alias=pydantic.AliasChoices("document", "document_id"))
    text: Text


def documents_by_name(given: Path | None, folder: Path, builder: DataSetBuilder) -> Documents:
    """The given documents (JSON Lines, a folder or any other file), else those of `documents.jsonl` in the folder."""
    if given is not None and given.is_file() and not without_gz(given.name).endswith((".jsonl", ".json", ".ndjson")):
        return Documents(builder, given, {without_gz(given.name): partial(document_file, builder, given)})
    lines = given if given is not None and given.is_file() else find_file(given or folder, "documents.jsonl")
    if lines is None:
        return Documents(builder, folder, {}) if given is None else documents_in(given, builder)
    texts: dict[str, Callable[[], DocumentText]] = {}
    for record in json_lines(builder, lines):
        with builder.at(record.place):
            line = _Line.of(record.fields)
            if line.document in texts:
                raise RecordError(f"duplicate document {describe(line.document)}; names must be unique")
            texts[line.document] = partial(str, line.text)
    return Documents(builder, lines, texts)
