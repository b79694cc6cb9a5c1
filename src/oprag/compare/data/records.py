"""Records of JSON, JSON Lines and CSV files with their locations, and their fields, each validated when it is read."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.files import lines, read_bytes, stem, without_gz
from oprag.compare.validation import message_of
from oprag.files.limits import MEGABYTE, limit
from oprag.masking import describe, listed

__all__ = ["Record", "Row", "csv_records", "json_lines", "json_records"]

_REQUIRED: Any = object()


class Record(NamedTuple):
    """One record of a file: its location for messages, and a fallback id such as `questions-3`."""

    place: str
    name: str
    fields: Mapping[str, Any]


class Row:
    """The fields of a record, each validated when it is read."""

    def __init__(self, fields: Any) -> None:
        if not isinstance(fields, Mapping):
            raise RecordError(f"must be a mapping, got {describe(fields)}")
        self._fields = fields
        self._read: set[str] = set()

    def get(self, kind: Any, *names: str, default: Any = _REQUIRED) -> Any:
        """The value of a field, of a type known to pydantic; null counts as missing only if the default is None."""
        self._read.update(names)
        given = [name for name in names if name in self._fields]
        if len(given) > 1:
            raise RecordError(f"must have only one of the fields {' and '.join(map(repr, given))}, got both")
        if not given and default is _REQUIRED:
            raise RecordError(f"{names[0]} is missing; the fields are {listed(self._fields)}")
        if not given or (default is None and self._fields[given[0]] is None):
            return default
        try:
            return _adapter(kind).validate_python(self._fields[given[0]])
        except ValidationError as error:
            raise RecordError(message_of(error, given[0])) from None

    @property
    def about(self) -> dict[str, Any]:
        """Fields that were not read."""
        return {name: value for name, value in self._fields.items() if name not in self._read}


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def json_lines(builder: DataSetBuilder, path: Path, *, with_nan: bool = False) -> Iterator[Record]:
    """Yield one JSON object per line; blank lines are skipped."""
    for number, line in enumerate(lines(builder.reads(path)), 1):
        place = f"{path}, line {number}"
        with builder.at(place):
            if text := _decoded(line).strip():
                yield Record(place, f"{stem(path)}-{number}", _object(_json_value(text, with_nan)))


def json_records(builder: DataSetBuilder, path: Path, *, with_nan: bool = False) -> Iterator[Record]:
    """Yield the objects of a file with a JSON object, a JSON list of objects, or one JSON object per line.

    Args:
        builder: Records the files that are read, and the problems in them.
        path: The file.
        with_nan: Whether to accept NaN and Infinity, which Python writes but JSON does not allow.
    """
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
    rows = csv.reader((_decoded(line).replace("\r\n", "\n") for line in lines(builder.reads(path))), strict=True)
    columns: list[str] = []
    first = 1
    # A CSV cell may contain a whole book.
    before = csv.field_size_limit(min(limit("line_megabytes") * MEGABYTE, 2**31 - 1))
    try:
        for cells in rows:
            place, name = f"{path}, line {first}", f"{stem(path)}-{first}"
            if columns and not _is_blank(cells):
                with builder.at(place):
                    yield Record(place, name, _by_column(columns, cells))
            elif not _is_blank(cells):
                columns = _header(cells)
            first = rows.line_num + 1
    except (csv.Error, RecordError) as error:
        with builder.at(f"{path}, line {first}"):
            raise RecordError(f"invalid CSV: {error}" if isinstance(error, csv.Error) else str(error)) from error
    finally:
        csv.field_size_limit(before)


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


def _is_blank(cells: Sequence[str]) -> bool:
    return not any(map(str.strip, cells))


def _header(cells: Sequence[str]) -> list[str]:
    columns = [" ".join(cell.split()).lower() for cell in cells]
    if twice := [name for name in columns if name and columns.count(name) > 1]:
        raise RecordError(f"the column {twice[0]!r} appears {len(twice)} times; keep one")
    return columns


def _by_column(columns: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    if len(cells) != len(columns):
        raise RecordError(f"must have {len(columns)} cells, as many as the header, got {len(cells)}")
    return dict(zip(columns, cells, strict=True))
