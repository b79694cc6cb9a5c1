"""Limits on reading files, and the table of them in docs/reference/data_formats.md."""

import re
from pathlib import Path

import pytest

from oprag._internal.files.reading import DEFAULTS, limit, variable
from oprag.errors import OptionError

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "data_formats.md").read_text(encoding="utf-8")


def test_the_table_has_every_limit():
    rows = re.findall(r"^\|[^|]+\| ([\d,]*\d)\b[^|]*\| `(OPRAG_MAX_\w+)` \|$", PAGE, re.MULTILINE)
    assert rows == [(f"{number:,}", variable(name)) for name, number in DEFAULTS.items()]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1e9", "many", "٣", "²", "9" * 10, "9" * 5_000])
def test_values_that_are_refused(monkeypatch, text):
    monkeypatch.setenv("OPRAG_MAX_PDF_PAGES", text)
    with pytest.raises(OptionError, match="OPRAG_MAX_PDF_PAGES must be an integer from 1 to 999,999,999, got"):
        limit("pdf_pages")
