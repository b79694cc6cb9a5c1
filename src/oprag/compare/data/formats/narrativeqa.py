"""NarrativeQA (Kočiský et al. 2018): the folder of the authors' repository, with the stories downloaded."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.documents import DocumentLibrary
from oprag.compare.data.files import file_inside, find_file, read_bytes
from oprag.compare.data.html_text import html_text
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import DataRow, csv_records
from oprag.compare.validation import Text
from oprag.errors import InputFileError, OptionError
from oprag.files.reading import file_text
from oprag.masking import describe
from oprag.options import check_bool, check_choice, check_text

__all__ = ["read"]

_SUMMARIES = "third_party/wikipedia/summaries.csv"
_SPLITS = ("train", "valid", "test")


def _known_split(split: str) -> str:
    if split not in _SPLITS:
        raise RecordError(f"set must be one of {', '.join(_SPLITS)}, got {describe(split)}")
    return split


_Split = Annotated[Text, AfterValidator(_known_split)]


class _Part(DataRow):
    document_id: Text
    split: _Split = Field(alias="set")


class _Asked(_Part):
    question: Text
    answer1: Text
    answer2: Text


class _Document(_Part):
    kind: Text
    wiki_title: str = ""


class _Summary(DataRow):
    document_id: Text
    summary: Text


def read(
    builder: DataSetBuilder,
    *,
    documents: Path | None = None,
    split: str | None = None,
    summaries: bool = False,
    exclude: Collection[str] = (),
    encoding: str | None = None,
    strip_html: bool = True,
) -> None:
    """Read `qaps.csv` with the stories that `documents.csv` lists."""
    if split is not None:
        check_choice("split", split, _SPLITS, ", or None")
    check_bool("summaries", summaries)
    check_bool("strip_html", strip_html)
    check_text("encoding", encoding, optional=True)
    if encoding is not None:
        _check_encoding(encoding)
    if not _are_ids(exclude):
        raise OptionError(f"exclude must be a list of ids of documents, got {describe(exclude)}", exclude)
    listed = _listed(builder, set(exclude))
    if summaries:
        texts = _summaries(builder)
        library = DocumentLibrary(builder.path / _SUMMARIES, texts, texts.__getitem__, builder)
    else:
        folder = documents or builder.path / "tmp"
        read_story = partial(_story, builder, folder, encoding=encoding, strip_html=strip_html)
        library = DocumentLibrary(folder, listed, read_story, builder)
    for record in csv_records(_file(builder, "qaps.csv"), builder.problems, _Asked):
        with builder.problems.at(record.place):
            part = _Part.read(record.fields)
            if (split is not None and part.split != split) or part.document_id in exclude:
                continue
            asked = _Asked.read(record.fields)
            if asked.document_id not in listed:
                raise RecordError(f"the document {asked.document_id!r} is not in documents.csv")
            builder.question(
                id=record.name,
                text=asked.question,
                documents=[library.take(asked.document_id)],
                answers=dict.fromkeys((asked.answer1, asked.answer2)),
                about={"split": asked.split, **listed[asked.document_id]},
            )


def _listed(builder: DataSetBuilder, exclude: set[str]) -> dict[str, dict[str, str | None]]:
    """What is said of each document."""
    listed = {}
    for record in csv_records(_file(builder, "documents.csv"), builder.problems, _Document):
        with builder.problems.at(record.place):
            document = _Document.read(record.fields)
            listed[document.document_id] = {"kind": document.kind, "title": document.wiki_title or None}
    unknown = sorted(exclude - listed.keys())
    if unknown:
        raise OptionError(f"exclude names what is not in documents.csv: {', '.join(unknown)}", exclude)
    return listed


def _file(builder: DataSetBuilder, name: str) -> Path:
    path = find_file(builder.path, name)
    if path is None:
        raise InputFileError(
            f"there is no {name} in {builder.path}; expected the folder of the repository of NarrativeQA",
            str(builder.path),
        )
    return builder.reads(path)


def _check_encoding(encoding: str) -> None:
    try:
        "a".encode(encoding)
    except (LookupError, ValueError) as error:
        raise OptionError(
            f"encoding must be one that Python knows, such as 'latin-1', got {describe(encoding)}"
        ) from error


def _summaries(builder: DataSetBuilder) -> dict[str, str]:
    summaries = {}
    for record in csv_records(_file(builder, _SUMMARIES), builder.problems, _Summary):
        with builder.problems.at(record.place):
            row = _Summary.read(record.fields)
            summaries[row.document_id] = row.summary
    return summaries


def _are_ids(exclude: Any) -> bool:
    if isinstance(exclude, str) or not isinstance(exclude, Collection):
        return False
    return all(isinstance(name, str) for name in exclude)


def _recoded(path: Path, data: bytes, encoding: str) -> bytes:
    try:
        return data.decode(encoding).encode()
    except UnicodeError as error:
        raise RecordError(f"{path} is neither UTF-8 nor {encoding}: {error}") from error


def _story(builder: DataSetBuilder, folder: Path, document: str, encoding: str | None, *, strip_html: bool) -> str:
    try:
        path = file_inside(folder, f"{document}.content")
    except RecordError as error:
        raise RecordError(
            f"{error}; download the stories with the authors' download_stories.sh, or leave this one out with `exclude`"
        ) from error
    data = read_bytes(builder.reads(path))
    if encoding is not None:
        try:
            data.decode()
        except UnicodeDecodeError:
            data = _recoded(path, data, encoding)
    story = file_text(str(path), data)
    return html_text(story) if strip_html else story
