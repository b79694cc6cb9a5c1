"""LlamaIndex's labelled RAG datasets: `rag_dataset.json` and a folder of source files."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import Evidence, whole_text
from oprag.compare.data.documents import folder_library
from oprag.compare.data.files import find_file, stem
from oprag.compare.data.records import DataRow, Texts, json_records
from oprag.compare.validation import String, Text
from oprag.errors import InputFileError
from oprag.options import check_choice

__all__ = ["read"]

_WORD = re.compile(r"\S+")


class _Author(DataRow):
    type: String | None = None
    model_name: String | None = None


class _Example(DataRow):
    query: Text
    reference_contexts: Texts | None = None
    reference_answer: String | None = None
    query_by: _Author | None = None
    reference_answer_by: _Author | None = None


class _File(DataRow):
    examples: list[Any]


def read(builder: DataSetBuilder, *, documents: Path | None = None, search: str = "source") -> None:
    """Read `{"examples": [{query, reference_contexts, reference_answer, …}]}`, or the folder that has it.

    A reference context that stands in a source file, white space aside, is evidence, at its first place in the first
    file that has it; `about` says how many of them were found. With "source", an example whose reference contexts are
    all found in one file is about that file, and any other one about all files. HTML files are read as they are, since
    LlamaIndex does so.
    """
    check_choice("search", search, ("source", "all"))
    path = builder.path
    if path.is_dir():
        path = find_file(path, "rag_dataset.json") or path / "rag_dataset.json"
    if not path.is_file():
        raise InputFileError(f"there is no file {path}", str(path))
    library = folder_library(documents or path.parent / "source_files", builder)
    names = library.take_all()
    builder.problems.check()
    passages = _Passages({name: whole_text(builder.text(name)) for name in names})
    for record in json_records(builder.reads(path), builder.problems):
        with builder.problems.at(record.place):
            for number, example in enumerate(_File.read(record.fields).examples, 1):
                with builder.problems.at(f"{path}, example {number}"):
                    name = f"{stem(path)}-{number}"
                    _example(builder, _Example.read(example), name, passages, everywhere=search == "all")


def _example(builder: DataSetBuilder, example: _Example, name: str, passages: _Passages, *, everywhere: bool) -> None:
    contexts = example.reference_contexts or ()
    evidence = [part for part in map(passages.find, contexts) if part is not None]
    sources = {part.document for part in evidence}
    one_source = len(sources) == 1 and len(evidence) == len(contexts) and not everywhere
    answer = example.reference_answer or ""
    builder.question(
        id=name,
        text=example.query,
        documents=sources if one_source else passages.names,
        answers=[answer] if answer.strip() else [],
        evidence=dict.fromkeys(evidence),
        about={
            "contexts": len(contexts),
            "contexts_found": len(evidence),
            "query_by": _author(example.query_by),
            "reference_answer_by": _author(example.reference_answer_by),
        },
    )


def _author(author: _Author | None) -> str | None:
    """Who wrote it: "human", or "ai" with the name of the model."""
    return None if author is None else " ".join(part for part in (author.type, author.model_name) if part) or None


class _Passages:
    """Finds passages in texts.

    Readers of PDF files differ in where they put white space, so a passage that was read by another one, or another
    version of the same, is seldom there to the letter.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._without_space: dict[str, _WithoutSpace] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the documents."""
        return tuple(self._texts)

    def find(self, passage: str) -> Evidence | None:
        """The first place of a passage in the first document that has it, to the letter or else without white space."""
        for name, whole in self._texts.items():
            start = whole.find(passage)
            if start >= 0:
                return Evidence(name, start, start + len(passage))
        letters = "".join(passage.split())
        for name, whole in self._texts.items():
            if name not in self._without_space:
                self._without_space[name] = _WithoutSpace(whole)
            span = self._without_space[name].find(letters)
            if span is not None:
                return Evidence(name, *span)
        return None


class _WithoutSpace:
    """A text without its white space, and where each of its characters was."""

    def __init__(self, text: str) -> None:
        words = [(match.start(), match.group()) for match in _WORD.finditer(text)]
        self._letters = "".join(word for _, word in words)
        self._starts = [start for start, _ in words]
        self._before = [0, *accumulate(len(word) for _, word in words)]

    def find(self, letters: str) -> tuple[int, int] | None:
        place = self._letters.find(letters)
        if place < 0:
            return None
        return self._origin(place), self._origin(place + len(letters) - 1) + 1

    def _origin(self, place: int) -> int:
        word = bisect_right(self._before, place) - 1
        return self._starts[word] + place - self._before[word]
