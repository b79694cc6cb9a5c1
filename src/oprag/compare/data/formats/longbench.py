"""LongBench (Bai et al., arXiv 2308.14508) and LongBench v2 (arXiv 2412.15204): JSON Lines, or a JSON list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.records import DataRow, Texts, json_records, letter_index
from oprag.compare.validation import Name, String, Text
from oprag.options import check_text

__all__ = ["read"]


class _Version1(DataRow):
    id: Name | None = Field(default=None, alias="_id")
    input: String
    context: Text
    answers: Texts = Field(min_length=1)


class _Version2(DataRow):
    id: Name | None = Field(default=None, alias="_id")
    first: Text = Field(alias="choice_A")
    second: Text = Field(alias="choice_B")
    third: Text = Field(alias="choice_C")
    fourth: Text = Field(alias="choice_D")
    question: Text
    context: Text
    answer: Any


def read(builder: DataSetBuilder, *, question: str | None = None) -> None:
    """Read `{input, context, answers, …, _id}` (v1) or `{question, choice_A, …, answer, context, _id}` (v2)."""
    check_text("question", question, optional=True)
    for record in json_records(builder, builder.path):
        with builder.at(record.place):
            row: _Version1 | _Version2
            question_fields: Mapping[str, Any]
            if "choice_A" in record.fields:
                row = _Version2.read(record.fields)
                choices = (row.first, row.second, row.third, row.fourth)
                right = letter_index(row.answer, "answer", choices)
                question_fields = {"text": row.question, "choices": choices, "right_choice": right}
            else:
                row = _Version1.read(record.fields)
                question_fields = {"text": _question_text(row, question), "answers": row.answers}
            document = builder.context(row.context, record.name)
            builder.question(id=row.id or record.name, documents=[document], about=row.about, **question_fields)


def _question_text(row: _Version1, default: str | None) -> str:
    text = row.input if row.input.strip() else (default or "")
    if not text.strip():
        task = f" (task {row.about['dataset']})" if isinstance(row.about.get("dataset"), str) else ""
        raise RecordError(f"input must not be empty{task}; set the option `question` to the question to ask instead")
    return text
