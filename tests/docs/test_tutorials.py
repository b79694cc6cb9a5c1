"""The tutorials, block by block: each prints what the page shows."""

import re
import shutil
import sys
import textwrap
from types import ModuleType

import pytest
from llama_index.core import Document, Settings
from llama_index.core.readers.base import BaseReader
from pypdf import PdfReader

from tests.pdfs import pdf
from tests.reader import ROOT

STORY = ROOT / "examples" / "compare_orders" / "lighthouse.md"
BLOCKS = re.compile(r"```python\n(.*?)```(?:(?:\n\n[^`\n]+)?\n\n```text\n(.*?)```)?", re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the PDF file of the tutorials: 14 lines a page."""
    monkeypatch.chdir(tmp_path)
    text = STORY.read_text(encoding="utf-8").removeprefix("# ")
    lines = [line for paragraph in text.split("\n") for line in textwrap.wrap(paragraph, 80) or [""]]
    pages = ["\n".join(lines[start : start + 14]) for start in range(0, len(lines), 14)]
    (tmp_path / "book.pdf").write_bytes(pdf(*pages))
    return tmp_path


class PDFReader(BaseReader):
    """Reads as the class of llama-index-readers-file, which is not installed: one document per page."""

    def load_data(self, file, extra_info, fs=None):
        return [
            Document(
                text=page.extract_text(), metadata={"page_label": str(number), "file_name": file.name, **extra_info}
            )
            for number, page in enumerate(PdfReader(file).pages, 1)
        ]


@pytest.fixture
def readers_of_files(monkeypatch):
    module = ModuleType("llama_index.readers.file")
    module.__getattr__ = lambda name: PDFReader  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "llama_index.readers", ModuleType("llama_index.readers"))
    monkeypatch.setitem(sys.modules, "llama_index.readers.file", module)


def check(page, capsys):
    names = {"__name__": "__main__"}
    blocks = BLOCKS.findall((ROOT / "docs" / "tutorials" / page).read_text(encoding="utf-8"))
    for block, shown in blocks:
        exec(compile(block, page, "exec"), names)
        printed = capsys.readouterr().out
        assert "\n".join(line.rstrip() for line in printed.splitlines()).strip() == shown.strip()
    return len([shown for _, shown in blocks if shown])


@pytest.mark.usefixtures("folder")
def test_langchain(capsys):
    assert check("langchain.md", capsys) == 5


@pytest.mark.usefixtures("folder", "readers_of_files")
def test_llama_index(capsys, monkeypatch):
    monkeypatch.setattr(Settings, "_llm", None)
    assert check("llama_index.md", capsys) == 5


def test_compare_your_chain(tmp_path, monkeypatch, capsys):
    shutil.copytree(STORY.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    assert check("compare_your_chain.md", capsys) == 1
