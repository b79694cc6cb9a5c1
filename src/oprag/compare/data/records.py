"""Records of JSON, JSON Lines and CSV files, with their locations."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from oprag._internal.masking import describe
from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.files import lines, read_bytes, stem, without_gz
from oprag.compare.validation import message_of

__all__ = ["Record", "Row", "csv_records", "json_lines", "json_records"]


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
