"""LongBench (Bai et al., arXiv 2308.14508) and its second version (arXiv 2412.15204): JSON lines, or a JSON list."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import DataRow, Texts, json_records, letter_place
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
    for record in json_records(builder.reads(builder.path), builder.problems):
        with builder.problems.at(record.place):
            if "choice_A" in record.fields:
                _take_second(builder, _Second.read(record.fields), record.name)
            else:
                _take_first(builder, _First.read(record.fields), record.name, question)


def _take_first(builder: DataSetBuilder, row: _First, name: str, default: str | None) -> None:
    asked = row.input
    if not asked.strip():
        if default is None or not default.strip():
            task = f" (task {row.about['dataset']})" if isinstance(row.about.get("dataset"), str) else ""
            raise RecordError(f"input must not be empty{task}; the option `question` gives what to ask in its place")
        asked = default
    builder.question(
        id=row.id or name,
        text=asked,
        documents=[builder.context(row.context, name)],
        answers=row.answers,
        about=row.about,
    )


def _take_second(builder: DataSetBuilder, row: _Second, name: str) -> None:
    choices = (row.first, row.second, row.third, row.fourth)
    builder.question(
        id=row.id or name,
        text=row.question,
        documents=[builder.context(row.context, name)],
        choices=choices,
        right_choice=letter_place(row.answer, "answer", choices),
        about=row.about,
    )
