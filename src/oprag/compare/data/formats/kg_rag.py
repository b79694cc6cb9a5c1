"""KG-RAG datasets of Docugami: a CSV file of questions and a folder of PDF files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.documents import folder_library
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import DataRow, Texts, as_text, csv_records, json_value, shown
from oprag.compare.validation import Text
from oprag.masking import listed
from oprag.options import check_bool

__all__ = ["read"]

_SOURCE_LINE = re.compile(r"^[^\S\n]*SOURCES?(?:\(S\))?\s*:", re.MULTILINE)


class _Row(DataRow):
    question: Text = Field(alias="Question")
    sources: str = Field(default="", alias="Source Docs")
    answer: Text | None = Field(default=None, alias="Answer")
    question_type: str = Field(default="", alias="Question Type")
    chunk_type: str = Field(default="", alias="Source Chunk Type")


class _Sources(DataRow):
    names: Texts = Field(alias="Source Docs", min_length=1)


def read(builder: DataSetBuilder, *, documents: Path | None = None, source_line: bool = True) -> None:
    """Read `Question, Source Docs, Question Type, Source Chunk Type, Answer`; only the first must be.

    `Source Docs` is a file name or a pattern such as `*AAPL*`, or several with commas, semicolons or line breaks
    between them, or a JSON list. A question without any is about all files.
    """
    check_bool("source_line", source_line)
    library = folder_library(documents or builder.path.parent / "docs", builder)
    for record in csv_records(builder.reads(builder.path), builder.problems, _Row):
        with builder.problems.at(record.place):
            row = _Row.read(record.fields)
            answer = row.answer
            if answer is not None and not source_line:
                answer = as_text(_without_sources(answer), "Answer without its sources")
            builder.question(
                id=record.name,
                text=row.question,
                documents=[library.take(name) for name in _named(row.sources, library.names)],
                answers=[] if answer is None else [answer],
                about={"question_type": row.question_type or None, "source_chunk_type": row.chunk_type or None},
            )


def _without_sources(answer: str) -> str:
    found = _SOURCE_LINE.search(answer)
    return answer if found is None else answer[: found.start()].rstrip()


def _named(given: str, names: Sequence[str]) -> Sequence[str]:
    """The documents that a cell names."""
    if not given.strip():
        return names
    found: dict[str, None] = {}
    for pattern in _patterns(given.strip(), names):
        matched = _matched(pattern, names)
        if not matched:
            raise RecordError(f"Source Docs has {shown(pattern)}, which is no document; there are {listed(names)}")
        found.update(dict.fromkeys(matched))
    return tuple(found)


def _patterns(given: str, names: Sequence[str]) -> Sequence[str]:
    if _matched(given, names):
        # Names of files have commas in them as well.
        return (given,)
    if given.startswith("["):
        return _Sources.read({"Source Docs": json_value(given)}).names
    return [part.strip() for part in re.split(r"[;,\n]", given) if part.strip()]


def _matched(pattern: str, names: Sequence[str]) -> list[str]:
    return [
        name
        for name in names
        if any(
            pattern == shown_as or fnmatchcase(shown_as, pattern)
            for shown_as in (name, PurePath(name).name, PurePath(name).stem)
        )
    ]
