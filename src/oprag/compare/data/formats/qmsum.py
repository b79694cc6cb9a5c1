"""QMSum (Zhong et al., NAACL 2021): meetings with queries, as JSON or JSON Lines files."""

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


# First and last turn; the authors write them as strings of digits.
_Span = Annotated[list[NonNegativeInt], Field(min_length=2, max_length=2)]


class _Turn(DataRow):
    speaker: Text
    content: String  # may be empty


class _Query(DataRow):
    query: Text
    answer: Text
    relevant_text_span: list[_Span] = Field(default_factory=list)


class _Meeting(DataRow):
    meeting_transcripts: list[_Turn]
    general_query_list: list[Any] = Field(default_factory=list)
    specific_query_list: list[Any] = Field(default_factory=list)


def read(builder: DataSetBuilder, *, queries: str = "all") -> None:
    """Read meetings from a JSON file with one meeting, a JSON Lines file, or a folder of such files.

    A meeting becomes a text with one line per turn, "Speaker: content". The evidence of a specific query is its spans
    of turns, converted to character offsets in that text; a general query is about the whole meeting and has no
    evidence.
    """
    check_choice("queries", queries, ("all", *_KINDS))
    kinds = _KINDS if queries == "all" else (queries,)
    path = builder.path
    for file in files_in(path, (".json", ".jsonl")).values() if path.is_dir() else [path]:
        for record in json_records(builder, file):
            with builder.at(record.place):
                _meeting(builder, record, split=_split(file), kinds=kinds)


def _split(path: Path) -> str | None:
    """Split in the name of the file or of its folder, as in the authors' repository."""
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
    """Convert spans of turns to character spans; `starts` has the offset of each turn and one past the last."""
    for number, (first, last) in enumerate(spans):
        if not first <= last < len(starts) - 1:
            raise RecordError(
                f"relevant_text_span[{number}] must be the first and last turn in ascending order, from 0 to "
                f"{len(starts) - 2}, got {first} to {last}"
            )
        yield Evidence(document, starts[first], starts[last + 1] - 1)
