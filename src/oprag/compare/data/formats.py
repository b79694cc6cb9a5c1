"""The formats of question sets: how their records are read, and which question each of them has."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path, PurePath, PurePosixPath
from string import ascii_uppercase
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import MaxLen, MinLen
from pydantic import BaseModel, BeforeValidator, NonNegativeInt

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.documents import Documents, document_file, documents_by_name, documents_in
from oprag.compare.data.files import file_inside, files_in, needed_file, read_bytes, stem, without_gz
from oprag.compare.data.html_text import html_text
from oprag.compare.data.records import Record, Row, csv_records, json_lines, json_records
from oprag.compare.validation import Count, Name, Natural, String, Text
from oprag.errors import InputFileError, OpragWarning, OptionError
from oprag.files.reading import file_text
from oprag.masking import describe, listed
from oprag.options import check_bool, check_choice, check_text
from oprag.warn import warn

__all__ = ["FORMATS", "Format"]

# A single value is a list with one item.
_LISTED = BeforeValidator(lambda value: value if isinstance(value, list) else [value])
_Texts = Annotated[list[Text], _LISTED]
_SomeTexts = Annotated[list[Text], MinLen(1), _LISTED]
_Names = Annotated[list[Name], MinLen(1), _LISTED]
_Options = Annotated[list[Text], MinLen(2)]
_TurnSpans = list[Annotated[list[NonNegativeInt], MinLen(2), MaxLen(2)]]  # published as strings of digits


class _Span(BaseModel):
    start: Natural
    end: Natural
    document: Text | None = None


class _Turn(BaseModel):
    speaker: Text
    content: String  # may be empty


def _oprag(builder: DataSetBuilder, *, documents: Path | None = None) -> None:
    """Our own lines, `{question, answers, document or path or text, …}`: docs/reference/data_formats.md."""
    path = needed_file(builder.path, "questions.jsonl") if builder.path.is_dir() else builder.path
    library = documents_by_name(documents, path.parent, builder)
    seen: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for record in json_lines(builder, path):
        seen |= dict.fromkeys(record.fields)
        with builder.at(record.place):
            row = Row(record.fields)
            names = _documents(builder, record, row, library, path.parent)
            choices = row.get(_Texts, "choices", default=None) or []
            right = row.get(Any, "right_choice", "answer_index", default=None)
            builder.question(
                id=row.get(Name, "id", default=None) or record.name,
                text=row.get(Text, "question"),
                documents=names,
                # Null is rejected: a data set that lost its answers would look like one that has none.
                answers=row.get(_Texts, "answers", "answer", default=()),
                choices=choices,
                right_choice=None if right is None else _right_choice(right, choices),
                evidence=_evidence(row.get(list[_Span], "evidence", default=None) or (), names),
                about=row.about,
            )
            unknown |= dict.fromkeys(row.about)
    _warn_of_misspellings(path, seen, unknown)


def _documents(builder: DataSetBuilder, record: Record, row: Row, library: Documents, folder: Path) -> Sequence[str]:
    """Documents of a question of our own: part of the record, a file by its path, or by name."""
    text, path = row.get(Text, "text", default=None), row.get(Text, "path", default=None)
    names: Sequence[str] | None = row.get(_Names, "document", "document_id", default=None)
    given = [name for name, value in (("document", names), ("path", path), ("text", text)) if value is not None]
    if library.is_default and not given:
        return library.take_all()
    if len(given) != 1:
        raise RecordError(f"must have exactly one of the fields 'document', 'path' and 'text', got {given or 'none'}")
    if text is not None:
        return [builder.context(text, record.name)]
    if names is None:
        file = file_inside(folder, path)
        known = without_gz(file.relative_to(folder.resolve()).as_posix())
        return [builder.document_once(known, "a path", lambda: document_file(builder.reads(file)))]
    if not library.names:
        raise RecordError(
            f"document is {describe(names[0] if len(names) == 1 else names)}, but there are no documents to look it up "
            "in; pass documents= as a folder or as JSON Lines, or put documents.jsonl next to the questions. If all "
            "questions are about one file, remove document"
        )
    sources = row.about.get("source_documents")
    if isinstance(sources, list) and sources and all(isinstance(one, str) and one in library.names for one in sources):
        names = row.get(_Names, "source_documents")
    return library.take_all() if names == ["*"] else [library.take(name) for name in names or ()]


def _evidence(spans: Sequence[_Span], documents: Sequence[str]) -> Iterator[Evidence]:
    for place, span in enumerate(spans):
        if span.document is None and len(documents) != 1:
            raise RecordError(
                f"evidence[{place}] must have a field 'document', since the question has {len(documents)} documents"
            )
        yield Evidence(span.document or documents[0], span.start, span.end)


def _right_choice(right: Any, choices: Sequence[str]) -> int:
    """Index of the right choice, given by index, letter or text."""
    if not choices:
        raise RecordError(f"right_choice is {describe(right)}, but 'choices' is missing; add it")
    if type(right) is int and 0 <= right < len(choices):
        return right
    meant = [place for place, pair in enumerate(zip(choices, ascii_uppercase, strict=False)) if right in pair]
    if not meant:
        raise RecordError(
            f"right_choice must be an index from 0 to {len(choices) - 1}, or the letter or text of one of the choices "
            f"{describe(list(choices))}, got {describe(right)}"
        )
    if len(meant) > 1:
        raise RecordError(f"right_choice {describe(right)} matches several choices; give its index, counted from 0")
    return meant[0]


def _warn_of_misspellings(path: Path, seen: Collection[str], unknown: Iterable[str]) -> None:
    """Warn of unknown fields that resemble a gold field that no record has: such gold data would be lost unnoticed."""
    gold = [("answers", "answer"), ("choices",), ("evidence",)]
    # A set without choices needs no right choice.
    gold += [("right_choice", "answer_index")] if "choices" in seen else []
    missing = [name for names in gold if not any(name in seen for name in names) for name in names]
    for name in unknown:
        # A field such as evidence_id describes the evidence; it is not a misspelling of evidence.
        others = [other for other in missing if not name.startswith(f"{other}_")]
        if close := get_close_matches(name.lower(), others, n=1, cutoff=0.8):
            message = f"{path}: unknown field {describe(name)}; did you mean {close[0]!r}? It is stored in `about`"
            warn(message, OpragWarning)


def _right(choices: Sequence[str], text: str | None, letter: Any) -> int:
    """Index of the first choice with this text and letter; None matches any."""
    for place, (choice, own) in enumerate(zip(choices, ascii_uppercase, strict=False)):
        if text in (None, choice) and letter in (None, own):
            return place
    given = [f"the {what} {describe(one)}" for what, one in (("text", text), ("letter", letter)) if one is not None]
    raise RecordError(f"answer: no choice has {' and '.join(given)}; the choices are {describe(list(choices))}")


def _infinitebench(builder: DataSetBuilder) -> None:
    """∞Bench (arXiv 2402.13718): with `options`, `answer` is the text of the right one, and perhaps its letter."""
    for record in json_lines(builder, builder.path):
        with builder.at(record.place):
            row = Row(record.fields)
            choices = row.get(_Texts, "options", default=None) or []
            text, *letters = answers = row.get(_SomeTexts, "answer")
            letter = letters[0] if len(letters) == 1 else letters or None
            builder.question(
                id=row.get(Name, "id", default=None) or record.name,
                text=row.get(Text, "input"),
                documents=[builder.context(row.get(Text, "context"), record.name)],
                answers=() if choices else answers,
                choices=choices,
                right_choice=_right(choices, text, letter) if choices else None,
                about=row.about,
            )


_SOURCE_LINE = re.compile(r"^[^\S\n]*SOURCES?(?:\(S\))?\s*:", re.MULTILINE)


def _kg_rag(builder: DataSetBuilder, *, documents: Path | None = None, source_line: bool = True) -> None:
    """Docugami's KG-RAG: without `source_line`, the closing line of an answer that lists its sources is removed."""
    check_bool("source_line", source_line)
    library = documents_in(documents or builder.path.parent / "docs", builder)
    for record in csv_records(builder, builder.path):
        with builder.at(record.place):
            row = Row(record.fields)
            text, answer = row.get(Text, "question"), row.get(Text, "answer", default="")
            if not source_line and (found := _SOURCE_LINE.search(answer)):
                answer = answer[: found.start()].rstrip()
            names = _source_docs(row.get(String, "source docs", default="").strip(), library.names)
            about = {name.replace(" ", "_"): cell or None for name, cell in row.about.items()}
            gold = [answer] if answer else []
            found_in = [library.take(name) for name in names]
            builder.question(id=record.name, text=text, documents=found_in, answers=gold, about=about)


