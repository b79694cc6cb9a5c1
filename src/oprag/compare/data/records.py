"""Records of JSON, JSON Lines and CSV files with their locations, and the base class that validates them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import from_json

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.files import lines, read_bytes, stem, without_gz
from oprag.compare.validation import Text, message_of
from oprag.files.limits import MEGABYTE, limit
from oprag.masking import describe, listed

__all__ = [
    "DataRow",
    "Listed",
    "Record",
    "Texts",
    "csv_records",
    "json_lines",
    "json_records",
    "letter_index",
    "text_index",
]

Listed = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
"""Accepts a single value as a list with one item."""

Texts = Annotated[list[Text], Listed]
"""A list of non-blank strings; a single string is accepted as a list with one item."""


class DataRow(BaseModel):
    """A record with declared fields; null counts as missing only if the field allows None."""

    model_config = ConfigDict(extra="allow")

    @classmethod
    def read(cls, fields: Any) -> Self:
        """Validate the fields of a record."""
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise RecordError(message_of(error)) from None

    @property
    def about(self) -> Mapping[str, Any]:
        """Undeclared fields of the record."""
        return self.model_extra or {}


def letter_index(letter: Any, what: str, choices: Sequence[str]) -> int:
    """Index of the choice with this letter."""
    letters = ascii_uppercase[: len(choices)]
    if not isinstance(letter, str) or len(letter) != 1 or letter not in letters:
        raise RecordError(f"{what} must be the letter of one of the {len(choices)} choices, got {describe(letter)}")
    return letters.index(letter)


def text_index(right: str, what: str, choices: Sequence[str]) -> int:
    """Index of the first choice with this text."""
    if right not in choices:
        raise RecordError(f"{what} must be one of the choices {describe(list(choices))}, got {describe(right)}")
    return choices.index(right)


class Record(NamedTuple):
    """One record of a file: its location for messages, and a fallback id such as `questions-3`."""

    place: str
    name: str
    fields: Mapping[str, Any]


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


def csv_records(builder: DataSetBuilder, path: Path, row: type[DataRow]) -> Iterator[Record]:
    """Yield one record per row of a CSV file; its header has the fields of `row` in any order and case, and others."""
    rows = csv.reader((_decoded(line).replace("\r\n", "\n") for line in lines(builder.reads(path))), strict=True)
    columns: list[str] = []
    first = 1
    # A CSV cell may contain a whole book.
    before = csv.field_size_limit(min(limit("line_megabytes") * MEGABYTE, 2**31 - 1))
    try:
        for cells in rows:
            place, name = f"{path}, line {first}", f"{stem(path)}-{first}"
            if any(map(str.strip, cells)) and not columns:
                columns = _columns(cells, row)
            elif any(map(str.strip, cells)):
                with builder.at(place):
                    yield Record(place, name, _cells_by_column(columns, cells))
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


def _columns(cells: Sequence[str], row: type[DataRow]) -> list[str]:
    """Field name of each column; empty for unknown columns."""
    fields = {field.alias or name: field for name, field in row.model_fields.items()}
    known = {name.casefold(): name for name in fields}
    columns = [known.get(" ".join(cell.split()).casefold(), "") for cell in cells]
    for name, field in fields.items():
        if columns.count(name) > 1:
            raise RecordError(f"the column {name!r} appears {columns.count(name)} times; keep one")
        if field.is_required() and name not in columns:
            raise RecordError(f"the column {name!r} is missing; the columns are {listed(cells)}")
    return columns


def _cells_by_column(columns: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    if len(cells) != len(columns):
        raise RecordError(f"must have {len(columns)} cells, as many as the header, got {len(cells)}")
    return {name: cell for name, cell in zip(columns, cells, strict=True) if name}
