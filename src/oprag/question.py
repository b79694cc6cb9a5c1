"""Checks of questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oprag.errors import QueryError

__all__ = ["check_question", "check_questions"]


def check_question(question: Any) -> None:
    """Reject a question that cannot be searched for.

    Raises:
        QueryError: It is not a string, or only white space.
    """
    if not isinstance(question, str):
        raise QueryError(f"the question must be a string, got {type(question).__name__}", question)
    if not question or question.isspace():
        raise QueryError("the question is empty", question)


def check_questions(questions: Any) -> list[str]:
    """A list of questions that can be searched for.

    Raises:
        QueryError: It is not a list, is empty, or contains an invalid question.
    """
    if isinstance(questions, str) or not isinstance(questions, Iterable):
        raise QueryError(f"expected a list of questions, got {type(questions).__name__}", questions)
    checked = list(questions)
    if not checked:
        raise QueryError("the list of questions is empty", questions)
    for question in checked:
        check_question(question)
    return checked
