"""∞Bench (Zhang et al. 2024, arXiv 2402.13718): JSON Lines of En.QA, En.MC and similar tasks."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.records import DataRow, Texts, json_lines, letter_index, text_index
from oprag.compare.validation import Name, Text
from oprag.masking import describe

__all__ = ["read"]


class _InfiniteBenchRow(DataRow):
    id: Name | None = None
    input: Text
    options: Texts | None = None
    answer: Texts = Field(min_length=1)
    context: Text


def read(builder: DataSetBuilder) -> None:
    """Read lines of `{id, context, input, answer, options}`.

    `answer` is a string or a list of strings. With `options` it is the text of the right option, optionally followed by
    its letter, as the benchmark's own `get_answer` reads it. Equal contexts are one document, named after the first
    line that has it.
    """
    for record in json_lines(builder, builder.path):
        with builder.at(record.place):
            line = _InfiniteBenchRow.read(record.fields)
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
    text, *letters = answers
    right = text_index(text, "answer", choices)
    if len(letters) > 1 or any(choices[letter_index(one, "answer[1]", choices)] != text for one in letters):
        raise RecordError(
            f"answer must be the text of the right option, optionally followed by its letter, got {describe(answers)}"
        )
    return right
