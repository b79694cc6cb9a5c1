"""NarrativeQA (Kočiský et al. 2018): the folder of the authors' repository, with the stories downloaded."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.documents import DocumentLibrary
from oprag.compare.data.files import file_inside, needed_file, read_bytes
from oprag.compare.data.html_text import html_text
from oprag.compare.data.records import DataRow, csv_records
from oprag.compare.validation import Text
from oprag.errors import InputFileError, OptionError
from oprag.files.reading import file_text
from oprag.masking import describe
from oprag.options import check_choice

__all__ = ["read"]

_Split = Literal["train", "valid", "test"]


class _Document(DataRow):
    document_id: Text
    kind: Text
    wiki_title: str = ""


class _NarrativeQuestion(DataRow):
    document_id: Text
    split: _Split = Field(alias="set")
    question: Text
    answer1: Text
    answer2: Text


def read(
    builder: DataSetBuilder,
    *,
    documents: Path | None = None,
    split: str | None = None,
    exclude: Collection[str] = (),
) -> None:
    """Read the questions of `qaps.csv` and the stories listed in `documents.csv`."""
    if split is not None:
        check_choice("split", split, get_args(_Split), ", or None")
    _check_ids(exclude)
    listed: dict[str, dict[str, str | None]] = {}
    for record in csv_records(builder, needed_file(builder.path, "documents.csv"), _Document):
        with builder.at(record.place):
            document = _Document.read(record.fields)
            listed[document.document_id] = {"kind": document.kind, "title": document.wiki_title or None}
    if unknown := sorted({*exclude} - {*listed}):
        raise OptionError(f"exclude has document ids that are not in documents.csv: {', '.join(unknown)}", exclude)
    folder = documents or builder.path / "tmp"
    library = DocumentLibrary(folder, listed, lambda name: _story(builder, folder, name), builder)
    for record in csv_records(builder, needed_file(builder.path, "qaps.csv"), _NarrativeQuestion):
        with builder.at(record.place):
            if split not in (None, record.fields["set"]) or record.fields["document_id"] in exclude:
                continue
            row = _NarrativeQuestion.read(record.fields)
            builder.question(
                id=record.name,
                text=row.question,
                documents=[library.take(row.document_id)],
                answers=dict.fromkeys((row.answer1, row.answer2)),
                about={"split": row.split, **listed[row.document_id]},
            )


def _check_ids(exclude: Any) -> None:
    if not isinstance(exclude, list | tuple | set) or not all(isinstance(name, str) for name in exclude):
        raise OptionError(f"exclude must be a list of document ids, got {describe(exclude)}", exclude)


def _story(builder: DataSetBuilder, folder: Path, name: str) -> str:
    try:
        path = builder.reads(file_inside(folder, f"{name}.content"))
    except InputFileError as error:
        raise InputFileError(
            f"{error}; download the stories with the authors' download_stories.sh, or skip this one with `exclude`",
            name,
        ) from error
    data = read_bytes(path)
    try:
        data.decode()
    except UnicodeDecodeError:
        # Some of the published stories are Latin-1.
        data = data.decode("latin-1").encode()
    return html_text(file_text(str(path), data))
