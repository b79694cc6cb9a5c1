"""Real documents of the kinds that people load, made from what is on a machine after the tests were installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import pydoc
import re
import shutil
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from pydoc_data.topics import topics

import matplotlib as mpl
import pypdf

from tests.pdfs import pdf

__all__ = ["TRANSCRIPT", "html_text", "text_of", "write_documents"]

PDFS = {"language": ("compound", "execmodel", "import", "objects"), "data_model": ("types", "specialnames")}
TEXTS = {"strings": ("strings", "formatstrings", "string-methods"), "debugger": ("debugger", "try", "exceptions")}
READMES = ("openai", "pydantic")
MODULES = ("argparse", "logging")

# Who says what in a recorded reading, in which no sentence is short.
_SENTENCES = re.findall(r"[A-Z][^.]{40,150}\.", " ".join(topics["objects"].split()))
TRANSCRIPT = [(("Ines", "Omar", "Ruth", "Lena")[number % 4], said) for number, said in enumerate(_SENTENCES)]


def write_documents(folder: Path) -> None:
    """Two PDFs, texts, Markdown files and web pages each, a table, and a transcript."""
    for name, parts in PDFS.items():
        (folder / f"{name}.pdf").write_bytes(pdf(*_pages("\n\n".join(topics[part] for part in parts))))
    for name, parts in TEXTS.items():
        (folder / f"{name}.txt").write_text("\n\n".join(topics[part] for part in parts), encoding="utf-8")
    for name in READMES:
        # What a package shows on its page: a readme, here with a changelog, in Markdown.
        description = importlib.metadata.metadata(name).json["description"]
        (folder / f"{name}.md").write_text(str(description), encoding="utf-8")
    for name in MODULES:
        shown = pydoc.HTMLDoc()
        page = shown.page(name, shown.docmodule(importlib.import_module(name)))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    shutil.copy(Path(mpl.get_data_path(), "sample_data", "msft.csv"), folder)
    (folder / "meeting.srt").write_text(_subtitles(), encoding="utf-8")


def text_of(path: Path) -> str:
    """The text of a document, as its readers see it."""
    if path.suffix == ".pdf":
        return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    text = path.read_text(encoding="utf-8")
    return html_text(text) if path.suffix == ".html" else text


def html_text(page: str) -> str:
    """What a web page shows."""
    reader = _Texts()
    reader.feed(page)
    return "".join(reader.texts)


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def _pages(text: str, lines: int = 46) -> list[str]:
    """The pages of a text, in the characters that fonts of PDF files have."""
    printable = text.encode("cp1252", "replace").decode("cp1252")
    wrapped = [line for paragraph in printable.split("\n") for line in textwrap.wrap(paragraph, 88) or [""]]
    return ["\n".join(wrapped[start : start + lines]) for start in range(0, len(wrapped), lines)]


def _subtitles() -> str:
    """The transcript as a file of subtitles."""
    entries: list[str] = []
    second = 0
    for number, (speaker, said) in enumerate(TRANSCRIPT, 1):
        end = second + 2 + len(said) // 15
        entries.append(f"{number}\n{_time(second)} --> {_time(end)}\n{speaker}: {said}\n")
        second = end
    return "\n".join(entries)


def _time(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d},000"
