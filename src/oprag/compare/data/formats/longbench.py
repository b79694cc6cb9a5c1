"""LongBench (Bai et al., arXiv 2308.14508) and its second version (arXiv 2412.15204): JSON lines, or a JSON list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprag.compare.data.fields import about, as_text, as_texts, given, identifier, letter_place, text
from oprag.compare.data.files import stem
from oprag.compare.data.gather import Gathered
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import Record, json_records
from oprag.options import check_text

__all__ = ["read"]

_FIRST = ("_id", "context", "input", "answers")
_CHOICES = ("choice_A", "choice_B", "choice_C", "choice_D")
_SECOND = ("_id", "context", "question", "answer", *_CHOICES)


def read(gathered: Gathered, *, question: str | None = None) -> None:
    """Take in `{input, context, answers, …, _id}` (version 1) or `{question, choice_A, …, answer, context, _id}` (2).

    Args:
        gathered: Where it comes to.
        question: What is asked where `input` is empty, as it is in tasks of the first version that summarise.

    Raises:
        OptionError: The question is no string.
        InputFileError: The file cannot be read.
    """
    check_text("question", question, optional=True)
    for record in json_records(gathered.reads(gathered.path), gathered.problems):
        with gathered.problems.at(record.place):
            if "choice_A" in record.fields:
                _second(gathered, record)
            else:
                _first(gathered, record, question)


def _first(gathered: Gathered, record: Record, default: str | None) -> None:
    fields = record.fields
    asked = as_text(given(fields, "input"), "input", blank=True)
    if not asked.strip():
        if default is None or not default.strip():
            task = f" (task {fields['dataset']})" if isinstance(fields.get("dataset"), str) else ""
            raise RecordError(f"input must not be empty{task}; the option `question` gives what to ask in its place")
        asked = default
    gathered.question(
        id=_name(gathered, record),
        text=asked,
        documents=[_context(gathered, record)],
        answers=as_texts(given(fields, "answers"), "answers", least=1),
        about=about(fields, but=_FIRST),
    )


def _second(gathered: Gathered, record: Record) -> None:
    fields: Mapping[str, Any] = record.fields
    choices = tuple(text(fields, choice) for choice in _CHOICES)
    gathered.question(
        id=_name(gathered, record),
        text=text(fields, "question"),
        documents=[_context(gathered, record)],
        choices=choices,
        right_choice=letter_place(given(fields, "answer"), "answer", choices),
        about=about(fields, but=_SECOND),
    )


def _name(gathered: Gathered, record: Record) -> str:
    return identifier(record.fields, "_id", f"{stem(gathered.path)}-{record.number}")


def _context(gathered: Gathered, record: Record) -> str:
    return gathered.context(text(record.fields, "context"), f"{stem(gathered.path)}-{record.number}")
