"""Our own plain format: one question a line, with its documents in files, in the line, or in a file of documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.documents import DocumentLibrary, document_file, folder_library, lines_library
from oprag.compare.data.files import companion, inside, stem
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import (
    Record,
    about,
    as_count,
    as_text,
    as_texts,
    given,
    identifier,
    json_lines,
    letter_place,
    optional_texts,
    shown,
    text,
    text_place,
)
from oprag.errors import InputFileError, OpragWarning
from oprag.warn import warn

__all__ = ["read"]

_ALL = "*"
_WHERE = ("document", "document_id", "path", "text")
_CHOICES = "choices"
_PLACE = ("right_choice", "answer_index")
_GOLD = (("answer", "answers"), _PLACE, (_CHOICES,), ("evidence",))
"""The fields that nobody misses where they are misspelled, those together that say the same."""

_CLOSE = 0.8  # how like a field must be to one that is missing; answer_text is 0.78 like answer_index

_FIELDS = ("id", "question", *_WHERE, *(name for names in _GOLD for name in names))


def read(builder: DataSetBuilder, *, documents: Path | None = None) -> None:
    """Take in lines of `{question, answers, document or path or text, …}`; `docs/data_formats.md` has all fields.

    Args:
        builder: Where they come to.
        documents: A file of documents as JSON lines, a folder that has `documents.jsonl`, or a folder of text, Markdown
            and PDF files; `documents.jsonl` beside the questions, where it is there. Any other file is the document of
            all questions that name none.

    Raises:
        InputFileError: A file or folder cannot be read.
        DataError: A line of the documents is none, or a folder has other files in it.
        MissingExtraError: A document is a PDF file, and what reads it is not installed.
    """
    path = builder.path
    if path.is_dir():
        path = companion(path, "questions.jsonl") or path / "questions.jsonl"
        if not path.is_file():
            raise InputFileError(f"there is no questions.jsonl in the folder {builder.path}", str(builder.path))
    alone: str | None = None
    if documents is not None and not documents.is_dir() and not _has_lines(documents):
        name, whole = documents.name.removesuffix(".gz"), document_file(builder.reads(documents))
        alone = builder.document_once(name, "a path", lambda: whole)
        documents = None
    library = _library(documents, path, builder)
    seen: dict[str, None] = {}
    for record in json_lines(builder.reads(path), builder.problems):
        seen |= dict.fromkeys(record.fields)
        with builder.problems.at(record.place):
            _question(builder, record, path, library, alone)
    builder.other_fields |= _other_fields(seen)
    for name, meant in builder.other_fields.items():
        if meant:
            warn(f"{path}: there is no field {name!r}; did you mean {meant!r}? It is kept in `about`", OpragWarning)


def _other_fields(seen: Collection[str]) -> dict[str, str]:
    """The fields that are unknown, each with one that no record has, and that it may be a misspelling of."""
    lacking = [
        name
        for names in _GOLD
        if not any(name in seen for name in names) and (names is not _PLACE or _CHOICES in seen)
        for name in names
    ]
    unknown = [name for name in seen if name not in (*_FIELDS, "source_documents")]
    return {name: _meant(name, lacking) for name in unknown}


def _meant(name: str, lacking: Sequence[str]) -> str:
    """The field that a name may be a misspelling of; evidence_id is about the evidence, and is none."""
    others = [other for other in lacking if not name.startswith(f"{other}_")]
    return next(iter(get_close_matches(name.lower(), others, n=1, cutoff=_CLOSE)), "")


def _has_lines(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".jsonl", ".json", ".ndjson"))


def _library(documents: Path | None, path: Path, builder: DataSetBuilder) -> DocumentLibrary | None:
    beside = companion(path.parent, "documents.jsonl")
    if documents is None:
        return None if beside is None else lines_library(beside, builder)
    if documents.is_dir():
        lines = companion(documents, "documents.jsonl")
        return folder_library(documents, builder) if lines is None else lines_library(lines, builder)
    return lines_library(documents, builder)


def _question(
    builder: DataSetBuilder, record: Record, path: Path, library: DocumentLibrary | None, alone: str | None
) -> None:
    fields = record.fields
    line = f"{stem(path)}-{record.number}"
    choices = optional_texts(fields, "choices")
    asked = text(fields, "question")
    answers = _answers(fields)
    right = _right(fields, choices)
    if alone is not None and all(fields.get(name) is None for name in _WHERE):
        documents: Sequence[str] = [alone]
        taken: Sequence[str] = ()
    else:
        documents, taken = _documents(builder, fields, path, library, line)
    builder.question(
        id=identifier(fields, "id", line),
        text=asked,
        documents=documents,
        answers=answers,
        choices=choices,
        right_choice=right,
        evidence=_evidence(fields.get("evidence"), documents),
        about=about(fields, but=(*_FIELDS, *taken)),
    )


def _answers(fields: Mapping[str, Any]) -> tuple[str, ...]:
    if "answer" in fields and "answers" in fields:
        raise RecordError("there must be one of the fields 'answer' and 'answers', got both")
    if "answers" in fields:
        return as_texts(fields["answers"], "answers")
    return (text(fields, "answer"),) if "answer" in fields else ()


def _right(fields: Mapping[str, Any], choices: Sequence[str]) -> int | None:
    """The place of the right choice, from a place, a letter or a text."""
    names = [name for name in ("right_choice", "answer_index") if fields.get(name) is not None]
    if not names:
        return None
    if len(names) > 1:
        raise RecordError("there must be one of the fields 'right_choice' and 'answer_index', got both")
    (name,) = names
    right = fields[name]
    if not choices:
        raise RecordError(f"{name} is {shown(right)}, and there are no choices; give them as 'choices'")
    if type(right) is int and 0 <= right < len(choices):
        return right
    if not isinstance(right, str):
        raise RecordError(
            f"{name} must be a place from 0 to {len(choices) - 1}, a letter or the text of a choice, got {shown(right)}"
        )
    places = set()
    if right in choices:
        places.add(text_place(right, name, choices))
    if len(right) == 1 and right.isascii() and right.isupper() and ord(right) - ord("A") < len(choices):
        places.add(letter_place(right, name, choices))
    if len(places) > 1 or choices.count(right) > 1:
        raise RecordError(f"{name} is {right!r}, which may be several of the choices; give its place, from 0")
    return places.pop() if places else text_place(right, name, choices)


def _documents(
    builder: DataSetBuilder, fields: Mapping[str, Any], path: Path, library: DocumentLibrary | None, line: str
) -> tuple[Sequence[str], Sequence[str]]:
    """The documents of a question, and the fields besides the usual ones that named them."""
    named = [name for name in _WHERE if fields.get(name) is not None]
    if len(named) != 1:
        raise RecordError(f"there must be one of the fields 'document', 'path' and 'text', got {named or 'none'}")
    (where,) = named
    if where == "text":
        return [builder.context(text(fields, "text"), line)], ()
    if where == "path":
        return [_file(builder, text(fields, "path"), path.parent)], ()
    if library is None:
        raise RecordError(
            f"{where} is {shown(fields[where])}, and there are no documents that have names; give documents= as a "
            "folder or as JSON lines, or put documents.jsonl beside the questions. Where one file is the document of "
            f"all questions, leave {where} out"
        )
    sources = fields.get("source_documents")
    if isinstance(sources, list) and sources and all(isinstance(name, str) and name in library for name in sources):
        return [library.take(name) for name in sources], ("source_documents",)
    names = fields[where]
    if names == _ALL:
        return library.take_all(), ()
    names = as_texts(names, where, least=1) if isinstance(names, list) else (identifier(fields, where, ""),)
    return [library.take(name) for name in names], ()


def _file(builder: DataSetBuilder, name: str, folder: Path) -> str:
    path = inside(folder, name)
    known = path.relative_to(folder.resolve()).as_posix()
    return builder.document_once(known.removesuffix(".gz"), "a path", lambda: document_file(builder.reads(path)))


def _evidence(parts: Any, documents: Sequence[str]) -> Iterator[Evidence]:
    if parts is None:
        return
    if not isinstance(parts, list):
        raise RecordError(f"evidence must be a list of {{start, end}}, got {shown(parts)}")
    for place, part in enumerate(parts):
        what = f"evidence[{place}]"
        if not isinstance(part, dict):
            raise RecordError(f"{what} must be {{start, end}}, got {shown(part)}")
        name = part.get("document")
        if name is None:
            if len(documents) != 1:
                raise RecordError(f"{what} must name its document, since the question has {len(documents)} of them")
            name = documents[0]
        start, end = (_offset(given(part, field), f"{what}.{field}") for field in ("start", "end"))
        yield Evidence(as_text(name, f"{what}.document"), start, end)


def _offset(value: Any, what: str) -> int:
    if type(value) is not int:
        raise RecordError(f"{what} must be a whole number from 0, got {shown(value)}")
    return as_count(value, what)