def _source_docs(cell: str, names: Collection[str]) -> Collection[str]:
    """Documents that a cell names, in full, without folder or extension, or by a pattern; all if it is empty."""

    def matched(pattern: str) -> list[str]:
        forms = [(name, PurePosixPath(name).name, PurePosixPath(name).stem) for name in names]
        return [form[0] for form in forms if pattern in form or any(fnmatchcase(name, pattern) for name in form)]

    # File names may contain commas, so the whole cell is tried first.
    found = matched(cell) if cell else names
    patterns = [] if found else filter(None, map(str.strip, re.split(r"[;,\n]", cell)))
    for pattern in patterns:
        if not (some := matched(pattern)):
            raise RecordError(
                f"Source Docs has {describe(pattern)}, which matches no document; available documents: {listed(names)}"
            )
        found = [*found, *some]
    return found


def _longbench(builder: DataSetBuilder, *, question: str | None = None) -> None:
    """LongBench (arXiv 2308.14508) and v2 (arXiv 2412.15204): `question` is asked if `input` is empty."""
    check_text("question", question, optional=True)
    for record in json_records(builder, builder.path):
        with builder.at(record.place):
            row = Row(record.fields)
            choices, right, answers = [], None, ()
            if "choice_A" in record.fields:
                text = row.get(Text, "question")
                choices = [row.get(Text, f"choice_{letter}") for letter in "ABCD"]
                right = _right(choices, None, row.get(Text, "answer"))
            else:
                text, answers = row.get(String, "input"), row.get(_SomeTexts, "answers")
                text = text if text.strip() else question or ""
                if not text.strip():
                    task = f" (task {row.about['dataset']})" if isinstance(row.about.get("dataset"), str) else ""
                    raise RecordError(
                        f"input must not be empty{task}; set the option `question` to the question to ask instead"
                    )
            builder.question(
                id=row.get(Name, "_id", default=None) or record.name,
                text=text,
                documents=[builder.context(row.get(Text, "context"), record.name)],
                answers=answers,
                choices=choices,
                right_choice=right,
                about=row.about,
            )


