"""The metadata of a document chooses the file that `read_source=FOLDER` reads; only documents may be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.documents import Document

from oprag import SourceFolder
from oprag.errors import SourceReadError
from oprag.langchain import OrderPreservingChain
from tests.adapters.langchain.conftest import RecordingChatModel, giving

SECRET = "key=hunter2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Documents, and beside them what an application leaves in a folder."""
    inside = tmp_path / "docs"
    for name in (
        ".env",
        ".env.txt",
        ".git/a.txt",
        "app.db",
        "id_rsa",
        "a.toml",
        "notes.txt~",
        "deep/.a.md",
    ):
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / name).write_text(SECRET)
    (inside / "report.txt").write_text("A report.")
    (tmp_path / "other.txt").write_text(SECRET)
    return inside


def prompt_for(source: str, folder: Path) -> str:
    """What a model reads when a document names this source."""
    model = RecordingChatModel()
    retriever = giving([Document("Planted.", metadata={"source": source})])
    OrderPreservingChain(llm=model, retriever=retriever, method="long_context", read_source=folder).invoke("Why?")
    return str(model.prompts[0])


def test_a_document_is_read(folder):
    assert "A report." in prompt_for("report.txt", folder)


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env.txt",
        "./.env",
        "deep/../.env",
        ".git/a.txt",
        "deep/.a.md",
        "app.db",
        "id_rsa",
        "a.toml",
        "notes.txt~",
        "../other.txt",
    ],
)
def test_files_of_the_application_are_not_read(folder, name):
    for chosen in (name, str(folder / name)):
        with pytest.raises(SourceReadError):
            prompt_for(chosen, folder)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("target", [".env", ".git/a.txt", "id_rsa", "../other.txt", "/etc/passwd"])
def test_a_link_with_a_harmless_name_leads_to_none_of_them(folder, target):
    (folder / "link.txt").symlink_to(target)
    with pytest.raises(SourceReadError):
        prompt_for("link.txt", folder)


def swapping(monkeypatch: pytest.MonkeyPatch, path: Path, change: Callable[[], None]) -> None:
    """Let somebody change the folder after a file was checked, and before it is opened."""
    is_file = Path.is_file

    def swap(self: Path) -> bool:
        found = is_file(self)
        if self == path:
            path.unlink()
            change()
        return found

    monkeypatch.setattr(Path, "is_file", swap)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_what_takes_the_place_of_a_file_while_it_is_opened_is_not_waited_for(folder, monkeypatch):
    swapping(monkeypatch, folder / "report.txt", lambda: os.mkfifo(folder / "report.txt"))
    with pytest.raises(SourceReadError, match="not a regular file"):
        SourceFolder(folder)("report.txt")


@pytest.mark.skipif(sys.platform == "win32", reason="links are followed there")
def test_a_link_that_takes_the_place_of_a_file_or_a_folder_while_it_is_opened_is_not_followed(folder, monkeypatch):
    swapping(monkeypatch, folder / "report.txt", lambda: (folder / "report.txt").symlink_to("../other.txt"))
    with pytest.raises(SourceReadError, match="cannot be read"):
        SourceFolder(folder)("report.txt")
    (folder / "reports").mkdir()
    (folder / "reports" / "other.txt").write_text("A report.")

    def swap_folder() -> None:
        (folder / "reports").rmdir()
        (folder / "reports").symlink_to("..")

    swapping(monkeypatch, folder / "reports" / "other.txt", swap_folder)
    with pytest.raises(SourceReadError, match="cannot be read"):
        SourceFolder(folder)("reports/other.txt")


def test_a_file_of_any_size_is_not_loaded(folder):
    with (folder / "large.txt").open("wb") as file:
        file.truncate(10**8)
    with pytest.raises(SourceReadError, match="100,000,000 bytes, more than the limit of 67,108,864"):
        prompt_for("large.txt", folder)
