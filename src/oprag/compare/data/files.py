"""Files of a question set: bytes, records of JSON, JSON Lines and CSV, and documents; only from inside its folder."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from oprag._internal.files.pdf import is_pdf, pdf_pages
from oprag._internal.files.reading import (
    MEGABYTE,
    file_text,
    limit,
    not_utf8,
    open_regular,
    resolved,
    same_drive,
    variable,
)
from oprag._internal.masking import describe, error_text, listed
from oprag.compare.data.data_set import DocumentText
from oprag.compare.validation import Name, Text, message_of, pydantic
from oprag.errors import InputFileError

if TYPE_CHECKING:
    from oprag.compare.data.read import DataSetBuilder

__all__ = [
    "Documents",
    "Record",
    "RecordError",
    "Row",
    "as_list",
    "csv_records",
    "document_file",
    "documents_by_name",
    "documents_in",
    "file_inside",
    "files_in",
    "is_within",
    "json_lines",
    "json_records",
    "needed_file",
    "read_bytes",
    "stem",
    "without_gz",
]

_GZIP = b"\x1f\x8b"


def read_bytes(path: Path) -> bytes:
    """Read a whole file; gzip is recognized by content and decompressed, up to a size limit."""
    most = limit("unpacked_megabytes")
    try:
        with open_regular(path) as file:
            if file.peek(2)[:2] != _GZIP:
                return file.read()
            with gzip.open(file) as unpacked:
                data = unpacked.read(most * MEGABYTE + 1)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, InputFileError):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
        raise InputFileError(f"cannot read {path}: {reason}", str(path)) from error
    if len(data) > most * MEGABYTE:
        # One megabyte can decompress to a gigabyte.
        raise _too_large(path, f"it decompresses to more than {most:,} MB", "unpacked_megabytes")
    return data


def _too_large(path: Path, why: str, name: str) -> InputFileError:
    return InputFileError(
        f"cannot read {path}: {why}; if you trust the file, raise the limit {variable(name)}", str(path)
    )


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, decompressed, with their line endings."""
    longest, most = limit("line_megabytes"), limit("lines")
    for number, line in enumerate(io.BytesIO(read_bytes(path)), 1):
        if len(line) > longest * MEGABYTE:
            raise _too_large(path, f"line {number:,} has more than {longest:,} MB", "line_megabytes")
        if number > most:
            raise _too_large(path, f"it has more than {most:,} lines", "lines")
        yield line


def without_gz(name: str) -> str:
    """Remove the ending `.gz` from a file name."""
    return name[:-3] if name.lower().endswith(".gz") else name


def stem(path: Path) -> str:
    """File name without `.gz` and without its extension."""
    return PurePath(without_gz(path.name)).stem


def find_file(folder: Path, name: str) -> Path | None:
    """Path of a file in a folder, compressed or not; None if it is missing."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def needed_file(folder: Path, name: str) -> Path:
    """Path of a required file in a folder, compressed or not."""
    path = find_file(folder, name)
    if path is None:
        raise InputFileError(f"{name} is missing in the folder {folder}", str(folder))
    return path


def file_inside(folder: Path, name: str) -> Path:
    """Resolve a file name from a record, which must stay inside the folder; falls back to `name.gz`."""
    root = folder.resolve()
    for candidate in (name, f"{name}.gz"):
        path = root / candidate
        try:
            inside = same_drive(root, path) and (path := resolved(path)).is_relative_to(root)
            found = inside and path.is_file()
        except (OSError, ValueError, RuntimeError) as error:
            raise InputFileError(f"{describe(name)} is not a valid file path: {error_text(error)}", name) from error
        if not inside:
            raise InputFileError(
                f"{describe(name)} is outside the folder {folder}; only files in it are read: copy the file there", name
            )
        if found:
            return path
    raise InputFileError(f"the file {describe(name)} is missing in the folder {folder}", name)


def is_within(folder: Path, path: Path) -> bool:
    """Whether a path, after following links, is inside a folder and not hidden there; `folder` must be resolved."""
    if not same_drive(folder, path):
        return False
    try:
        return not any(part.startswith(".") for part in path.resolve().relative_to(folder).parts)
    except (OSError, ValueError, RuntimeError):
        return False


def files_in(folder: Path, endings: tuple[str, ...]) -> dict[str, Path]:
    """Files in a folder and its subfolders by relative path without `.gz`, sorted; hidden files are skipped."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_dir() and not path.is_symlink()) or f"/{name}".count("/."):
            continue
        bare = without_gz(name)
        if not bare.lower().endswith(endings):
            raise InputFileError(
                f"unexpected file or link {name} in the folder {folder}, which may only contain files with the "
                f"extensions {', '.join(endings)} (optionally with .gz); move others elsewhere",
                str(folder),
            )
        found[bare] = file_inside(folder, name)
    if not found:
        what = "has no files with the extensions " + ", ".join(endings) if folder.is_dir() else "is not a folder"
        raise InputFileError(f"{folder} {what}", str(folder))
    return found


class RecordError(Exception):
    """A record violates its format; the message has the field, the value and the expected value."""


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
        raise RecordError(not_utf8(error)) from error


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
