"""MedQA (Jin et al. 2020, arXiv 2009.13081): JSON lines of questions, and a folder of textbooks."""

from __future__ import annotations

from pathlib import Path
from string import ascii_uppercase

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.documents import folder_library
from oprag.compare.data.files import stem
from oprag.compare.data.problems import RecordError
from oprag.compare.data.records import about, as_text, given, json_lines, letter_place, shown, text, text_place
from oprag.errors import OptionError
from oprag.masking import listed

__all__ = ["read"]

_FIELDS = ("question", "answer", "options", "answer_idx")


def read(builder: DataSetBuilder, *, documents: Path | None = None) -> None:
    """Take in lines of `{question, answer, options: {"A": …}, answer_idx, meta_info}`.

    Every question is searched over all of the corpus.

    Args:
        builder: Where they come to.
        documents: The folder of the corpus, such as `textbooks/en`.

    Raises:
        OptionError: No corpus is given.
        InputFileError: The file or the folder cannot be read.
        DataError: There are files in the folder that are no documents.
    """
    if documents is None:
        raise OptionError("medqa needs documents=, the folder of the textbooks that questions are searched over", None)
    corpus = folder_library(documents, builder).take_all()
    for record in json_lines(builder.reads(builder.path), builder.problems):
        with builder.problems.at(record.place):
            fields = record.fields
            choices = _choices(given(fields, "options"))
            answer = text(fields, "answer")
            right = text_place(answer, "answer", choices)
            if fields.get("answer_idx") is not None:
                letter = letter_place(fields["answer_idx"], "answer_idx", choices)
                if choices[letter] != answer:
                    raise RecordError(
                        f"answer_idx is {fields['answer_idx']!r}, which is {shown(choices[letter])}, and answer is "
                        f"{shown(answer)}; they must be the same option"
                    )
                right = letter
            builder.question(
                id=f"{stem(builder.path)}-{record.number}",
                text=text(fields, "question"),
                documents=corpus,
                choices=choices,
                right_choice=right,
                about=about(fields, but=_FIELDS),
            )


def _choices(options: object) -> tuple[str, ...]:
    if not isinstance(options, dict):
        raise RecordError(f"options must be an object of letters, got {shown(options)}")
    if len(options) > len(ascii_uppercase) or set(options) != set(ascii_uppercase[: len(options)]):
        raise RecordError(f"options must have the letters from A on, without a gap, got {listed(options)}")
    return tuple(as_text(options[letter], f"options[{letter!r}]") for letter in sorted(options))
