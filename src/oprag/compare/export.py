"""Export of rows as CSV and pandas data frames."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprag.compare.db.text import storable
from oprag.errors import MissingExtraError
from oprag.files.writing import FileKind, replacing_target

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CSV", "data_frame", "write_csv"]

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")

_NUMBERS = {int, float, bool, type(None)}

# Columns of every table with one row per setting, or one row per answer; others depend on the axes and metrics.
_REQUIRED_COLUMNS = ({"asked", "answered", "failed", "tokens"}, {"question_id", "gold_answers", "status", "tokens"})
_HEAD = 1 << 16  # bytes read to find the column names

Rows = Iterable[Mapping[str, Any]]


def _is_csv(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).decode(errors="replace")
        columns = next(csv.reader(io.StringIO(head)), [])
    except (OSError, csv.Error):
        return False
    return any(names.issubset(columns) for names in _REQUIRED_COLUMNS)


CSV = FileKind("a CSV table of oprag", _is_csv)
"""Files written by `write_csv`."""


def write_csv(
    path: str | os.PathLike[str], columns: Sequence[str], rows: Rows, *, spreadsheet_safe: bool = True
) -> None:
    """Write a comma-separated CSV file in UTF-8, atomically; an existing file is replaced.

    Lists are written as JSON, None as an empty cell.

    Args:
        path: The path of the file.
        columns: The column names.
        rows: The rows.
        spreadsheet_safe: Whether to prefix an apostrophe to strings that a spreadsheet would evaluate as a formula:
            strings that start with =, +, - or @ (also after whitespace), a tab or a line break. Numbers are unchanged.

    Raises:
        OptionError: The file cannot be written.
    """
    with replacing_target(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        # With "\r\n" (RFC 4180) the writer quotes texts that contain "\r" or "\n"; with "\n" it would not quote "\r".
        writer = csv.writer(text, lineterminator="\r\n")
        # Column names can come from fields of the data, so they are escaped like any other text.
        for line in chain([columns], ([row.get(name) for name in columns] for row in rows)):
            writer.writerow([_cell(value, spreadsheet_safe=spreadsheet_safe) for value in line])
        text.detach()


def data_frame(columns: Sequence[str], rows: Rows, *, numbers: Collection[str] = ()) -> pd.DataFrame:
    """Make a pandas data frame. Integer columns with missing values have the dtype `Int64`.

    Args:
        columns: The column names.
        rows: The rows.
        numbers: Names of the numeric columns; needed for columns without any value.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError("A data frame", "analysis") from error
    made: dict[str, Any] = {}
    for name, values in _columns(columns, rows).items():
        kinds = {type(value) for value in values}
        if kinds == {int, type(None)}:
            made[name] = pd.array(values, dtype="Int64")
        elif name in numbers and kinds == {type(None)}:
            made[name] = pd.array(values, dtype="Float64")
        else:
            made[name] = values
    return pd.DataFrame(made, columns=list(columns))


def _cell(value: Any, *, spreadsheet_safe: bool) -> Any:
    value = _plain(value)
    if type(value) is list:
        value = json.dumps(value, ensure_ascii=False)
    if type(value) is str and spreadsheet_safe and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _columns(columns: Sequence[str], rows: Rows) -> dict[str, list[Any]]:
    """The values of each column; all have the same type or are None."""
    found: dict[str, list[Any]] = {name: [] for name in columns}
    for row in rows:
        for name, values in found.items():
            values.append(_plain(row.get(name)))
    return {name: _of_one_kind(values) for name, values in found.items()}


def _of_one_kind(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return values


def _plain(value: Any) -> Any:
    """A value that is a string, a number, a list of strings or None; other values as JSON."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else storable(value)
    if kind in _NUMBERS:
        return value
    if kind in (list, tuple) and all(type(one) is str for one in value):
        return [_plain(one) for one in value]
    return storable(json.dumps(value, ensure_ascii=False, default=str))
