"""Records of JSON, JSON Lines and CSV files, with their locations; documents by name; and the data set they build."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from oprag._internal.files.pdf import is_pdf, pdf_pages
from oprag._internal.files.reading import file_text
from oprag._internal.masking import describe, listed
from oprag.compare.data.data_set import DataSet, DocumentText, Evidence, Question, problem_of
from oprag.compare.data.files import files_in, find_file, is_within, lines, read_bytes, stem, without_gz
from oprag.compare.validation import Name, Text, message_of, pydantic
from oprag.errors import DataError, InputFileError

__all__ = [
    "DataSetBuilder",
    "Documents",
    "Record",
    "RecordError",
    "Row",
    "as_list",
    "csv_records",
    "document_file",
    "documents_by_name",
    "documents_in",
    "json_lines",
    "json_records",
]


class RecordError(Exception):
    """A record violates its format; the message has the field, the value and the expected value."""


class DataSetBuilder:
    """Builds a data set from files, which must be inside the folder `within`, if given, and not hidden there."""

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self.path = path
        self._within = None if within is None else within.resolve()
        self._documents: dict[str, DocumentText] = {}
        self._names: dict[Hashable, str] = {}
        self._questions: dict[str, Question] = {}
        self._files: dict[Path, None] = {}

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Raise a problem in this block as a DataError with this location."""
        try:
            yield
        except (RecordError, InputFileError) as error:
            raise DataError(f"{place}: {error}", str(self.path)) from error

    def check_inside(self, path: Path) -> None:
        """Raise if a file or folder must not be read."""
        if self._within is not None and not is_within(self._within, path):
            raise InputFileError(
                f"{path} is hidden, or is outside the folder {self._within} after following links; move it into the "
                "folder, or use an Experiment in Python",
                str(path),
            )

    def reads(self, path: Path) -> Path:
        """Register a file before it is read; raises if it must not be read."""
        self.check_inside(path)
        self._files[path] = None
        return path

    def document(self, key: Hashable, name: str, read: Callable[[], DocumentText]) -> str:
        """Add a document and return its name; documents with the same key are one, which is read once."""
        if key not in self._names:
            text = read()
            if not any(map(str.strip, [text] if isinstance(text, str) else text)):
                raise RecordError(f"the text of the document {describe(name)} must not be empty")
            if self._documents.setdefault(name, text) != text:
                raise RecordError(
                    f"another document {describe(name)} already exists with a different text; names must be unique"
                )
            self._names[key] = name
        return self._names[key]

    def context(self, text: str, name: str) -> str:
        """Add a document that is part of a question record and return its name; equal texts are one document."""
        return self.document(text, name, lambda: text)

    def question(
        self,
        *,
        id: str,  # noqa: A002  # field name of Question
        documents: Iterable[str],
        answers: Iterable[str] = (),
        choices: Iterable[str] = (),
        evidence: Iterable[Evidence] = (),
        about: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """Add a question about documents that were added; the right choice is the gold answer if there are none."""
        if id in self._questions:
            raise RecordError(f"the id {describe(id)} is used twice; ids must be unique")
        question = Question(
            id=id,
            documents=tuple(dict.fromkeys(documents)),
            answers=tuple(answers),
            choices=tuple(choices),
            evidence=tuple(evidence),
            about={name: _plain(value) for name, value in (about or {}).items() if value is not None},
            **fields,
        )
        if problem := problem_of(question, self._documents):
            raise RecordError(problem)
        if question.labels and not question.answers:
            question = replace(question, answers=question.labels[:1])
        self._questions[id] = question

    def data_set(self, name: str) -> DataSet:
        """Return the finished data set; raises if it has no questions."""
        if not self._questions:
            raise DataError(f"{self.path} contains no questions", str(self.path))
        questions = tuple(self._questions.values())
        return DataSet(name=name, documents=self._documents, questions=questions, files=tuple(self._files))


def _plain(value: Any) -> str | int | float:
    """The value of a field; lists and objects as JSON."""
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)


