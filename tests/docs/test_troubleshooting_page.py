"""The page about troubleshooting covers every error, warning and reason for a drop."""

import re
from typing import get_args, get_type_hints

import pytest

from oprag import errors
from oprag.chunk import Drop
from tests.reader import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_and_warning_has_a_row(name):
    assert name in ROWS or name == "OpragWarning"


def test_no_row_is_about_something_else():
    assert {name for name in ROWS if name.endswith(("Error", "Warning"))} <= {*errors.__all__}


@pytest.mark.parametrize("reason", get_args(get_type_hints(Drop)["reason"]))
def test_every_reason_for_a_drop_is_named(reason):
    assert f"`{reason}`" in PAGE
