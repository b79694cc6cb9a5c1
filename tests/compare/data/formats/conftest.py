"""In every test of a format: a data set names the files that it was read from, and no others."""

from pathlib import Path

import pytest

from oprag._internal.files.reading import open_regular
from oprag.compare.data.read import DataSetBuilder


@pytest.fixture(autouse=True)
def _files_are_named(monkeypatch):
    read: set[Path] = set()
    really_opened, really_begun, really_made = open_regular, DataSetBuilder.__init__, DataSetBuilder.data_set

    def opened(path):
        read.add(path.resolve())
        return really_opened(path)

    def begun(self, path, within=None):
        read.clear()
        really_begun(self, path, within)

    def made(self, name):
        data = really_made(self, name)
        assert {path.resolve() for path in data.files} == read
        return data

    monkeypatch.setattr("oprag.compare.data.files.open_regular", opened)
    monkeypatch.setattr(DataSetBuilder, "__init__", begun)
    monkeypatch.setattr(DataSetBuilder, "data_set", made)