def _medqa(builder: DataSetBuilder, *, documents: Path | None = None) -> None:
    """MedQA (arXiv 2009.13081): every question is about the whole corpus."""
    if documents is None:
        raise OptionError("medqa requires documents; pass documents=..., the folder with the textbooks to search", None)
    corpus = documents_in(documents, builder).take_all()
    for record in json_lines(builder, builder.path):
        with builder.at(record.place):
            row = Row(record.fields)
            options = row.get(dict[str, Text], "options")
            if "".join(sorted(options)) != ascii_uppercase[: len(options)]:
                raise RecordError(f"options must have consecutive letters from A, got {listed(options)}")
            choices = [options[letter] for letter in sorted(options)]
            builder.question(
                id=record.name,
                text=row.get(Text, "question"),
                documents=corpus,
                choices=choices,
                right_choice=_right(choices, row.get(Text, "answer"), row.get(Any, "answer_idx", default=None)),
                about=row.about,
            )


def _narrativeqa(
    builder: DataSetBuilder, *, documents: Path | None = None, split: str | None = None, exclude: Any = ()
) -> None:
    """NarrativeQA (Kočiský et al. 2018): questions of `qaps.csv` about the stories that `documents.csv` lists."""
    if split is not None:
        check_choice("split", split, ("train", "valid", "test"), ", or None")
    stories: dict[str, dict[str, str | None]] = {}
    for record in csv_records(builder, needed_file(builder.path, "documents.csv")):
        with builder.at(record.place):
            row = Row(record.fields)
            title = row.get(String, "wiki_title", default="") or None
            stories[row.get(Text, "document_id")] = {"kind": row.get(Text, "kind"), "title": title}
    excluded = exclude if isinstance(exclude, list | tuple | set) else [exclude]
    for name in excluded:
        if not isinstance(name, str) or name not in stories:
            raise OptionError(f"exclude must be a list of document ids in documents.csv, got {describe(name)}", exclude)
    folder = documents or builder.path / "tmp"
    library = Documents(builder, folder, stories, lambda name: _story(builder, folder, name))
    for record in csv_records(builder, needed_file(builder.path, "qaps.csv")):
        with builder.at(record.place):
            row = Row(record.fields)
            if split not in (None, row.get(String, "set")) or row.get(String, "document_id") in excluded:
                continue
            about = {"split": row.get(Literal["train", "valid", "test"], "set")}
            story = library.take(row.get(Text, "document_id"))
            builder.question(
                id=record.name,
                text=row.get(Text, "question"),
                documents=[story],
                answers=dict.fromkeys(row.get(Text, name) for name in ("answer1", "answer2")),
                about=about | stories[story],
            )


