"""QuALITY (Pang et al., NAACL 2022): JSON lines of articles with multiple-choice questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.files import stem
from oprag.compare.data.html_text import html_text
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import Record, about, as_texts, given, identifier, json_lines, shown, text
from oprag.options import check_bool

__all__ = ["read"]

_OF_ARTICLE = ("title", "author", "topic", "source", "year")


def read(builder: DataSetBuilder, *, strip_html: bool = True) -> None:
    """Take in lines of `{article_id, set_unique_id, article, questions: [{question, options, gold_label, …}]}`.

    `gold_label` counts from 1; the test set has none. An article has several lines, one for each of its writers.

    Args:
        builder: Where it comes to.
        strip_html: Take the tags out of an article that has some; the files named `htmlstripped` have none.

    Raises:
        OptionError: `strip_html` is neither True nor False.
        InputFileError: The file cannot be read.
    """
    check_bool("strip_html", strip_html)
    split = PurePath(builder.path.name.removesuffix(".gz")).suffix.removeprefix(".")
    for record in json_lines(builder.reads(builder.path), builder.problems):
        with builder.problems.at(record.place):
            questions = given(record.fields, "questions")
            if not isinstance(questions, list):
                raise RecordError(f"questions must be a list, got {shown(questions)}")
            article = text(record.fields, "article")
            line = f"{stem(builder.path)}-{record.number}"
            document = builder.document(
                identifier(record.fields, "article_id", line), html_text(article) if strip_html else article
            )
            for number, question in enumerate(questions, 1):
                with builder.problems.at(f"{record.place}, question {number}"):
                    if not isinstance(question, dict):
                        raise RecordError(f"must be an object, got {shown(question)}")
                    _question(builder, record, question, document=document, number=number, split=split)


def _question(
    builder: DataSetBuilder, record: Record, question: Mapping[str, Any], *, document: str, number: int, split: str
) -> None:
    prefix = identifier(record.fields, "set_unique_id", f"{stem(builder.path)}-{record.number}")
    choices = as_texts(given(question, "options"), "options", least=2)
    said = {field: record.fields[field] for field in _OF_ARTICLE if field in record.fields}
    if split in {"train", "dev", "test"}:
        said["split"] = split
    if "difficult" in question:
        said["difficult"] = question["difficult"]
    builder.question(
        id=identifier(question, "question_unique_id", f"{prefix}_{number}"),
        text=text(question, "question"),
        documents=[document],
        choices=choices,
        right_choice=_right(question.get("gold_label"), len(choices)),
        about=about(said),
    )


def _right(label: Any, count: int) -> int | None:
    if label is None:
        return None
    if type(label) is not int or not 1 <= label <= count:
        raise RecordError(f"gold_label must be the number of an option, from 1 to {count}, got {shown(label)}")
    return label - 1
