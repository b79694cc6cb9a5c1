"""The formats of question sets: a table of functions that turn a record of each into questions of our own format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, NamedTuple

from annotated_types import MinLen
from pydantic import BaseModel, BeforeValidator

from oprag._internal.files.reading import file_text
from oprag._internal.masking import describe, reason
from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.documents import Documents, document_file, documents_by_name, documents_in
from oprag.compare.data.files import file_inside, files_in, needed_file, read_bytes, without_gz
from oprag.compare.data.html_text import html_text
from oprag.compare.data.records import Record, Row, csv_records, json_lines, json_records
from oprag.compare.validation import Name, Natural, Text, pydantic
from oprag.errors import OptionError
from oprag.options import check_bool, check_choice, check_text

__all__ = ["FORMATS", "Format", "read_questions"]

Line = Mapping[str, Any]
"""A line of our own format: docs/reference/data_formats.md."""


class Format(NamedTuple):
    """How to read a format."""

    lines: Callable[..., Iterable[Line]]  # the lines of a record, given the options of the format
    records: Callable[[DataSetBuilder], Iterable[Record]]
    # The documents that lines name, given the option `documents`; None if records contain their documents.
    documents: Callable[[DataSetBuilder, Path | None], Documents] | None = None


def read_questions(builder: DataSetBuilder, name: str, *, documents: Path | None = None, **options: Any) -> None:
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


def _as_list(value: Any) -> Any:
    """A single value as a list with one item."""
    return value if isinstance(value, list) else [value]


_Texts = Annotated[list[Text], BeforeValidator(_as_list)]
_Names = Annotated[list[Name], MinLen(1), BeforeValidator(_as_list)]


class _Span(BaseModel):
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
    about, choices = dict(row.about), row.choices or ()
    sources = about.get("source_documents")
    if library and sources and isinstance(sources, list) and all(one in library.names for one in sources):
        row.document = about.pop("source_documents")
    documents = _documents(builder, record, row, library)
    builder.question(
        id=row.id or record.name,
        text=row.question,
        documents=documents,
        answers=row.answers,
        choices=choices,
        right_choice=None if row.right_choice is None else _right_choice(row.right_choice, choices),
        evidence=_evidence(row.evidence or (), documents),
        about=about,
    )


def _documents(builder: DataSetBuilder, record: Record, row: _Question, library: Documents | None) -> Sequence[str]:
    """The documents of a question: part of the record, a file by its path, or by name."""
    given = [name for name in ("document", "path", "text") if getattr(row, name) is not None]
    if not given and library and len(library.names) == 1:
        return library.take("*")
    if len(given) != 1:
        raise RecordError(f"must have exactly one of the fields 'document', 'path' and 'text', got {given or 'none'}")
    if row.text is not None:
        return [builder.context(row.text, record.name)]
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


def _own_lines(builder: DataSetBuilder) -> Iterable[Record]:
    path = builder.path
    return json_lines(builder, needed_file(path, "questions.jsonl") if path.is_dir() else path)


def _own_documents(builder: DataSetBuilder, documents: Path | None) -> Documents:
    return documents_by_name(documents, builder.path if builder.path.is_dir() else builder.path.parent, builder)


def _oprag(record: Record) -> Iterable[Line]:
    return [record.fields]


def _infinitebench(record: Record) -> Iterable[Line]:
    """∞Bench (arXiv 2402.13718): with `options`, the first `answer` is the text of the right one."""
    row = dict(record.fields)
    choices, answers = row.pop("options", None), row.pop("answer")
    gold = (
        {"choices": choices, "right_choice": choices.index(_as_list(answers)[0])} if choices else {"answers": answers}
    )
    return [{"question": row.pop("input"), "text": row.pop("context"), **gold, **row}]


_SOURCE_LINE = re.compile(r"^[^\S\n]*SOURCES?(?:\(S\))?\s*:", re.MULTILINE)


def _kg_rag(record: Record, *, source_line: bool = True) -> Iterable[Line]:
    """Docugami's KG-RAG: without `source_line`, the closing line of an answer that lists its sources is removed."""
    check_bool("source_line", source_line)
    row = {name.replace(" ", "_"): cell or None for name, cell in record.fields.items()}
    answer, names = row.pop("answer", None) or "", row.pop("source_docs", None) or "*"
    if not source_line and (found := _SOURCE_LINE.search(answer)):
        answer = answer[: found.start()].rstrip()
    documents = [name for name in map(str.strip, re.split(r"[;,\n]", names)) if name]
    return [{**row, "document": documents, "answers": [answer] if answer else []}]


def _kg_rag_documents(builder: DataSetBuilder, documents: Path | None) -> Documents:
    return documents_in(documents or builder.path.parent / "docs", builder)


def _longbench(record: Record, *, question: str | None = None) -> Iterable[Line]:
    """LongBench (arXiv 2308.14508) and v2 (arXiv 2412.15204): `question` is asked if `input` is empty."""
    check_text("question", question, optional=True)
    row = dict(record.fields)
    if "choice_A" in row:
        choices = [row.pop(f"choice_{letter}") for letter in "ABCD"]
        gold = {"choices": choices, "right_choice": "ABCD".index(row.pop("answer"))}
    else:
        asked = row.pop("input")
        gold = {"question": question if question and not asked.strip() else asked}
    return [{"id": row.pop("_id", None), "text": row.pop("context"), **gold, **row}]


