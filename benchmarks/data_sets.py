"""Question sets from a folder: documents and questions as JSON lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["DataSet", "Question", "read_set", "rows_of"]


class Question(NamedTuple):
    """A question about one document.

    Attributes:
        text: The question.
        document_id: The id of its document.
        evidence: The character offsets (start, end) of the evidence.
        source_documents: The names of the documents that the answer was taken from, if the set names them.
    """

    text: str
    document_id: str
    evidence: tuple[tuple[int, int], ...] = ()
    source_documents: tuple[str, ...] = ()


class DataSet(NamedTuple):
    """The texts of a set by id, and its questions."""

    texts: dict[str, str]
    questions: list[Question]


def read_set(folder: Path, count: int | None = None) -> DataSet:
    """Read a set.

    Args:
        folder: The folder of documents.jsonl.gz and questions.jsonl.gz.
        count: Maximum number of questions, spread evenly over the set; all by default.
    """
    texts = {row["document_id"]: row["text"] for row in rows_of(folder / "documents.jsonl.gz")}
    questions = [
        Question(
            row["question"],
            row["document_id"],
            tuple((span["start"], span["end"]) for span in row.get("evidence") or ()),
            tuple(row.get("source_documents") or ()),
        )
        for row in rows_of(folder / "questions.jsonl.gz")
    ]
    step = 1 if count is None else max(1, len(questions) // count)
    return DataSet(texts, questions[::step][:count])


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
