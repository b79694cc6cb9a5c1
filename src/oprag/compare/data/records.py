"""The records of JSON, JSON lines and CSV files, each with its place, and the rows that they are checked as."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from reprlib import Repr
from string import ascii_uppercase
from typing import Annotated, Any, NamedTuple, NoReturn, Self

from oprag.compare.data.files import lines, read_bytes, stem
from oprag.compare.data.problems import Problems, RecordError
from oprag.compare.validation import Text, place_of, problem_of
from oprag.errors import MissingExtraError
from oprag.files.limits import MEGABYTE, limit
from oprag.masking import listed

try:
    from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
    from pydantic_core import PydanticCustomError
except ImportError as error:
    raise MissingExtraError("oprag.compare", "compare") from error

__all__ = [
    "DataRow",
    "Record",
    "Texts",
    "as_text",
    "csv_records",
    "json_lines",
    "json_records",
    "json_value",
    "letter_place",
    "shown",
    "text_place",
]

_BOM = b"\xef\xbb\xbf"

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlist = _SHORT.maxdict = 4


class DataRow(BaseModel):
    """A record with declared fields; null is a missing value only where a field allows None."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())

    @classmethod
    def read(cls, fields: Any) -> Self:
        """A row with these fields."""
        if not isinstance(fields, dict):
            raise RecordError(f"must be an object, got {shown(fields)}")
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise RecordError(_problem(error)) from None

    @property
    def about(self) -> Mapping[str, Any]:
        """The other fields of the record."""
        return self.model_extra or {}


