"""Our own plain format: one question a line, with its documents in files, in the line, or in a file of documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.documents import DocumentLibrary, document_file, folder_library, lines_library
from oprag.compare.data.files import file_inside, find_file
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import DataRow, Record, Texts, as_text, json_lines, letter_place, shown, text_place
from oprag.compare.validation import Name, Natural, Text
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


def _names(value: Any, field: ValidationInfo) -> Any:
    if isinstance(value, list):
        return value
    if type(value) is int or isinstance(value, str):
        return [as_text(str(value), str(field.field_name))]
    raise PydanticCustomError("names", "must be a string or a whole number")


_Names = Annotated[list[Text], Field(min_length=1), BeforeValidator(_names)]


class _Span(DataRow):
    start: Natural
    end: Natural
    document: Text | None = None


class _Line(DataRow):
    id: Name | None = None
    choices: Texts | None = None
    question: Text
    # Neither of these may be null: a set whose answers got lost would be taken for one that has none.
    answer: Text = ""
    answers: Texts = Field(default_factory=list)
    right_choice: Any = None
    answer_index: Any = None
    document: _Names | None = None
    document_id: _Names | None = None
    path: Text | None = None
    text: Text | None = None
    evidence: list[_Span] | None = None


def read(builder: DataSetBuilder, *, documents: Path | None = None) -> None:
    """Read lines of `{question, answers, document or path or text, …}`; `docs/data_formats.md` has all fields."""
    path = builder.path
    if path.is_dir():
        path = find_file(path, "questions.jsonl") or path / "questions.jsonl"
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
            _question(builder, record, path.parent, library, alone)
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
    unknown = [name for name in seen if name not in (*_Line.model_fields, "source_documents")]
    return {name: _meant(name, lacking) for name in unknown}


def _meant(name: str, lacking: Sequence[str]) -> str:
    """The field that a name may be a misspelling of; evidence_id is about the evidence, and is not one."""
    others = [other for other in lacking if not name.startswith(f"{other}_")]
    return next(iter(get_close_matches(name.lower(), others, n=1, cutoff=_CLOSE)), "")


def _has_lines(path: Path) -> bool:
    return path.name.removesuffix(".gz").endswith((".jsonl", ".json", ".ndjson"))


def _library(documents: Path | None, path: Path, builder: DataSetBuilder) -> DocumentLibrary | None:
    beside = find_file(path.parent, "documents.jsonl")
    if documents is None:
        return None if beside is None else lines_library(beside, builder)
    if documents.is_dir():
        lines = find_file(documents, "documents.jsonl")
        return folder_library(documents, builder) if lines is None else lines_library(lines, builder)
    return lines_library(documents, builder)


def _question(
    builder: DataSetBuilder, record: Record, folder: Path, library: DocumentLibrary | None, alone: str | None
) -> None:
    line = _Line.read(record.fields)
    choices, about = line.choices or [], dict(line.about)
    answers, right = _answers(line), _right(line, choices)
    where = [name for name in _WHERE if getattr(line, name) is not None]
    documents: Sequence[str]
    if alone is not None and not where:
        documents = [alone]
    elif len(where) != 1:
        raise RecordError(f"there must be one of the fields 'document', 'path' and 'text', got {where or 'none'}")
    elif line.text is not None:
        documents = [builder.context(line.text, record.name)]
    elif line.path is not None:
        documents = [_file(builder, line.path, folder)]
    else:
        documents = _named(where[0], getattr(line, where[0]), about, library)
    builder.question(
        id=line.id or record.name,
        text=line.question,
        documents=documents,
        answers=answers,
        choices=choices,
        right_choice=right,
        evidence=_evidence(line.evidence or (), documents),
        about=about,
    )


def _answers(line: _Line) -> Sequence[str]:
    if line.model_fields_set >= {"answer", "answers"}:
        raise RecordError("there must be one of the fields 'answer' and 'answers', got both")
    return [line.answer] if line.answer else line.answers


def _right(line: _Line, choices: Sequence[str]) -> int | None:
    """The place of the right choice, from a place, a letter or a text."""
    given = {name: value for name in _PLACE if (value := getattr(line, name)) is not None}
    if not given:
        return None
    if len(given) > 1:
        raise RecordError("there must be one of the fields 'right_choice' and 'answer_index', got both")
    ((name, right),) = given.items()
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


def _named(field: str, names: list[str], about: dict[str, Any], library: DocumentLibrary | None) -> Sequence[str]:
    """The documents that a field names, or `source_documents` among what is left over, which is taken from there."""
    if library is None:
        raise RecordError(
            f"{field} is {shown(names[0] if len(names) == 1 else names)}, and there are no documents that have names; "
            "give documents= as a folder or as JSON lines, or put documents.jsonl beside the questions. Where one file "
            f"is the document of all questions, leave {field} out"
        )
    sources = about.get("source_documents")
    if isinstance(sources, list) and sources and all(isinstance(name, str) and name in library for name in sources):
        del about["source_documents"]
        return [library.take(name) for name in sources]
    return library.take_all() if names == [_ALL] else [library.take(name) for name in names]


def _file(builder: DataSetBuilder, name: str, folder: Path) -> str:
    path = file_inside(folder, name)
    known = path.relative_to(folder.resolve()).as_posix()
    return builder.document_once(known.removesuffix(".gz"), "a path", lambda: document_file(builder.reads(path)))


def _evidence(spans: Sequence[_Span], documents: Sequence[str]) -> Iterator[Evidence]:
    for place, span in enumerate(spans):
        if span.document is None and len(documents) != 1:
            raise RecordError(
                f"evidence[{place}] must name its document, since the question has {len(documents)} of them"
            )
        yield Evidence(span.document or documents[0], span.start, span.end)
