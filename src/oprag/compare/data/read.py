"""Reading question sets in their published formats."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any

from oprag._internal.masking import describe, reason

# If pydantic is missing, this import raises the error that names the extra to install.
from oprag.compare import validation  # noqa: F401
from oprag.compare.data.data_set import DataSet, DocumentText, Evidence, Question, problem_of
from oprag.compare.data.files import (
    Documents,
    Record,
    RecordError,
    Row,
    as_list,
    document_file,
    documents_by_name,
    file_inside,
    is_within,
    json_lines,
    needed_file,
    stem,
    without_gz,
)
from oprag.compare.data.formats import PUBLISHED, Format, Line
from oprag.compare.validation import Name, Natural, Text, pydantic
from oprag.errors import DataError, InputFileError, OptionError
from oprag.options import check_choice, check_count, check_names, check_text

__all__ = ["FORMATS", "DataSetBuilder", "format_options", "read_data"]


def format_options(format: str) -> tuple[str, ...]:  # noqa: A002  # the usual name
    """Options of a format, including `documents` if its documents are separate from its questions.

    Raises:
        OptionError: The format is unknown.
    """
    check_choice("format", format, FORMATS)
    _, *options = inspect.signature(FORMATS[format].lines).parameters
    return (*options, *(["documents"] if FORMATS[format].documents else []))


def read_data(
    path: str | os.PathLike[str],
    format: str = "oprag",  # noqa: A002  # the usual name
    *,
    name: str | None = None,
    documents: str | os.PathLike[str] | None = None,
    within: str | os.PathLike[str] | None = None,
    size: int | None = None,
    source: str | None = None,
    **options: Any,
) -> DataSet:
    """Read a question set and its documents from a file or folder.

    If any record is invalid, nothing is returned and the error has its file and line. Files may be gzip-compressed.

    Args:
        path: File of questions, or the folder that contains it.
        format: A format listed in `docs/reference/data_formats.md`, which also describes the options of each format.
        name: Name of the data set; the name of the file or folder by default.
        documents: Folder or file of the documents, for formats that keep them separate from the questions.
        within: Folder that must contain all files, after following links, and where none is hidden; None for no
            restriction.
        size: Published number of questions. If the data is missing, a plan can then still count the answers.
        source: Where to get the data, or the command that gets it; shown while the data is missing.
        options: Options of this format.

    Raises:
        OptionError: The format, an option or its value is unknown or invalid.
        InputFileError: A file or folder is missing, cannot be read, or is outside `within`.
        DataError: Records are invalid; the message has the location of the first one.
        MissingExtraError: A document is a PDF file, and the package to read it is not installed.
    """
    allowed = format_options(format)
    check_text("name", name, optional=True)
    place = _path("path", path)
    builder = DataSetBuilder(place, None if within is None else _path("within", within))
    builder.check_inside(place)
    if documents is not None:
        options["documents"] = _path("documents", documents)
        builder.check_inside(options["documents"])
    check_names(options, allowed)
    check_count("size", size)
    if not place.exists():
        missing = f"no such file or folder: {place}{f'; get it: {source}' if source else ''}"
        if size is None:
            raise InputFileError(missing, str(place))
        placeholders = tuple(Question(id=str(number), text=str(number), documents=()) for number in range(size))
        return DataSet(name=name or _name(place), documents={}, questions=placeholders, missing=missing)
    _read_questions(builder, format, **options)
    return builder.data_set(name or _name(place))


def _path(option: str, path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise OptionError(f"{option} must be the path of a file or folder, got {describe(path)}", path)
    place = Path(path)
    try:
        place.exists()
    except OSError as error:
        raise InputFileError(f"cannot read {describe(place)}: {error.strerror}", str(path)) from error
    return place


def _name(path: Path) -> str:
    return path.resolve().name if path.is_dir() else stem(path)


def _read_questions(builder: DataSetBuilder, name: str, *, documents: Path | None = None, **options: Any) -> None:
    """Add the questions of a file in a format, and the documents that they refer to."""
    own = FORMATS[name]
    library = None if own.documents is None else own.documents(builder, documents)
    for record in own.records(builder):
        with builder.at(record.place):
            try:
                lines = list(own.lines(record, **options))
            except OptionError:
                raise
            except (LookupError, ValueError, TypeError, AttributeError) as error:
                raise RecordError(f"is not a record of {name}: {type(error).__name__}: {reason(error)}") from error
            for line in lines:
                _add(builder, record, line, library)


_Texts = Annotated[list[Text], pydantic.BeforeValidator(as_list)]
_Names = Annotated[list[Name], pydantic.Field(min_length=1), pydantic.BeforeValidator(as_list)]


def _own_lines(builder: DataSetBuilder) -> Iterable[Record]:
    path = builder.path
    return json_lines(builder, needed_file(path, "questions.jsonl") if path.is_dir() else path)


def _own_documents(builder: DataSetBuilder, documents: Path | None) -> Documents:
    return documents_by_name(documents, builder.path if builder.path.is_dir() else builder.path.parent, builder)


FORMATS: Mapping[str, Format] = {
    "oprag": Format(lambda record: [record.fields], _own_lines, _own_documents),
    **PUBLISHED,
}
"""All formats by name, oprag's own first."""


class _Span(pydantic.BaseModel):
    start: Natural
    end: Natural
    document: Text | None = None


