"""What metrics are given: texts, and gold answers of which each is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_text

__all__ = ["check_answers", "check_texts"]


def check_texts(prediction: Any, answers: Any) -> None:
    """Refuse a prediction that is no string, and gold answers as `check_answers` does.

    Raises:
        OptionError: They cannot be compared.
    """
    check_text("prediction", prediction)
    check_answers("answers", answers)


def check_answers(name: str, answers: Any) -> None:
    """Refuse what is no sequence of at least one string.

    A question without gold answers has no score: 0 would be averaged with the scores of those that have some.

    Raises:
        OptionError: It is a single string, empty, no sequence, or holds something else.
    """
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise OptionError(f"{name} must be a list or tuple of strings, got {describe(answers)}", answers)
    if not answers:
        raise OptionError(f"{name} must hold at least one string, got none; leave out a question without any", answers)
    for answer in answers:
        check_text(f"each of {name}", answer)
