"""QMSum (Zhong et al., NAACL 2021): meetings with queries, as JSON files or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.files import files_in, stem
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import DataRow, Record, json_records, shown
from oprag.compare.validation import String, Text
from oprag.errors import DataError
from oprag.masking import listed
from oprag.options import check_choice

__all__ = ["read"]

_KINDS = ("general", "specific")
_SPLITS = ("train", "val", "test")


def _turn(number: Any) -> int:
    """The number of a turn, which the authors write as digits."""
    # ASCII, since other digits and very long numbers are something else.
    if isinstance(number, str) and number.isascii() and number.isdigit() and len(number) < 19:
        return int(number)
    if type(number) is not int or number < 0:
        raise PydanticCustomError("turn", "must be a whole number from 0")
    return number


def _pair(turns: list[int]) -> list[int]:
    if len(turns) != 2:
        raise PydanticCustomError("span", "must be the first and the last turn")
    return turns


class _Turn(DataRow):
    speaker: Text
    content: String  # a speaker may say nothing that was written down


class _Query(DataRow):
    query: Text
    answer: Text


class _SpecificQuery(_Query):
    relevant_text_span: list[Annotated[list[Annotated[int, PlainValidator(_turn)]], AfterValidator(_pair)]]


class _Meeting(DataRow):
    meeting_transcripts: list[_Turn]
    general_query_list: list[Any] = Field(default_factory=list)
    specific_query_list: list[Any] = Field(default_factory=list)


def read(builder: DataSetBuilder, *, queries: str = "all") -> None:
    """Read meetings: a JSON file of one, JSON lines, or a folder of such files.

    A meeting becomes a text with a line for each turn, "Speaker: content". The evidence of a specific query is its
    spans of turns, as characters of that text; a general query is about the whole meeting and has none.
    """
    check_choice("queries", queries, ("all", *_KINDS))
    kinds = _KINDS if queries == "all" else (queries,)
    for path in _files(builder.path):
        for record in json_records(builder.reads(path), builder.problems):
            with builder.problems.at(record.place):
                name = stem(path) if record.place == str(path) else record.name
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
    meeting = _Meeting.read(record.fields)
    lines = [" ".join(f"{turn.speaker}: {turn.content}".splitlines()) for turn in meeting.meeting_transcripts]
    document = builder.document(name, "\n".join(lines))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for kind in kinds:
        field = f"{kind}_query_list"
        if field not in meeting.model_fields_set:
            raise RecordError(f"the field {field!r} is missing; the fields are {listed(record.fields)}")
        for number, given in enumerate(getattr(meeting, field), 1):
            with builder.problems.at(f"{record.place}, {kind} query {number}"):
                query = (_Query if kind == "general" else _SpecificQuery).read(given)
                builder.question(
                    id=f"{name}-{kind}-{number}",
                    text=query.query,
                    documents=[document],
                    answers=[query.answer],
                    evidence=_evidence(query, document, starts) if isinstance(query, _SpecificQuery) else (),
                    about={"kind": kind, "split": split},
                )


def _evidence(query: _SpecificQuery, document: str, starts: Sequence[int]) -> Iterator[Evidence]:
    """The spans of turns as characters; with the start of each turn, and that of one after the last."""
    for number, (first, last) in enumerate(query.relevant_text_span):
        if not first <= last < len(starts) - 1:
            given = query.relevant_text_span[number]
            raise RecordError(
                f"relevant_text_span[{number}] must be turns from 0 to {len(starts) - 2}, the first not behind the "
                f"last, got {shown(given)}"
            )
        yield Evidence(document, starts[first], starts[last + 1] - 1)
