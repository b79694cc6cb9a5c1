"""∞Bench (Zhang et al. 2024, arXiv 2402.13718): JSON lines of En.QA, En.MC and their like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.files import stem
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import (
    about,
    as_text,
    as_texts,
    given,
    identifier,
    json_lines,
    letter_place,
    optional_texts,
    shown,
    text,
    text_place,
)

__all__ = ["read"]

_FIELDS = ("id", "context", "input", "answer", "options")


def read(builder: DataSetBuilder) -> None:
    """Take in lines of `{id, context, input, answer, options}`.

    `answer` is a text or a list of texts. With `options` it is the text of the right one, alone or before its letter,
    as the benchmark's own `get_answer` reads it. Equal contexts are one document, named by the line of the first.

    Raises:
        InputFileError: The file cannot be read.
    """
    prefix = stem(builder.path)
    for record in json_lines(builder.reads(builder.path), builder.problems):
        with builder.problems.at(record.place):
            fields = record.fields
            question = text(fields, "input")
            choices = optional_texts(fields, "options")
            answers = _answers(given(fields, "answer"))
            right = _right(answers, choices) if choices else None
            line = f"{prefix}-{record.number}"
            builder.question(
                id=identifier(fields, "id", line),
                text=question,
                documents=[builder.context(text(fields, "context"), line)],
                answers=answers if right is None else answers[:1],
                choices=choices,
                right_choice=right,
                about=about(fields, but=_FIELDS),
            )


def _answers(answer: Any) -> tuple[str, ...]:
    return (as_text(answer, "answer"),) if isinstance(answer, str) else as_texts(answer, "answer", least=1)


def _right(answers: Sequence[str], choices: Sequence[str]) -> int:
    right = text_place(answers[0], "answer", choices)
    if len(answers) > 2 or (
        len(answers) == 2 and choices[letter_place(answers[1], "answer[1]", choices)] != answers[0]
    ):
        raise RecordError(f"answer must be the right option, alone or before its letter, got {shown(list(answers))}")
    return right
