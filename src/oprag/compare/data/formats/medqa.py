"""MedQA (Jin et al. 2020, arXiv 2009.13081): JSON Lines of questions, and a folder of textbooks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.documents import folder_library
from oprag.compare.data.records import DataRow, json_lines, letter_index, text_index
from oprag.compare.validation import Text
from oprag.errors import OptionError
from oprag.masking import describe, listed

__all__ = ["read"]


class _MedqaRow(DataRow):
    options: dict[str, Text]
    answer: Text
    answer_idx: Any = None
    question: Text


def read(builder: DataSetBuilder, *, documents: Path | None = None) -> None:
    """Read lines of `{question, answer, options: {"A": …}, answer_idx, meta_info}`.

    Every question is about the whole corpus.
    """
    if documents is None:
        raise OptionError("medqa requires documents; pass documents=..., the folder with the textbooks to search", None)
    corpus = folder_library(documents, builder).take_all()
    for record in json_lines(builder, builder.path):
        with builder.at(record.place):
            line = _MedqaRow.read(record.fields)
            choices = _choices(line.options)
            right = text_index(line.answer, "answer", choices)
            if line.answer_idx is not None:
                right = letter_index(line.answer_idx, "answer_idx", choices)
                if choices[right] != line.answer:
                    raise RecordError(
                        f"answer_idx {describe(line.answer_idx)} is the option {describe(choices[right])}, but answer "
                        f"is {describe(line.answer)}; they must agree"
                    )
            builder.question(
                id=record.name,
                text=line.question,
                documents=corpus,
                choices=choices,
                right_choice=right,
                about=line.about,
            )


def _choices(options: Mapping[str, str]) -> tuple[str, ...]:
    if len(options) > len(ascii_uppercase) or set(options) != set(ascii_uppercase[: len(options)]):
        raise RecordError(f"options must have consecutive letters from A, got {listed(options)}")
    return tuple(options[letter] for letter in sorted(options))
