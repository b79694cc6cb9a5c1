"""LongBench (Bai et al., arXiv 2308.14508) and its second version (arXiv 2412.15204): JSON lines, or a JSON list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.records import DataRow, Texts, json_records, letter_index
from oprag.compare.validation import Name, String, Text
from oprag.options import check_text

__all__ = ["read"]


class _First(DataRow):
    id: Name | None = Field(default=None, alias="_id")
    input: String
    context: Text
    answers: Texts = Field(min_length=1)


class _Second(DataRow):
    id: Name | None = Field(default=None, alias="_id")
    first: Text = Field(alias="choice_A")
    second: Text = Field(alias="choice_B")
    third: Text = Field(alias="choice_C")
    fourth: Text = Field(alias="choice_D")
    question: Text
    context: Text
    answer: Any


def read(builder: DataSetBuilder, *, question: str | None = None) -> None:
    """Read `{input, context, answers, …, _id}` (version 1) or `{question, choice_A, …, answer, context, _id}` (2)."""
    check_text("question", question, optional=True)
    for record in json_records(builder, builder.path):
        with builder.at(record.place):
            row: _First | _Second
            asked: Mapping[str, Any]
            if "choice_A" in record.fields:
                row = _Second.read(record.fields)
                choices = (row.first, row.second, row.third, row.fourth)
                right = letter_index(row.answer, "answer", choices)
                asked = {"text": row.question, "choices": choices, "right_choice": right}
            else:
                row = _First.read(record.fields)
                asked = {"text": _asked(row, question), "answers": row.answers}
            document = builder.context(row.context, record.name)
            builder.question(id=row.id or record.name, documents=[document], about=row.about, **asked)


def _asked(row: _First, default: str | None) -> str:
    asked = row.input if row.input.strip() else (default or "")
    if not asked.strip():
        task = f" (task {row.about['dataset']})" if isinstance(row.about.get("dataset"), str) else ""
        raise RecordError(f"input must not be empty{task}; the option `question` gives what to ask in its place")
    return asked
