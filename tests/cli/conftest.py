"""Fixtures of the commands."""

import pytest

from tests.cli.commands import PARTS


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.md"
    path.write_text("".join(PARTS), encoding="utf-8")
    return path
