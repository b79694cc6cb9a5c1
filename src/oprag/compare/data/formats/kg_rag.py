"""KG-RAG datasets of Docugami: a CSV file of questions and a folder of PDF files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.documents import folder_library
from oprag.compare.data.files import stem
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import as_text, as_texts, csv_records, json_value, shown, text
from oprag.masking import listed
from oprag.options import check_bool

__all__ = ["read"]

_SAID = {"Question Type": "question_type", "Source Chunk Type": "source_chunk_type"}
_SOURCE_LINE = re.compile(r"^[^\S\n]*SOURCES?(?:\(S\))?\s*:", re.MULTILINE)


def read(builder: DataSetBuilder, *, documents: Path | None = None, source_line: bool = True) -> None:
    """Take in `Question, Source Docs, Question Type, Source Chunk Type, Answer`; only the first must be.

    `Source Docs` is a file name or a pattern such as `*AAPL*`, or several with commas, semicolons or line breaks
    between them, or a JSON list. A question without any is about all files.

    Args:
        builder: Where they come to.
        documents: The folder of the PDF files; `docs` beside the CSV file, where the authors have it.
        source_line: Keep the line "SOURCE(S): …" that closes the answers of the authors.

    Raises:
        OptionError: `source_line` is neither True nor False.
        InputFileError: The file or the folder cannot be read.
        DataError: There are files in the folder that are no documents.
        MissingExtraError: What reads PDF files is not installed.
    """
    check_bool("source_line", source_line)
    library = folder_library(documents or builder.path.parent / "docs", builder)
    optional = ("Source Docs", "Answer", *_SAID)
    for record in csv_records(builder.reads(builder.path), builder.problems, ("Question",), optional):
        with builder.problems.at(record.place):
            fields = record.fields
            answer = fields.get("Answer")
            if answer is not None:
                as_text(answer, "Answer")
                answer = answer if source_line else as_text(_without_sources(answer), "Answer without its sources")
            names = _named(fields.get("Source Docs", ""), library.names)
            builder.question(
                id=f"{stem(builder.path)}-{record.number}",
                text=text(fields, "Question"),
                documents=[library.take(name) for name in names],
                answers=[] if answer is None else [answer],
                about={about: fields[column] for column, about in _SAID.items() if fields.get(column)},
            )


def _without_sources(answer: str) -> str:
    found = _SOURCE_LINE.search(answer)
    return answer if found is None else answer[: found.start()].rstrip()


def _named(given: str, names: Sequence[str]) -> Sequence[str]:
    """The documents that a cell names.

    Raises:
        RecordError: A part of it names none.
    """
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
        return as_texts(json_value(given), "Source Docs", least=1)
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
