"""Fixtures of the commands."""

import pytest

from tests.compare.folders import PARTS


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.md"
    path.write_text("".join(PARTS[:4]), encoding="utf-8")
    return path
