"""LlamaIndex's labelled RAG datasets: `rag_dataset.json` and a folder of source files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oprag.compare.data.data_set import whole_text
from oprag.compare.data.document_library import folder_library
from oprag.compare.data.fields import given, optional_text, optional_texts, shown, text
from oprag.compare.data.files import companion, stem
from oprag.compare.data.gather import Gathered
from oprag.compare.data.passages import Passages
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import json_records
from oprag.errors import InputFileError
from oprag.options import check_choice

__all__ = ["read"]


def read(gathered: Gathered, *, documents: Path | None = None, search: str = "source") -> None:
    """Take in `{"examples": [{query, reference_contexts, reference_answer, …}]}`, or the folder that has it.

    A reference context that stands in a source file, white space aside, is evidence, at its first place in the first
    file that has it; `about` says how many of them were found. With "source", an example whose reference contexts are
    all found in one file is about that file, and any other one about all files. HTML files are read as they are, since
    LlamaIndex does so.

    Args:
        gathered: Where they come to.
        documents: The folder of the source files; `source_files` beside the JSON file, where it is downloaded to.
        search: What is searched for a question: "source", see above, or "all" files for every one.

    Raises:
        OptionError: `search` is something else.
        InputFileError: The file or the folder cannot be read.
        DataError: There are files in the folder that are neither text nor PDF.
        MissingExtraError: A source file is a PDF, and what reads it is not installed.
    """
    check_choice("search", search, ("source", "all"))
    path = gathered.path
    if path.is_dir():
        path = companion(path, "rag_dataset.json") or path / "rag_dataset.json"
    if not path.is_file():
        raise InputFileError(f"there is no file {path}", str(path))
    library = folder_library(documents or path.parent / "source_files", gathered)
    names = library.take_all()
    gathered.problems.check()
    passages = Passages({name: whole_text(gathered.text(name)) for name in names})
    for record in json_records(gathered.reads(path), gathered.problems):
        with gathered.problems.at(record.place):
            examples = given(record.fields, "examples")
            if not isinstance(examples, list):
                raise RecordError(f"examples must be a list, got {shown(examples)}")
            for number, example in enumerate(examples, 1):
                with gathered.problems.at(f"{path}, example {number}"):
                    if not isinstance(example, dict):
                        raise RecordError(f"must be an object, got {shown(example)}")
                    _example(gathered, example, f"{stem(path)}-{number}", passages, everywhere=search == "all")


def _example(
    gathered: Gathered, example: Mapping[str, Any], name: str, passages: Passages, *, everywhere: bool
) -> None:
    contexts = optional_texts(example, "reference_contexts")
    evidence = [part for part in (passages.find(context) for context in contexts) if part is not None]
    sources = {part.document for part in evidence}
    one_source = len(sources) == 1 and len(evidence) == len(contexts) and not everywhere
    answer = optional_text(example, "reference_answer")
    gathered.question(
        id=name,
        text=text(example, "query"),
        documents=sources if one_source else passages.names,
        answers=[answer] if answer and answer.strip() else [],
        evidence=dict.fromkeys(evidence),
        about={
            "contexts": len(contexts),
            "contexts_found": len(evidence),
            **{
                field: _author(example[field], field)
                for field in ("query_by", "reference_answer_by")
                if example.get(field)
            },
        },
    )


def _author(value: Any, field: str) -> str:
    """Who wrote it: "human", or "ai" with the name of the model."""
    if not isinstance(value, dict):
        raise RecordError(f"{field} must be an object or null, got {shown(value)}")
    said = (optional_text(value, part) for part in ("type", "model_name"))
    return " ".join(part for part in said if part)
