"""LlamaIndex's labelled RAG datasets: `rag_dataset.json` and a folder of source files."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import Evidence, whole_text
from oprag.compare.data.documents import folder_library
from oprag.compare.data.files import needed_file, stem
from oprag.compare.data.records import DataRow, Texts, json_records
from oprag.compare.validation import String, Text
from oprag.options import check_choice

__all__ = ["read"]


class _Example(DataRow):
    query: Text
    reference_contexts: Texts | None = None
    reference_answer: String | None = None
    query_by: dict[str, Any] | None = None
    reference_answer_by: dict[str, Any] | None = None


class _File(DataRow):
    examples: list[Any]


def read(builder: DataSetBuilder, *, documents: Path | None = None, search: str = "source") -> None:
    """Read `{"examples": [{query, reference_contexts, reference_answer, …}]}`, or the folder that contains it.

    A reference context that a source file contains, ignoring white space, becomes evidence, at its first occurrence in
    the first file that contains it; `about` has the number of contexts found. With `search="source"`, an example whose
    reference contexts were all found in one file is about that file, and any other example about all files. HTML tags
    in source files are kept, as LlamaIndex keeps them.
    """
    check_choice("search", search, ("source", "all"))
    path = builder.path
    if path.is_dir():
        path = needed_file(path, "rag_dataset.json")
    names = folder_library(documents or path.parent / "source_files", builder).take_all()
    passages = _Passages({name: whole_text(builder.text(name)) for name in names})
    for record in json_records(builder, path):
        with builder.at(record.place):
            for number, given in enumerate(_File.read(record.fields).examples, 1):
                with builder.at(f"{path}, example {number}"):
                    example = _Example.read(given)
                    _question(builder, f"{stem(path)}-{number}", example, passages, everywhere=search == "all")


def _question(builder: DataSetBuilder, name: str, example: _Example, passages: _Passages, *, everywhere: bool) -> None:
    contexts = example.reference_contexts or ()
    evidence = [part for part in map(passages.find, contexts) if part is not None]
    sources = {part.document for part in evidence}
    one_source = len(sources) == 1 and len(evidence) == len(contexts) and not everywhere
    answer = example.reference_answer or ""
    builder.question(
        id=name,
        text=example.query,
        documents=sources if one_source else passages.texts,
        answers=[answer] if answer.strip() else [],
        evidence=dict.fromkeys(evidence),
        about={
            "contexts": len(contexts),
            "contexts_found": len(evidence),
            "query_by": _author(example.query_by),
            "reference_answer_by": _author(example.reference_answer_by),
        },
    )


def _author(author: Mapping[str, Any] | None) -> str | None:
    """Author as text: "human", or "ai" with the name of the model."""
    return " ".join(str(author[key]) for key in ("type", "model_name") if author.get(key)) or None if author else None


class _Passages:
    """Finds passages in texts, exactly or else ignoring white space, which PDF readers insert anywhere."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._without_space: dict[str, tuple[str, Sequence[int]]] = {}

    def find(self, passage: str) -> Evidence | None:
        """First occurrence of a passage in the first document that contains it."""
        for name, text in self.texts.items():
            start = text.find(passage)
            if start >= 0:
                return Evidence(name, start, start + len(passage))
        letters = "".join(passage.split())
        for name, text in self.texts.items():
            if name not in self._without_space:
                places = array("L", (place for place, letter in enumerate(text) if not letter.isspace()))
                self._without_space[name] = "".join(text.split()), places
            squeezed, places_of = self._without_space[name]
            start = squeezed.find(letters)
            if start >= 0:
                return Evidence(name, places_of[start], places_of[start + len(letters) - 1] + 1)
        return None
