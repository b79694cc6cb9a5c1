"""∞Bench (Zhang et al. 2024, arXiv 2402.13718): JSON lines of En.QA, En.MC and their like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import DataRow, Texts, as_text, json_lines, letter_place, shown, text_place
from oprag.compare.validation import Name, Text

__all__ = ["read"]


def _listed(answer: Any) -> Any:
    return [as_text(answer, "answer")] if isinstance(answer, str) else answer


class _Line(DataRow):
    id: Name | None = None
    input: Text
    options: Texts | None = None
    answer: Annotated[Texts, Field(min_length=1), BeforeValidator(_listed)]
    context: Text


def read(builder: DataSetBuilder) -> None:
    """Read lines of `{id, context, input, answer, options}`.

    `answer` is a text or a list of texts. With `options` it is the text of the right one, alone or before its letter,
    as the benchmark's own `get_answer` reads it. Equal contexts are one document, named by the line of the first.
    """
    for record in json_lines(builder.reads(builder.path), builder.problems):
        with builder.problems.at(record.place):
            line = _Line.read(record.fields)
            right = _right(line.answer, line.options) if line.options else None
            builder.question(
                id=line.id or record.name,
                text=line.input,
                documents=[builder.context(line.context, record.name)],
                answers=line.answer if right is None else line.answer[:1],
                choices=line.options or (),
                right_choice=right,
                about=line.about,
            )


def _right(answers: Sequence[str], choices: Sequence[str]) -> int:
    right = text_place(answers[0], "answer", choices)
    if len(answers) > 2 or (
        len(answers) == 2 and choices[letter_place(answers[1], "answer[1]", choices)] != answers[0]
    ):
        raise RecordError(f"answer must be the right option, alone or before its letter, got {shown(list(answers))}")
    return right