class Record(NamedTuple):
    """One record of a file: its location for messages, and a fallback id such as `questions-3`."""

    place: str
    name: str
    fields: Mapping[str, Any]


class Row(BaseModel, extra="allow"):
    """The fields of a record that its format knows."""

    @classmethod
    def of(cls, fields: Any) -> Self:
        """Validate the fields of a record.

        Raises:
            RecordError: A field is missing or invalid.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise RecordError(message_of(error)) from None

    @property
    def about(self) -> Mapping[str, Any]:
        """The other fields of the record."""
        return self.model_extra or {}


def json_lines(builder: DataSetBuilder, path: Path, *, with_nan: bool = False) -> Iterator[Record]:
    """Yield one JSON object per line; blank lines are skipped."""
    for number, line in enumerate(lines(builder.reads(path)), 1):
        place = f"{path}, line {number}"
        with builder.at(place):
            if text := _decoded(line).strip():
                yield Record(place, f"{stem(path)}-{number}", _object(_json_value(text, with_nan)))


def json_records(builder: DataSetBuilder, path: Path, *, with_nan: bool = False) -> Iterator[Record]:
    """Yield the objects of a file with a JSON object, a JSON list of objects, or one JSON object per line."""
    if not without_gz(path.name).lower().endswith(".json"):
        yield from json_lines(builder, path, with_nan=with_nan)
        return
    data = read_bytes(builder.reads(path))
    with builder.at(str(path)):
        try:
            whole = _json_value(_decoded(data), with_nan)
        except RecordError as error:
            if "trailing characters" not in str(error):
                raise
            yield from json_lines(builder, path, with_nan=with_nan)
            return
        if not isinstance(whole, list):
            yield Record(str(path), stem(path), _object(whole))
            return
        for number, value in enumerate(whole, 1):
            place = f"{path}, item {number}"
            with builder.at(place):
                yield Record(place, f"{stem(path)}-{number}", _object(value))


def csv_records(builder: DataSetBuilder, path: Path) -> Iterator[Record]:
    """Yield one record per row of a CSV file; its fields are the columns of the header, in lower case."""
    data = b"".join(lines(builder.reads(path)))
    columns: list[str] = []
    first = 1
    with builder.at(str(path)):
        rows = csv.reader(io.StringIO(_decoded(data).replace("\r\n", "\n")), strict=True)
        try:
            for cells in rows:
                place, name = f"{path}, line {first}", f"{stem(path)}-{first}"
                first = rows.line_num + 1
                if not any(map(str.strip, cells)):
                    continue
                if not columns:
                    columns = [" ".join(cell.split()).lower() for cell in cells]
                    continue
                with builder.at(place):
                    if len(cells) != len(columns):
                        raise RecordError(f"must have {len(columns)} cells, as many as the header, got {len(cells)}")
                    yield Record(place, name, dict(zip(columns, cells, strict=True)))
        except csv.Error as error:
            raise RecordError(f"invalid CSV after line {first - 1}: {error}") from error


def _json_value(text: str, with_nan: bool) -> Any:  # noqa: FBT001
    """Parse a JSON text."""
    try:
        return from_json(text, allow_inf_nan=with_nan)
    except ValueError as error:
        problem = str(error).replace("at line 1 column", "at character")
        raise RecordError(f"invalid JSON: {problem}, in {describe(text)}") from None


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(f"must be a JSON object, {{…}}, got {describe(value)}")
    return value


def _decoded(data: bytes) -> str:
    """Decode a line or a file as UTF-8, without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"is not UTF-8 text: byte {error.start:,} is 0x{error.object[error.start]:02x}; convert the file first, "
            "for example with iconv -f latin1 -t utf-8"
        ) from error


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


def as_list(value: Any) -> Any:
    """A single value as a list with one item."""
    return value if isinstance(value, list) else [value]