class _Question(Row):
    """A question of our own format."""

    id: Name | None = None
    question: Text
    document: _Names | None = pydantic.Field(None, validation_alias=pydantic.AliasChoices("document", "document_id"))
    path: Text | None = None
    text: Text | None = None
    # Null is rejected: a data set that lost its answers would look like one that has none.
    answers: _Texts = pydantic.Field([], validation_alias=pydantic.AliasChoices("answers", "answer"))
    choices: _Texts | None = None
    right_choice: Any = pydantic.Field(None, validation_alias=pydantic.AliasChoices("right_choice", "answer_index"))
    evidence: list[_Span] | None = None


def _add(builder: DataSetBuilder, record: Record, line: Line, library: Documents | None) -> None:
    """Add a question of our own format."""
    row = _Question.of(line)
    about, choices = dict(row.about), tuple(row.choices or ())
    sources = about.get("source_documents")
    if library and sources and isinstance(sources, list) and all(one in library.names for one in sources):
        row.document = about.pop("source_documents")
    documents = tuple(dict.fromkeys(_documents(builder, record, row, library)))
    right = None if row.right_choice is None else _right_choice(row.right_choice, choices)
    builder.add(
        Question(
            id=row.id or record.name,
            text=row.question,
            documents=documents,
            # Without gold answers, the right choice is the gold answer.
            answers=tuple(row.answers or ([] if right is None else [choices[right]])),
            choices=choices,
            right_choice=right,
            evidence=tuple(_evidence(row.evidence or (), documents)),
            about={name: _plain(value) for name, value in about.items() if value is not None},
        )
    )


def _documents(builder: DataSetBuilder, record: Record, row: _Question, library: Documents | None) -> Sequence[str]:
    """The documents of a question: part of the record, a file by its path, or by name."""
    given = [name for name in ("document", "path", "text") if getattr(row, name) is not None]
    if not given and library and len(library.names) == 1:
        return library.take("*")
    if len(given) != 1:
        raise RecordError(f"must have exactly one of the fields 'document', 'path' and 'text', got {given or 'none'}")
    if row.text is not None:
        # Equal texts are one document.
        return [builder.document(row.text, record.name, partial(str, row.text))]
    if row.path is not None:
        folder = builder.path if builder.path.is_dir() else builder.path.parent
        file = file_inside(folder, row.path)
        name = without_gz(file.relative_to(folder.resolve()).as_posix())
        return [builder.document(file, name, partial(document_file, builder, file))]
    if not library or not library.names:
        raise RecordError(
            f"document is {describe(row.document)}, but there are no documents to look it up in; pass documents= as a "
            "folder or as JSON Lines, or put documents.jsonl next to the questions"
        )
    return [found for name in row.document or () for found in library.take(name)]


def _evidence(spans: Sequence[_Span], documents: Sequence[str]) -> Iterator[Evidence]:
    for place, span in enumerate(spans):
        if span.document is None and len(documents) != 1:
            raise RecordError(
                f"evidence[{place}] must have a field 'document', since the question has {len(documents)} documents"
            )
        yield Evidence(span.document or documents[0], span.start, span.end)


def _right_choice(right: Any, choices: Sequence[str]) -> int:
    """Index of the right choice, given by index, letter or text."""
    if type(right) is int and 0 <= right < len(choices):
        return right
    meant = [place for place, pair in enumerate(zip(choices, ascii_uppercase, strict=False)) if right in pair]
    if len(meant) != 1:
        raise RecordError(
            f"right_choice must be the index (from 0), the letter or the text of exactly one of the choices "
            f"{describe(list(choices))}, got {describe(right)}"
        )
    return meant[0]


class DataSetBuilder:
    """Builds a data set from files, which must be inside the folder `within`, if given, and not hidden there."""

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self.path: Path = path
        self._within = None if within is None else within.resolve()
        self._documents: dict[str, DocumentText] = {}
        self._names: dict[Hashable, str] = {}
        self._questions: dict[str, Question] = {}
        self._files: dict[Path, None] = {}

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Raise a problem in this block as a DataError with this location."""
        try:
            yield
        except (RecordError, InputFileError) as error:
            raise DataError(f"{place}: {error}", str(self.path)) from error

    def check_inside(self, path: Path) -> None:
        """Raise if a file or folder must not be read."""
        if self._within is not None and not is_within(self._within, path):
            raise InputFileError(
                f"{path} is hidden, or is outside the folder {self._within} after following links; move it into the "
                "folder, or use an Experiment in Python",
                str(path),
            )

    def reads(self, path: Path) -> Path:
        """Register a file before it is read; raises if it must not be read."""
        self.check_inside(path)
        self._files[path] = None
        return path

    def document(self, key: Hashable, name: str, read: Callable[[], DocumentText]) -> str:
        """Add a document and return its name; documents with the same key are one, which is read once."""
        if key not in self._names:
            text = read()
            if not any(map(str.strip, [text] if isinstance(text, str) else text)):
                raise RecordError(f"the text of the document {describe(name)} must not be empty")
            if self._documents.setdefault(name, text) != text:
                raise RecordError(
                    f"another document {describe(name)} already exists with a different text; names must be unique"
                )
            self._names[key] = name
        return self._names[key]

    def add(self, question: Question) -> None:
        """Add a question about added documents."""
        if question.id in self._questions:
            raise RecordError(f"the id {describe(question.id)} is used twice; ids must be unique")
        if problem := problem_of(question, self._documents):
            raise RecordError(problem)
        self._questions[question.id] = question

    def data_set(self, name: str) -> DataSet:
        """Return the finished data set; raises if it has no questions."""
        if not self._questions:
            raise DataError(f"{self.path} contains no questions", str(self.path))
        questions = tuple(self._questions.values())
        return DataSet(name=name, documents=self._documents, questions=questions, files=tuple(self._files))


def _plain(value: Any) -> str | int | float:
    """The value of a field; lists and objects as JSON."""
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)
