"""LongBench (Bai et al., arXiv 2308.14508) and its second version (arXiv 2412.15204): JSON lines, or a JSON list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.files import stem
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import (
    Record,
    about,
    as_text,
    as_texts,
    given,
    identifier,
    json_records,
    letter_place,
    text,
)
from oprag.options import check_text

__all__ = ["read"]

_FIRST = ("_id", "context", "input", "answers")
_CHOICES = ("choice_A", "choice_B", "choice_C", "choice_D")
_SECOND = ("_id", "context", "question", "answer", *_CHOICES)


def read(builder: DataSetBuilder, *, question: str | None = None) -> None:
    """Take in `{input, context, answers, …, _id}` (version 1) or `{question, choice_A, …, answer, context, _id}` (2).

    Args:
        builder: Where it comes to.
        question: What is asked where `input` is empty, as it is in tasks of the first version that summarise.

    Raises:
        OptionError: The question is no string.
        InputFileError: The file cannot be read.
    """
    check_text("question", question, optional=True)
    for record in json_records(builder.reads(builder.path), builder.problems):
        with builder.problems.at(record.place):
            if "choice_A" in record.fields:
                _second(builder, record)
            else:
                _first(builder, record, question)


def _first(builder: DataSetBuilder, record: Record, default: str | None) -> None:
    fields = record.fields
    asked = as_text(given(fields, "input"), "input", blank=True)
    if not asked.strip():
        if default is None or not default.strip():
            task = f" (task {fields['dataset']})" if isinstance(fields.get("dataset"), str) else ""
            raise RecordError(f"input must not be empty{task}; the option `question` gives what to ask in its place")
        asked = default
    builder.question(
        id=_name(builder, record),
        text=asked,
        documents=[_context(builder, record)],
        answers=as_texts(given(fields, "answers"), "answers", least=1),
        about=about(fields, but=_FIRST),
    )


def _second(builder: DataSetBuilder, record: Record) -> None:
    fields: Mapping[str, Any] = record.fields
    choices = tuple(text(fields, choice) for choice in _CHOICES)
    builder.question(
        id=_name(builder, record),
        text=text(fields, "question"),
        documents=[_context(builder, record)],
        choices=choices,
        right_choice=letter_place(given(fields, "answer"), "answer", choices),
        about=about(fields, but=_SECOND),
    )


def _name(builder: DataSetBuilder, record: Record) -> str:
    return identifier(record.fields, "_id", f"{stem(builder.path)}-{record.number}")


def _context(builder: DataSetBuilder, record: Record) -> str:
    return builder.context(text(record.fields, "context"), f"{stem(builder.path)}-{record.number}")