def _problem(error: ValidationError, place: str = "") -> str:
    """The first problem of a row or a value."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "missing":
        *outer, field = first["loc"]
        where = place_of(outer, place)
        missing = f"the field {field!r} is missing; the fields are {listed(first['input'])}"
        return f"{where}: {missing}" if where else missing
    return f"{place_of(first['loc'], place) or 'the name of a field'} {problem_of(first, shown, table='an object')}"


def _strings(value: Any) -> Any:
    if not isinstance(value, list):
        raise PydanticCustomError("strings", "must be a list of strings")
    return value


Texts = Annotated[list[Text], BeforeValidator(_strings)]
"""A list of strings that are not blank."""

_TEXT: TypeAdapter[str] = TypeAdapter(Text)


def as_text(value: Any, what: str) -> str:
    """A value that must be a `Text`; the message begins with what it is called."""
    try:
        return _TEXT.validate_python(value)
    except ValidationError as error:
        raise RecordError(_problem(error, what)) from None


def shown(value: Any) -> str:
    """A value as a message shows it, cut where it is long."""
    return _SHORT.repr(value)


def letter_place(letter: Any, what: str, choices: Sequence[str]) -> int:
    """The index of a choice by its letter."""
    letters = ascii_uppercase[: len(choices)]
    if not isinstance(letter, str) or len(letter) != 1 or letter not in letters:
        raise RecordError(f"{what} must be the letter of one of the {len(choices)} choices, got {shown(letter)}")
    return letters.index(letter)


def text_place(right: str, what: str, choices: Sequence[str]) -> int:
    """The index of a choice by its text; of equal ones the first."""
    if right not in choices:
        raise RecordError(f"{what} must be one of the choices {shown(list(choices))}, got {shown(right)}")
    return choices.index(right)


class Record(NamedTuple):
    """One record of a file: its place for messages, and a name for what has none, such as `questions-3`."""

    place: str
    name: str
    fields: Mapping[str, Any]


def json_lines(path: Path, problems: Problems) -> Iterator[Record]:
    """One JSON object a line; blank lines are skipped, and what is not an object is noted."""
    for number, place, line in _lines(path, problems):
        fields = None
        with problems.at(place):
            fields = _object(json_value(line))
        if fields is not None:
            yield Record(place, f"{stem(path)}-{number}", fields)


def json_records(path: Path, problems: Problems) -> Iterator[Record]:
    """The objects of a file that is one JSON object, a list of them, or one of them a line."""
    if not path.name.lower().removesuffix(".gz").endswith(".json"):
        yield from json_lines(path, problems)
        return
    whole: Any = None
    try:
        whole = json_value(_decoded(read_bytes(path).removeprefix(_BOM)))
    except RecordError as error:
        if "Extra data" not in str(error):
            with problems.at(str(path)):
                raise
            return
    if whole is None:
        yield from json_lines(path, problems)
    elif isinstance(whole, list):
        for number, value in enumerate(whole, 1):
            place = f"{path}, item {number}"
            fields = None
            with problems.at(place):
                fields = _object(value)
            if fields is not None:
                yield Record(place, f"{stem(path)}-{number}", fields)
    else:
        with problems.at(str(path)):
            whole = _object(whole)
            yield Record(str(path), f"{stem(path)}-1", whole)


def csv_records(path: Path, problems: Problems, row: type[DataRow]) -> Iterator[Record]:
    """One record a line of a CSV file, whose header has the fields of the row in any order and case, and others."""
    header: list[str] | None = None
    last = 0
    rows = csv.reader((f"{line}\n" for _, _, line in _lines(path, problems, blank=True)), strict=True)
    while True:
        place = f"{path}, line {last + 1}"
        cells: list[str] = []
        with problems.at(place):
            try:
                with _long_cells():
                    cells = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                raise RecordError(f"is no CSV: {error}") from error
        first, last = last + 1, max(rows.line_num, last + 1)
        if not any(cell.strip() for cell in cells):
            continue
        fields = None
        with problems.at(place):
            if header is None:
                header = _header(cells, row)
                continue
            if len(cells) != len(header):
                raise RecordError(f"must have {len(header)} cells like the header, got {len(cells)}: {shown(cells)}")
            fields = {name: cell for name, cell in zip(header, cells, strict=True) if name}
        if header is None:
            return
        if fields is not None:
            yield Record(place, f"{stem(path)}-{first}", fields)


def json_value(text: str) -> Any:
    """The value of a JSON text; NaN and Infinity are refused."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, character {error.colno}" if error.lineno > 1 else f"character {error.colno}"
        raise RecordError(f"is no JSON: {error.msg} at {where}, in {shown(text)}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"is no JSON that can be read: {error}") from error


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RecordError(f"must be a JSON object, {{…}}, got {shown(value)}")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise RecordError(
            f"is not UTF-8 text: byte {error.start:,} is 0x{line[error.start]:02x}; convert the file first, for "
            "example with iconv -f latin1 -t utf-8"
        ) from error


def _lines(path: Path, problems: Problems, *, blank: bool = False) -> Iterator[tuple[int, str, str]]:
    """Each line with its number and its place; with `blank`, lines that are empty or not text as empty ones."""
    for number, data in enumerate(lines(path), 1):
        if not blank and data.isspace():
            continue
        line = data.removeprefix(_BOM) if number == 1 else data
        place = f"{path}, line {number}"
        text = ""
        with problems.at(place):
            text = _decoded(line).removesuffix("\n").removesuffix("\r")
        if blank or text.strip():
            yield number, place, text


def _header(cells: Sequence[str], row: type[DataRow]) -> list[str]:
    """The field of each column; an empty name for other columns."""
    required = {field.alias or name: field.is_required() for name, field in row.model_fields.items()}
    known = {name.casefold(): name for name in required}
    header = [known.get(" ".join(cell.split()).casefold(), "") for cell in cells]
    for name, needed in required.items():
        if header.count(name) > 1:
            raise RecordError(f"the column {name!r} is there {header.count(name)} times, expected once")
        if needed and name not in header:
            raise RecordError(f"the column {name!r} is missing; the columns are {listed(cells)}")
    return header


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let a cell be a whole book, while this reads."""
    before = csv.field_size_limit(min(limit("line_megabytes") * MEGABYTE, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)
