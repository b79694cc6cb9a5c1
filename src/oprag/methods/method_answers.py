"""The answers of several methods to one question, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from oprag._internal.masking import describe, shown
from oprag._internal.text_table import one_line, printable, shortened, table
from oprag.errors import OptionError
from oprag.methods.answer import Answer

__all__ = ["MethodAnswers", "check_methods"]

_ANSWER_WIDTH = 120  # characters of an answer in a row
_QUESTION_LENGTH = 4_000  # characters
_COLUMNS = ("method", "calls", "tokens in", "tokens out", "seconds", "passages", "answer")


def check_methods(methods: Any) -> None:
    """Reject a single string or an empty list, with an `OptionError`."""
    if isinstance(methods, str) or not methods:
        raise OptionError(f"methods must be a list of methods, got {describe(methods)}", methods)


@dataclass(frozen=True)
class MethodAnswers(Sequence[Answer]):
    """The answers of several methods to one question, as a table.

    Attributes:
        question: The question.
        answers: One answer per method, in the given order.
    """

    question: str
    answers: tuple[Answer, ...]

    def rows(self) -> list[dict[str, Any]]:
        """One row per method: method, calls, input_tokens, output_tokens, estimated, seconds, passages, answer, notes.

        Tokens are reported by the model, or estimated (`estimated`). Seconds exclude the retrieval for the question
        itself, which the methods share. `passages` is the number of passages that the model read.
        """
        return [
            {
                "method": answer.method,
                "calls": len(answer.calls),
                "input_tokens": answer.usage.input_tokens,
                "output_tokens": answer.usage.output_tokens,
                "estimated": answer.usage.estimated,
                "seconds": answer.seconds,
                "passages": len(answer.passages),
                "answer": answer.text,
                "notes": list(answer.notes),
            }
            for answer in self.answers
        ]

    def __getitem__(self, index: Any) -> Any:
        return self.answers[index]

    def __len__(self) -> int:
        return len(self.answers)

    def __str__(self) -> str:
        question = printable(shown(self.question, _QUESTION_LENGTH, end=False))
        return "\n".join([f"question: {question}", *table(_COLUMNS, self._cells())])

    def __repr__(self) -> str:
        return str(self)

    def _cells(self) -> Iterator[list[str]]:
        for row in self.rows():
            about = "~" if row["estimated"] else ""
            yield [
                row["method"],
                str(row["calls"]),
                f"{about}{row['input_tokens']:,}",
                f"{about}{row['output_tokens']:,}",
                f"{row['seconds']:.2f}",
                str(row["passages"]),
                shortened(one_line(row["answer"]), _ANSWER_WIDTH),
            ]
