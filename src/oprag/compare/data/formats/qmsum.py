"""QMSum (Zhong et al., NAACL 2021): meetings with queries, as JSON files or JSON lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, NonNegativeInt

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.data_set import Evidence
from oprag.compare.data.files import files_in, stem
from oprag.compare.data.records import DataRow, Record, json_records
from oprag.compare.validation import String, Text
from oprag.options import check_choice

__all__ = ["read"]

_KINDS = ("general", "specific")
_SPLITS = ("train", "val", "test")


# The first and the last turn, which the authors write as digits.
_Span = Annotated[list[NonNegativeInt], Field(min_length=2, max_length=2)]


class _Turn(DataRow):
    speaker: Text
    content: String  # a speaker may say nothing that was written down


class _Query(DataRow):
    query: Text
    answer: Text
    # The first and the last turn, which the authors write as digits.
    relevant_text_span: list[Annotated[list[NonNegativeInt], Field(min_length=2, max_length=2)]] = Field(
        default_factory=list
    )


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
    path = builder.path
    for file in files_in(path, (".json", ".jsonl")).values() if path.is_dir() else [path]:
        for record in json_records(builder, file):
            with builder.at(record.place):
                _meeting(builder, record, split=_split(file), kinds=kinds)


def _split(path: Path) -> str | None:
    """The split that a file or its folder is named by, as in the authors' repository."""
    return next((part for part in (stem(path), path.resolve().parent.name) if part in _SPLITS), None)


def _meeting(builder: DataSetBuilder, record: Record, *, split: str | None, kinds: Sequence[str]) -> None:
    meeting = _Meeting.read(record.fields)
    lines = [" ".join(f"{turn.speaker}: {turn.content}".splitlines()) for turn in meeting.meeting_transcripts]
    document = builder.document(record.name, "\n".join(lines))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    for kind in kinds:
        for number, given in enumerate(getattr(meeting, f"{kind}_query_list"), 1):
            with builder.at(f"{record.place}, {kind} query {number}"):
                query = _Query.read(given)
                builder.question(
                    id=f"{record.name}-{kind}-{number}",
                    text=query.query,
                    documents=[document],
                    answers=[query.answer],
                    evidence=_evidence(query.relevant_text_span, document, starts),
                    about={"kind": kind, "split": split},
                )


def _evidence(spans: Sequence[Sequence[int]], document: str, starts: Sequence[int]) -> Iterator[Evidence]:
    """The spans of turns as characters; with the start of each turn, and that of one after the last."""
    for number, (first, last) in enumerate(spans):
        if not first <= last < len(starts) - 1:
            raise RecordError(
                f"relevant_text_span[{number}] must be turns from 0 to {len(starts) - 2}, the first not after the "
                f"last, got {first} to {last}"
            )
        yield Evidence(document, starts[first], starts[last + 1] - 1)
