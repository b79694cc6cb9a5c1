"""QuALITY (Pang et al., NAACL 2022): JSON Lines of articles with multiple-choice questions."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.files import without_gz
from oprag.compare.data.html_text import html_text
from oprag.compare.data.records import DataRow, Texts, json_lines
from oprag.compare.validation import Count, Name, Text

__all__ = ["read"]

_ARTICLE_FIELDS = ("title", "author", "topic", "source", "year")


class _QuestionFields(DataRow):
    question_unique_id: Name | None = None
    question: Text
    options: Texts = Field(min_length=2)
    gold_label: Count | None = None


class _ArticleRow(DataRow):
    set_unique_id: Name | None = None
    article_id: Name | None = None
    article: Text
    questions: list[Any]


def read(builder: DataSetBuilder) -> None:
    """Read lines of `{article_id, set_unique_id, article, questions: [{question, options, gold_label, …}]}`.

    `gold_label` counts from 1; the test set has none. An article has one line for each of its question writers.
    """
    split = PurePath(without_gz(builder.path.name)).suffix.removeprefix(".")
    for record in json_lines(builder, builder.path):
        with builder.at(record.place):
            line = _ArticleRow.read(record.fields)
            document = builder.document(line.article_id or record.name, html_text(line.article))
            article_fields = {field: line.about.get(field) for field in _ARTICLE_FIELDS}
            if split in {"train", "dev", "test"}:
                article_fields["split"] = split
            for number, given in enumerate(line.questions, 1):
                with builder.at(f"{record.place}, question {number}"):
                    question = _QuestionFields.read(given)
                    builder.question(
                        id=question.question_unique_id or f"{line.set_unique_id or record.name}_{number}",
                        text=question.question,
                        documents=[document],
                        choices=question.options,
                        right_choice=None if question.gold_label is None else question.gold_label - 1,
                        about=article_fields | {"difficult": question.about.get("difficult")},
                    )
