"""oprag's own plain format: one question per line; documents are files, part of the line, or in one JSON Lines file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.documents import DocumentLibrary, document_file, folder_library, lines_library
from oprag.compare.data.files import file_inside, find_file, needed_file, without_gz
from oprag.compare.data.records import DataRow, Listed, Record, Texts, json_lines, text_index
from oprag.compare.validation import Name, Natural, Text
from oprag.errors import OpragWarning
from oprag.masking import describe
from oprag.warn import warn

__all__ = ["read"]

_ALL = "*"
_ALIASES = (("answers", "answer"), ("document", "document_id"), ("right_choice", "answer_index"))
_GOLD = (_ALIASES[0], ("choices",), _ALIASES[2], ("evidence",))
"""Optional fields whose misspelling would go unnoticed, with their aliases."""

_CLOSE = 0.8  # minimum similarity of an unknown field to a missing one


class _EvidenceSpan(DataRow):
    start: Natural
    end: Natural
    document: Text | None = None


class _QuestionRow(DataRow):
    id: Name | None = None
    choices: Texts | None = None
    question: Text
    # Null is rejected: a data set that lost its answers would look like one that has none.
    answers: Texts = Field(default=[], validation_alias=AliasChoices(*_ALIASES[0]))
    right_choice: Any = Field(default=None, validation_alias=AliasChoices(*_ALIASES[2]))
    document: Annotated[list[Name], Field(min_length=1), Listed] | None = Field(
        default=None, validation_alias=AliasChoices(*_ALIASES[1])
    )
    path: Text | None = None
    text: Text | None = None
    evidence: list[_EvidenceSpan] | None = None


def read(builder: DataSetBuilder, *, documents: Path | None = None) -> None:
    """Read lines of `{question, answers, document or path or text, …}`; all fields: docs/reference/data_formats.md."""
    path = builder.path
    if path.is_dir():
        path = needed_file(path, "questions.jsonl")
    shared: str | None = None  # the document of all questions
    if documents is not None and documents.is_file() and not _has_lines(documents):
        shared = builder.document(without_gz(documents.name), document_file(builder.reads(documents)))
        documents = None
    library = _library(documents, path, builder)
    seen: dict[str, None] = {}
    for record in json_lines(builder, path):
        seen |= dict.fromkeys(record.fields)
        with builder.at(record.place):
            _question(builder, record, path.parent, library, shared)
    for name, meant in _misspelled(seen):
        warn(f"{path}: unknown field {describe(name)}; did you mean {meant!r}? It is stored in `about`", OpragWarning)


def _misspelled(seen: Collection[str]) -> Iterator[tuple[str, str]]:
    """Unknown fields that may be misspellings of gold fields that no record has."""
    known = {*_QuestionRow.model_fields, *chain.from_iterable(_ALIASES), "source_documents"}
    # A set without choices needs no right_choice.
    gold = _GOLD if "choices" in seen else [names for names in _GOLD if names is not _ALIASES[2]]
    missing = [name for names in gold if not any(name in seen for name in names) for name in names]
    for name in seen:
        # A field such as evidence_id describes the evidence; it is not a misspelling of evidence.
        others = [other for other in missing if not name.startswith(f"{other}_")]
        if name not in known and (close := get_close_matches(name.lower(), others, n=1, cutoff=_CLOSE)):
            yield name, close[0]


def _has_lines(path: Path) -> bool:
    return without_gz(path.name).endswith((".jsonl", ".json", ".ndjson"))


def _library(documents: Path | None, path: Path, builder: DataSetBuilder) -> DocumentLibrary | None:
    if documents is not None and not documents.is_dir():
        return lines_library(documents, builder)
    lines = find_file(documents or path.parent, "documents.jsonl")
    if lines is not None:
        return lines_library(lines, builder)
    return None if documents is None else folder_library(documents, builder)


def _question(
    builder: DataSetBuilder, record: Record, folder: Path, library: DocumentLibrary | None, shared: str | None
) -> None:
    for names in _ALIASES:
        if all(name in record.fields for name in names):
            raise RecordError(f"must have only one of the fields {' and '.join(map(repr, names))}, got both")
    line = _QuestionRow.read(record.fields)
    choices, about = line.choices or [], dict(line.about)
    given = [name for name in ("document", "path", "text") if getattr(line, name) is not None]
    documents: Sequence[str]
    if shared is not None and not given:
        documents = [shared]
    elif len(given) != 1:
        raise RecordError(f"must have exactly one of the fields 'document', 'path' and 'text', got {given or 'none'}")
    elif line.text is not None:
        documents = [builder.context(line.text, record.name)]
    elif line.path is not None:
        documents = [_file(builder, line.path, folder)]
    else:
        documents = _documents(line.document or [], about, library)
    builder.question(
        id=line.id or record.name,
        text=line.question,
        documents=documents,
        answers=line.answers,
        choices=choices,
        right_choice=None if line.right_choice is None else _right(line.right_choice, choices),
        evidence=_evidence(line.evidence or (), documents),
        about=about,
    )


def _right(right: Any, choices: Sequence[str]) -> int:
    """Index of the right choice, given by index, letter or text."""
    if not choices:
        raise RecordError(f"right_choice is {describe(right)}, but 'choices' is missing; add it")
    if type(right) is int and 0 <= right < len(choices):
        return right
    if not isinstance(right, str):
        raise RecordError(
            f"right_choice must be an index from 0 to {len(choices) - 1}, a letter or the text of a choice, got "
            f"{describe(right)}"
        )
    places = [place for place, choice in enumerate(choices) if choice == right]
    if right in ascii_uppercase[: len(choices)]:
        places.append(ascii_uppercase.index(right))
    if len({*places}) > 1:
        raise RecordError(
            f"right_choice is {describe(right)}, which matches several choices; give its index, counted from 0"
        )
    return places[0] if places else text_index(right, "right_choice", choices)


def _documents(names: list[str], about: dict[str, Any], library: DocumentLibrary | None) -> Sequence[str]:
    """Documents with these names, or those in the field `source_documents`, which is then removed from `about`."""
    if library is None:
        raise RecordError(
            f"document is {describe(names[0] if len(names) == 1 else names)}, but there are no documents to look it up "
            "in; pass documents= as a folder or as JSON Lines, or put documents.jsonl next to the questions. If all "
            "questions are about one file, remove document"
        )
    sources = about.get("source_documents")
    if (
        isinstance(sources, list)
        and sources
        and all(isinstance(name, str) and name in library.names for name in sources)
    ):
        names = about.pop("source_documents")
    return library.take_all() if names == [_ALL] else [library.take(name) for name in names]


def _file(builder: DataSetBuilder, name: str, folder: Path) -> str:
    path = file_inside(folder, name)
    known = path.relative_to(folder.resolve()).as_posix()
    return builder.document_once(without_gz(known), "a path", lambda: document_file(builder.reads(path)))


def _evidence(spans: Sequence[_EvidenceSpan], documents: Sequence[str]) -> Iterator[Evidence]:
    for place, span in enumerate(spans):
        if span.document is None and len(documents) != 1:
            raise RecordError(
                f"evidence[{place}] must have a field 'document', since the question has {len(documents)} documents"
            )
        yield Evidence(span.document or documents[0], span.start, span.end)