def _story(builder: DataSetBuilder, folder: Path, name: str) -> str:
    try:
        path = builder.reads(file_inside(folder, f"{name}.content"))
    except InputFileError as error:
        hint = "download the stories with the authors' download_stories.sh, or skip this one with `exclude`"
        raise InputFileError(f"{error}; {hint}", name) from error
    data = read_bytes(path)
    try:
        data.decode()
    except UnicodeDecodeError:
        # Some of the published stories are Latin-1.
        data = data.decode("latin-1").encode()
    return html_text(file_text(str(path), data))


def _qmsum(builder: DataSetBuilder, *, queries: str = "all") -> None:
    """QMSum (NAACL 2021): a meeting has one line per turn; the turns that a specific query names are its evidence."""
    check_choice("queries", queries, ("all", "general", "specific"))
    path = builder.path
    for file in files_in(path, (".json", ".jsonl")).values() if path.is_dir() else [path]:
        places = (stem(file), file.resolve().parent.name)
        split = next((place for place in places if place in ("train", "val", "test")), None)
        for record in json_records(builder, file):
            with builder.at(record.place):
                meeting = Row(record.fields)
                turns = meeting.get(list[_Turn], "meeting_transcripts")
                lines = [" ".join(f"{turn.speaker}: {turn.content}".splitlines()) for turn in turns]
                document = builder.document(record.name, "\n".join(lines))
                for kind in ("general", "specific") if queries == "all" else (queries,):
                    for number, given in enumerate(meeting.get(list[Any], f"{kind}_query_list", default=()), 1):
                        with builder.at(f"{record.place}, {kind} query {number}"):
                            query = Row(given)
                            builder.question(
                                id=f"{record.name}-{kind}-{number}",
                                text=query.get(Text, "query"),
                                documents=[document],
                                answers=[query.get(Text, "answer")],
                                evidence=_turns(
                                    query.get(_TurnSpans, "relevant_text_span", default=()), document, lines
                                ),
                                about={"kind": kind, "split": split},
                            )


def _turns(spans: Iterable[Sequence[int]], document: str, lines: Sequence[str]) -> Iterator[Evidence]:
    """Convert spans of turns to spans of characters."""
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for number, (first, last) in enumerate(spans):
        if not first <= last < len(lines):
            raise RecordError(
                f"relevant_text_span[{number}] must be the first and last turn in ascending order, from 0 to "
                f"{len(lines) - 1}, got {first} to {last}"
            )
        yield Evidence(document, starts[first], starts[last + 1] - 1)


def _quality(builder: DataSetBuilder) -> None:
    """QuALITY (NAACL 2022): articles with questions; `gold_label` counts from 1, and the test set has none."""
    split = PurePath(without_gz(builder.path.name)).suffix.removeprefix(".")
    for record in json_lines(builder, builder.path):
        with builder.at(record.place):
            row = Row(record.fields)
            article = html_text(row.get(Text, "article"))
            document = builder.document(row.get(Name, "article_id", default=None) or record.name, article)
            writer = row.get(Name, "set_unique_id", default=None) or record.name
            about = {name: row.about.get(name) for name in ("title", "author", "topic", "source", "year")}
            about |= {"split": split} if split in ("train", "dev", "test") else {}
            for number, given in enumerate(row.get(list[Any], "questions"), 1):
                with builder.at(f"{record.place}, question {number}"):
                    asked = Row(given)
                    label = asked.get(Count, "gold_label", default=None)
                    builder.question(
                        id=asked.get(Name, "question_unique_id", default=None) or f"{writer}_{number}",
                        text=asked.get(Text, "question"),
                        documents=[document],
                        choices=asked.get(_Options, "options"),
                        right_choice=None if label is None else label - 1,
                        about=about | {"difficult": asked.about.get("difficult")},
                    )


class Format(NamedTuple):
    """How to read a format: a function of a builder and of the options of the format."""

    read: Callable[..., None]
    folder: bool = False  # whether it also reads a folder


FORMATS: Mapping[str, Format] = {
    "oprag": Format(_oprag, folder=True),
    "infinitebench": Format(_infinitebench),
    "kg_rag": Format(_kg_rag),
    "longbench": Format(_longbench),
    "medqa": Format(_medqa),
    "narrativeqa": Format(_narrativeqa, folder=True),
    "qmsum": Format(_qmsum, folder=True),
    "quality": Format(_quality),
}
"""All formats by name, oprag's own first."""
