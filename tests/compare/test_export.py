"""Rows as CSV and data frames, read by another program's reader."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.export import write_csv
from oprag.errors import MissingExtraError, ResultsFileError
from tests.compare.analysis.matrices import frame, made

COLUMNS = ("k", "score", "text", "flag", "names", "nothing")
ROWS: list[dict[str, Any]] = [
    {"k": 8, "score": 0.1, "text": 'a "quoted", text;\r\nof two lines', "flag": True, "names": ["ä", "b"]},
    {"k": None, "score": -1.5, "text": "", "flag": False, "names": [], "nothing": None},
]
FORMULAS = [
    "=1+1",
    "+1+cmd|' /C calc'!A1",
    "-2+3",
    "@SUM(A1:A9)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\u00a0=1",
    "＝1+1",
    "＋1",
    "－1",
    "＠x",
    '=HYPERLINK("http://example.org")',
    "- a list",
]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def csv_of(tmp_path, text) -> str:
    write_csv(tmp_path / "t.csv", ["text"], [{"text": text}])
    return read_csv(tmp_path / "t.csv")[0]["text"]


def test_csv_has_what_was_given(tmp_path):
    write_csv(tmp_path / "t.csv", COLUMNS, ROWS)
    first, second = read_csv(tmp_path / "t.csv")
    assert (first["k"], float(first["score"]), first["text"]) == ("8", 0.1, ROWS[0]["text"])
    assert json.loads(first["names"]) == ["ä", "b"]
    assert (first["flag"], second["k"], second["score"], second["nothing"]) == ("True", "", "-1.5", "")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_is_a_formula_of_a_spreadsheet(tmp_path, text):
    assert csv_of(tmp_path, text) == f"'{text}"


@pytest.mark.parametrize("text", ["-5", "+3.25", "-1e-4", "a=b", "x - y", "'=1", "", "1-2", "e+3"])
def test_other_text_and_numbers_stay_as_they_are(tmp_path, text):
    assert csv_of(tmp_path, text) == text


@given(st.text(max_size=20))
def test_any_text_comes_back(tmp_path_factory, text):
    # A hostile text can neither leave its cell nor its row, and is what it was but for the apostrophe.
    found = csv_of(tmp_path_factory.getbasetemp(), text)
    stored = text.encode(errors="replace").decode()
    assert found in (stored, f"'{stored}")
    assert not found.lstrip().startswith(("=", "@"))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old", encoding="utf-8")

    def rows():
        yield ROWS[0]
        raise ResultsFileError("the file is damaged")

    with pytest.raises(ResultsFileError):
        write_csv(path, COLUMNS, rows())
    assert path.read_text(encoding="utf-8") == "old"
    write_csv(path, COLUMNS, ROWS)
    assert len(read_csv(path)) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"oprag\[analysis\]"):
        frame(made({"a": 0.5})).to_pandas()
