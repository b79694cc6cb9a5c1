"""Docugami's KG-RAG datasets: a CSV file of questions and a folder of PDF files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PurePosixPath

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.documents import folder_library
from oprag.compare.data.records import DataRow, csv_records
from oprag.compare.validation import Text
from oprag.masking import describe, listed
from oprag.options import check_bool

__all__ = ["read"]

_SOURCE_LINE = re.compile(r"^[^\S\n]*SOURCES?(?:\(S\))?\s*:", re.MULTILINE)


class _KgRagRow(DataRow):
    question: Text = Field(alias="Question")
    sources: str = Field(default="", alias="Source Docs")
    answer: Text | None = Field(default=None, alias="Answer")
    question_type: str = Field(default="", alias="Question Type")
    chunk_type: str = Field(default="", alias="Source Chunk Type")


def read(builder: DataSetBuilder, *, documents: Path | None = None, source_line: bool = True) -> None:
    """Read the columns `Question, Source Docs, Question Type, Source Chunk Type, Answer`; only the first is required.

    `Source Docs` has file names or patterns such as `*AAPL*`, separated by commas, semicolons or line breaks. A
    question without any is about all files. With `source_line=False`, the closing line of an answer that lists its
    sources is removed.
    """
    check_bool("source_line", source_line)
    library = folder_library(documents or builder.path.parent / "docs", builder)
    for record in csv_records(builder, builder.path, _KgRagRow):
        with builder.at(record.place):
            row = _KgRagRow.read(record.fields)
            answer = row.answer or ""
            if not source_line and (found := _SOURCE_LINE.search(answer)):
                answer = answer[: found.start()].rstrip()
            builder.question(
                id=record.name,
                text=row.question,
                documents=[library.take(name) for name in _documents(row.sources.strip(), library.names)],
                answers=[answer] if answer else [],
                about={"question_type": row.question_type or None, "source_chunk_type": row.chunk_type or None},
            )


def _documents(given: str, names: Collection[str]) -> Iterable[str]:
    """Documents that a cell refers to."""
    if not given:
        return names
    # File names may contain commas, so the whole cell is tried first.
    if found := _matched(given, names):
        return found
    for pattern in filter(None, map(str.strip, re.split(r"[;,\n]", given))):
        if not (matched := _matched(pattern, names)):
            raise RecordError(
                f"Source Docs has {describe(pattern)}, which matches no document; available documents: {listed(names)}"
            )
        found += matched
    return found


def _matched(pattern: str, names: Collection[str]) -> list[str]:
    def is_meant(path: PurePath) -> bool:
        return any(pattern == known or fnmatchcase(known, pattern) for known in (str(path), path.name, path.stem))

    return [name for name in names if is_meant(PurePosixPath(name))]
