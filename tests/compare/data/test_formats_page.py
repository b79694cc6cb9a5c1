"""docs/reference/data_formats.md: its example is read as it stands there, and its table has every format and option."""

import inspect
import re
from pathlib import Path

import pytest

from oprag.compare import read_data
from oprag.compare.data.read import FORMATS, format_options
from tests.compare.data.writing import evidence_texts, write

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "data_formats.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL))
ROWS = {name: row for row, name in re.findall(r"^(\| `(\w+)`.*\|)$", PAGE.partition("## All formats")[2], re.MULTILINE)}


def test_the_example_is_read(tmp_path):
    assert set(FILES) == {"questions.jsonl", "harbour.txt", "documents.jsonl"}
    for name, content in FILES.items():
        write(tmp_path / name, content)
    data = read_data(tmp_path / "questions.jsonl")
    assert list(data.documents) == ["harbour.txt", "questions-3", "log-1", "log-2"]
    cranes, lamp, bread, ship = data.questions
    assert (cranes.id, cranes.answers, cranes.about) == ("cranes", ("nine", "9"), {"category": "numbers"})
    assert evidence_texts(data, cranes) == ["nine cranes"]
    assert (lamp.id, lamp.labels) == ("questions-2", ("By night", "B"))
    assert (bread.documents, bread.answers) == (("questions-3",), ("Ada",))
    assert ship.documents == ("log-1", "log-2")
    assert evidence_texts(data, ship) == ["The Heron came in"]
    assert read_data(tmp_path).questions == data.questions


def test_every_format_is_in_the_table():
    assert set(ROWS) == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_every_option_is_in_the_table_with_its_default(name):
    options = ROWS[name].split(" | ")[-1]
    named = set(re.findall(r"`(\w+)(?:=|`(?: \(|$| \|))", options)) - {"docs", "tmp"}
    assert named == set(format_options(name))
    for option in list(inspect.signature(FORMATS[name].lines).parameters.values())[1:]:
        assert f"`{option.name}={option.default!r}`".replace("'", '"') in options


def test_every_field_of_our_own_format_is_on_the_page():
    fields = "id question answers answer choices right_choice answer_index document document_id path text evidence"
    assert all(f"`{field}`" in PAGE for field in [*fields.split(), "source_documents"])
