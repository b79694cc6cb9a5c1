"""The records of JSON, JSON lines and CSV files, each with its place, and their fields."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from reprlib import Repr
from string import ascii_uppercase
from typing import Any, NamedTuple, NoReturn

from oprag.compare.data.files import lines, read_bytes
from oprag.compare.data.problems import Problems, RecordError
from oprag.files.limits import MEGABYTE, limit
from oprag.masking import listed

__all__ = [
    "Record",
    "about",
    "as_count",
    "as_text",
    "as_texts",
    "csv_records",
    "given",
    "identifier",
    "json_lines",
    "json_records",
    "json_value",
    "letter_place",
    "optional_text",
    "optional_texts",
    "shown",
    "text",
    "text_place",
]

Fields = Mapping[str, Any]

_HALF_PAIR = re.compile("[\ud800-\udfff]")

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlist = _SHORT.maxdict = 4


def shown(value: Any) -> str:
    """A value as a message shows it, cut where it is long."""
    return _SHORT.repr(value)


def given(fields: Fields, field: str) -> Any:
    """The value of a field that there must be.

    Raises:
        RecordError: There is no such field.
    """
    if field not in fields:
        raise RecordError(f"the field {field!r} is missing; the fields are {listed(fields)}")
    return fields[field]


def as_text(value: Any, what: str, *, blank: bool = False) -> str:
    """A value that must be a string with something in it.

    Args:
        value: The value.
        what: What it is called, for the message.
        blank: Let it be empty.

    Raises:
        RecordError: It is no string, is empty or white space, or has a half of a surrogate pair, which is no text.
    """
    if not isinstance(value, str):
        raise RecordError(f"{what} must be a string, got {shown(value)}")
    if not blank and not value.strip():
        raise RecordError(f"{what} must not be empty, got {shown(value)}")
    half = _HALF_PAIR.search(value)
    if half:
        raise RecordError(
            f"{what} has a half of a surrogate pair (\\u{ord(half.group()):04x}) at character {half.start():,}, which "
            "is no character; write the pair, or the character itself"
        )
    return value


def text(fields: Fields, field: str) -> str:
    """A field that must be a string with something in it.

    Raises:
        RecordError: It is missing or something else.
    """
    return as_text(given(fields, field), field)


def optional_text(fields: Fields, field: str) -> str | None:
    """A field that may be missing or null, and is a string otherwise.

    Raises:
        RecordError: It is something else.
    """
    value = fields.get(field)
    return None if value is None else as_text(value, field, blank=True)


def as_texts(value: Any, what: str, *, least: int = 0) -> tuple[str, ...]:
    """A value that must be a list of strings with something in each.

    Args:
        value: The value.
        what: What it is called, for the message.
        least: How many there must be.

    Raises:
        RecordError: It is no list, is shorter, or has something else in it.
    """
    if not isinstance(value, list):
        raise RecordError(f"{what} must be a list of strings, got {shown(value)}")
    if len(value) < least:
        raise RecordError(f"{what} must have at least {least} in it, got {shown(value)}")
    return tuple(as_text(one, f"{what}[{place}]") for place, one in enumerate(value))


def optional_texts(fields: Fields, field: str) -> tuple[str, ...]:
    """A field that may be missing or null, and is a list of strings otherwise, with something in each.

    Raises:
        RecordError: It is something else.
    """
    value = fields.get(field)
    return () if value is None else as_texts(value, field)


def identifier(fields: Fields, field: str, default: str) -> str:
    """A field that names something: a string, or a whole number as one; the default where it is missing or null.

    Raises:
        RecordError: It is something else.
    """
    value = fields.get(field)
    if value is None:
        return default
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise RecordError(f"{field} must be a string or a whole number, got {shown(value)}")
    return as_text(value, field)


def as_count(value: Any, what: str) -> int:
    """A value that must be a whole number from 0, or a string of its digits.

    Raises:
        RecordError: It is something else.
    """
    if type(value) is int and value >= 0:
        return value
    # ASCII, since other digits and very long numbers are something else.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    raise RecordError(f"{what} must be a whole number from 0, got {shown(value)}")


def letter_place(letter: Any, what: str, choices: Sequence[str]) -> int:
    """The place of a choice by its letter.

    Raises:
        RecordError: It is no letter of these choices.
    """
    letters = ascii_uppercase[: len(choices)]
    if not isinstance(letter, str) or len(letter) != 1 or letter not in letters:
        raise RecordError(f"{what} must be the letter of one of the {len(choices)} choices, got {shown(letter)}")
    return letters.index(letter)


def text_place(right: str, what: str, choices: Sequence[str]) -> int:
    """The place of a choice by its text; of equal ones the first.

    Raises:
        RecordError: It is none of them.
    """
    if right not in choices:
        raise RecordError(f"{what} must be one of the choices {shown(list(choices))}, got {shown(right)}")
    return choices.index(right)


def about(fields: Fields, *, but: Sequence[str] = ()) -> dict[str, str | int | float | bool]:
    """What a record says besides, to look at parts of a set: all its other fields.

    Null is left out, and what is a list or has fields of its own becomes its JSON.

    Args:
        fields: The record.
        but: The fields that are something else.
    """
    return {
        field: value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        for field, value in fields.items()
        if field not in but and value is not None
    }


_BOM = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """One record of a file.

    Attributes:
        place: Where it is, for messages: the file and the line.
        number: Its line, from 1; its item in a JSON list.
        fields: What it says.
    """

    place: str
    number: int
    fields: Mapping[str, Any]


def json_lines(path: Path, problems: Problems) -> Iterator[Record]:
    """One JSON object a line; blank lines are passed over, and what is no object is noted.

    Raises:
        InputFileError: The file cannot be read.
    """
    for number, place, line in _lines(path, problems):
        fields = None
        with problems.at(place):
            fields = _object(json_value(line))
        if fields is not None:
            yield Record(place, number, fields)


def json_records(path: Path, problems: Problems) -> Iterator[Record]:
    """The objects of a file that is one JSON object, a list of them, or one of them a line.

    Raises:
        InputFileError: The file cannot be read.
    """
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
                yield Record(place, number, fields)
    else:
        with problems.at(str(path)):
            whole = _object(whole)
            yield Record(str(path), 1, whole)


def csv_records(
    path: Path, problems: Problems, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[Record]:
    """One row of a CSV file with a header; cells are strings, and blank lines are passed over.

    Columns are found in any order and in any mixture of small and capital letters; others are passed over.

    Args:
        path: The file.
        problems: Where rows with more or fewer cells than the header are noted.
        columns: The columns that there must be.
        optional: The columns that there may be.

    Raises:
        InputFileError: The file cannot be read.
    """
    header: list[str] | None = None
    last = 0
    rows = csv.reader((f"{line}\n" for _, _, line in _lines(path, problems, blank=True)), strict=True)
    while True:
        place = f"{path}, line {last + 1}"
        row: list[str] = []
        with problems.at(place):
            try:
                with _long_cells():
                    row = next(rows)
            except StopIteration:
                break
            except csv.Error as error:
                raise RecordError(f"is no CSV: {error}") from error
        first, last = last + 1, max(rows.line_num, last + 1)
        if not any(cell.strip() for cell in row):
            continue
        fields = None
        with problems.at(place):
            if header is None:
                header = _header(row, columns, optional)
                continue
            if len(row) != len(header):
                raise RecordError(f"must have {len(header)} cells like the header, got {len(row)}: {shown(row)}")
            fields = {name: cell for name, cell in zip(header, row, strict=True) if name}
        if header is None:
            return
        if fields is not None:
            yield Record(place, first, fields)


def json_value(text: str) -> Any:
    """What a JSON text says.

    Raises:
        RecordError: It is no JSON.
    """
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
    """Each line with its number, from 1, and its place, without its end.

    An empty line stands for one that is no text, where blank ones are asked for, so that lines are counted right.
    """
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


def _header(row: Sequence[str], columns: Sequence[str], optional: Sequence[str]) -> list[str]:
    """The name of each cell as it is asked for; an empty one for a column that is not.

    Raises:
        RecordError: A column is missing, or there twice.
    """
    known = {name.casefold(): name for name in (*columns, *optional)}
    header = [known.get(" ".join(cell.split()).casefold(), "") for cell in row]
    for name in known.values():
        if header.count(name) > 1:
            raise RecordError(f"the column {name!r} is there {header.count(name)} times, expected once")
        if name in columns and name not in header:
            raise RecordError(f"the column {name!r} is missing; the columns are {listed(row)}")
    return header


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let a cell be a whole book, while this reads."""
    before = csv.field_size_limit(min(limit("line_megabytes") * MEGABYTE, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)