def _medqa(record: Record) -> Iterable[Line]:
    """MedQA (arXiv 2009.13081): every question is about the whole corpus."""
    row = dict(record.fields)
    choices = dict(sorted(row.pop("options").items()))
    right, letter = row.pop("answer"), row.pop("answer_idx", None)
    right = right if letter is None else [*choices].index(letter)
    return [{**row, "document": "*", "choices": [*choices.values()], "right_choice": right}]


def _medqa_documents(builder: DataSetBuilder, documents: Path | None) -> Documents:
    if documents is None:
        raise OptionError("medqa requires documents; pass documents=..., the folder with the textbooks to search", None)
    return documents_in(documents, builder)


def _narrativeqa(record: Record, *, split: str | None = None, exclude: Any = ()) -> Iterable[Line]:
    """NarrativeQA (Kočiský et al. 2018): questions about stories in files of their own."""
    if split is not None:
        check_choice("split", split, ("train", "valid", "test"), ", or None")
    row = record.fields
    if split not in (None, row["set"]) or row["document_id"] in _as_list(exclude):
        return []
    answers = [*dict.fromkeys((row["answer1"], row["answer2"]))]
    return [{"document": row["document_id"], "question": row["question"], "answers": answers, "split": row["set"]}]


def _stories(builder: DataSetBuilder, documents: Path | None) -> Documents:
    folder = documents or builder.path / "tmp"
    paths = files_in(folder, (".content",))
    return Documents(builder, folder, {Path(name).stem: partial(_story, builder, path) for name, path in paths.items()})


def _story(builder: DataSetBuilder, path: Path) -> str:
    data = read_bytes(builder.reads(path))
    try:
        data.decode()
    except UnicodeDecodeError:
        # Some of the published stories are Latin-1.
        data = data.decode("latin-1").encode()
    return html_text(file_text(str(path), data))


def _qmsum(record: Record, *, queries: str = "all") -> Iterator[Line]:
    """QMSum (NAACL 2021): a meeting has one line per turn; the turns that a specific query names are its evidence."""
    check_choice("queries", queries, ("all", "general", "specific"))
    meeting = record.fields
    turns = [" ".join(f"{one['speaker']}: {one['content']}".splitlines()) for one in meeting["meeting_transcripts"]]
    starts = [0, *accumulate(len(turn) + 1 for turn in turns)]
    for kind in ("general", "specific") if queries == "all" else (queries,):
        for number, query in enumerate(meeting.get(f"{kind}_query_list", ()), 1):
            # The first and last turn, as strings of digits.
            spans = [map(int, span) for span in query.get("relevant_text_span", ())]
            yield {
                "id": f"{record.name}-{kind}-{number}",
                "question": query["query"],
                "answers": query["answer"],
                "text": "\n".join(turns),
                "evidence": [{"start": starts[first], "end": starts[last + 1] - 1} for first, last in spans],
                "kind": kind,
                "split": meeting["split"],
            }


def _meetings(builder: DataSetBuilder) -> Iterator[Record]:
    path = builder.path
    for file in files_in(path, (".json", ".jsonl")).values() if path.is_dir() else [path]:
        yield from _with_split(json_records(builder, file), file)


def _quality(record: Record) -> Iterator[Line]:
    """QuALITY (NAACL 2022): articles with questions; `gold_label` counts from 1, and the test set has none."""
    article = record.fields
    about = {name: article.get(name) for name in ("title", "author", "topic", "source", "year", "split")}
    text = html_text(article["article"])
    for number, asked in enumerate(article["questions"], 1):
        label = asked.get("gold_label")
        yield {
            "id": asked.get("question_unique_id") or f"{article.get('set_unique_id', record.name)}_{number}",
            "question": asked["question"],
            "choices": asked["options"],
            "right_choice": None if label is None else label - 1,
            "text": text,
            "difficult": asked.get("difficult"),
            **about,
        }


def _articles(builder: DataSetBuilder) -> Iterator[Record]:
    return _with_split(json_lines(builder, builder.path), builder.path)


def _with_split(records: Iterable[Record], path: Path) -> Iterator[Record]:
    """Records with the split that the name of their file or folder has, such as `QuALITY.v1.0.1.dev`."""
    parts = (*path.name.split("."), path.resolve().parent.name)
    split = next((part for part in parts if part in ("train", "dev", "val", "test")), None)
    return (record._replace(fields={**record.fields, "split": split}) for record in records)


def _lines(builder: DataSetBuilder) -> Iterable[Record]:
    return json_lines(builder, builder.path)


FORMATS: Mapping[str, Format] = {
    "oprag": Format(_oprag, _own_lines, _own_documents),
    "infinitebench": Format(_infinitebench, _lines),
    "kg_rag": Format(_kg_rag, lambda builder: csv_records(builder, builder.path), _kg_rag_documents),
    "longbench": Format(_longbench, lambda builder: json_records(builder, builder.path)),
    "medqa": Format(_medqa, _lines, _medqa_documents),
    "narrativeqa": Format(
        _narrativeqa, lambda builder: csv_records(builder, needed_file(builder.path, "qaps.csv")), _stories
    ),
    "qmsum": Format(_qmsum, _meetings),
    "quality": Format(_quality, _articles),
}
"""All formats by name, oprag's own first."""
