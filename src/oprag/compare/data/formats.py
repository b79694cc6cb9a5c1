"""Published formats of question sets: a table of functions that turn a record of each into lines of our own format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from html.parser import HTMLParser
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from oprag._internal.files.reading import file_text
from oprag.compare.data.files import (
    Documents,
    Record,
    as_list,
    csv_records,
    documents_in,
    files_in,
    json_lines,
    json_records,
    needed_file,
    read_bytes,
)
from oprag.errors import OptionError
from oprag.options import check_bool, check_choice, check_text

if TYPE_CHECKING:
    from oprag.compare.data.read import DataSetBuilder

__all__ = ["PUBLISHED", "Format", "Line"]

Line = Mapping[str, Any]
"""A line of our own format: docs/reference/data_formats.md."""


class Format(NamedTuple):
    """How to read a format."""

    lines: Callable[..., Iterable[Line]]  # the lines of a record, given the options of the format
    records: Callable[[DataSetBuilder], Iterable[Record]]
    # The documents that lines name, given the option `documents`; None if records contain their documents.
    documents: Callable[[DataSetBuilder, Path | None], Documents] | None = None


def _infinitebench(record: Record) -> Iterable[Line]:
    """∞Bench (arXiv 2402.13718): with `options`, the first `answer` is the text of the right one."""
    row = dict(record.fields)
    choices, answers = row.pop("options", None), row.pop("answer")
    gold = {"choices": choices, "right_choice": choices.index(as_list(answers)[0])} if choices else {"answers": answers}
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
        gold = {"choices": choices, "right_choice": [*"ABCD"].index(row.pop("answer"))}
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
    if split not in (None, row["set"]) or row["document_id"] in as_list(exclude):
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


PUBLISHED: Mapping[str, Format] = {
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

# Elements that start a new line. Line breaks of the source are kept: published articles with `<pre>` rely on them.
_BREAKS = frozenset(
    """
    address article aside blockquote body br center dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header hr
    html li main nav ol p pre section table tbody td tfoot th thead tr ul
    """.split()  # noqa: SIM905  # a list literal would be a page long
)
_MAX_READ = 10_000_000  # characters
_HIDDEN = frozenset(("script", "style", "title"))
_INLINE = ("i", "b", "u", "s", "a", "em", "strong", "span", "sup", "sub", "img", "font", "meta")
_TAG = re.compile(rf"</?(?:{'|'.join((*_INLINE, *sorted(_BREAKS)))})\b[^<>]*>", re.IGNORECASE)


def html_text(text: str) -> str:
    """Strip tags, scripts, styles and the title from HTML; text without tags is returned unchanged."""
    if not _TAG.search(text):
        return text
    parser = _TextParser()
    parser.feed(text)
    # The rest has an unclosed tag or comment. Closing the parser rescans it for each "<": hours for a megabyte.
    rest = parser.rawdata
    if rest.count("<") * len(rest) > _MAX_READ:
        parser.rawdata = ""
        parser.handle_data(rest)
    parser.close()
    lines = "".join(parser.parts).splitlines()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


class _TextParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden_depth = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002  # signature of HTMLParser
        self._hidden_depth += tag in _HIDDEN
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden_depth = max(0, self._hidden_depth - (tag in _HIDDEN))
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden_depth:
            self.parts.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:  # noqa: FBT001, FBT002
        # Browsers treat it as a comment; Python raises an AssertionError for unknown sections.
        return self.parse_bogus_comment(i, report)

    def _break(self, tag: str) -> None:
        if tag in _BREAKS and self.parts and not self.parts[-1].endswith("\n"):
            self.parts.append("\n")
