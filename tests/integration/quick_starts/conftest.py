"""A folder of real documents, which the quick starts run in."""

from pathlib import Path

import pytest

from tests.integration.quick_starts.documents import write_documents


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quick_start")
    (folder / "data").mkdir()
    write_documents(folder / "data")
    return folder


@pytest.fixture
def data(written, monkeypatch):
    """The folder as a user names it, from the folder above."""
    monkeypatch.chdir(written)
    return Path("data")
