"""QMSum (Zhong et al., NAACL 2021): meetings with queries, as JSON files or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.files import files_in, stem
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import Record, as_count, as_text, given, json_records, shown, text
from oprag.errors import DataError
from oprag.options import check_choice

__all__ = ["read"]

_KINDS = ("general", "specific")
_SPLITS = ("train", "val", "test")

Turns = Sequence[tuple[int, int]]


def read(builder: DataSetBuilder, *, queries: str = "all") -> None:
    """Take in meetings: a JSON file of one, JSON lines, or a folder of such files.

    A meeting becomes a text with a line for each turn, "Speaker: content". The evidence of a specific query is its
    spans of turns, as characters of that text; a general query is about the whole meeting and has none.

    Args:
        builder: Where they come to.
        queries: "general", "specific" or "all".

    Raises:
        OptionError: `queries` is something else.
        InputFileError: A file cannot be read.
        DataError: A folder has other files in it.
    """
    check_choice("queries", queries, ("all", *_KINDS))
    kinds = _KINDS if queries == "all" else (queries,)
    for path in _files(builder.path):
        for record in json_records(builder.reads(path), builder.problems):
            with builder.problems.at(record.place):
                name = stem(path) if record.place == str(path) else f"{stem(path)}-{record.number}"
                _meeting(builder, record, name, split=_split(path), kinds=kinds)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    try:
        return list(files_in(path, (".json", ".jsonl")).values())
    except RecordError as error:
        raise DataError(f"{path}: {error}", str(path)) from error


def _split(path: Path) -> str | None:
    """The split that a file or its folder is named by, as in the authors' repository."""
    return next((part for part in (stem(path), path.resolve().parent.name) if part in _SPLITS), None)


def _meeting(builder: DataSetBuilder, record: Record, name: str, *, split: str | None, kinds: Sequence[str]) -> None:
    fields = record.fields
    whole, turns = _transcript(given(fields, "meeting_transcripts"))
    document = builder.document(name, whole)
    for kind in kinds:
        for number, query in enumerate(_list(fields, f"{kind}_query_list"), 1):
            with builder.problems.at(f"{record.place}, {kind} query {number}"):
                _object(query, "the query")
                builder.question(
                    id=f"{name}-{kind}-{number}",
                    text=text(query, "query"),
                    documents=[document],
                    answers=[text(query, "answer")],
                    evidence=_evidence(query, document, turns) if kind == "specific" else (),
                    about={"kind": kind, **({"split": split} if split else {})},
                )


def _transcript(turns: Any) -> tuple[str, Turns]:
    """The text of a meeting, and the first character of each turn and the one behind its last."""
    if not isinstance(turns, list):
        raise RecordError(f"meeting_transcripts must be a list of turns, got {shown(turns)}")
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    start = 0
    for number, turn in enumerate(turns):
        _object(turn, f"meeting_transcripts[{number}]")
        # A speaker may say nothing that was written down.
        content = as_text(given(turn, "content"), f"meeting_transcripts[{number}].content", blank=True)
        line = " ".join(f"{text(turn, 'speaker')}: {content}".splitlines())
        lines.append(line)
        places.append((start, start + len(line)))
        start += len(line) + 1
    return "\n".join(lines), places


def _evidence(query: Mapping[str, Any], document: str, turns: Turns) -> Iterator[Evidence]:
    for number, span in enumerate(_list(query, "relevant_text_span")):
        what = f"relevant_text_span[{number}]"
        if not isinstance(span, list) or len(span) != 2:
            raise RecordError(f"{what} must be the first and the last turn, got {shown(span)}")
        first, last = (as_count(turn, what) for turn in span)
        if not first <= last < len(turns):
            raise RecordError(
                f"{what} must be turns from 0 to {len(turns) - 1}, the first not behind the last, got {shown(span)}"
            )
        yield Evidence(document, turns[first][0], turns[last][1])


def _list(fields: Mapping[str, Any], field: str) -> list[Any]:
    value = given(fields, field)
    if not isinstance(value, list):
        raise RecordError(f"{field} must be a list, got {shown(value)}")
    return value


def _object(value: Any, what: str) -> None:
    if not isinstance(value, dict):
        raise RecordError(f"{what} must be an object, got {shown(value)}")
