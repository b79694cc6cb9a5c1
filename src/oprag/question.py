"""Refusing questions that cannot be searched for."""

from __future__ import annotations

from typing import Any

from oprag.errors import QueryError

__all__ = ["check_question"]


def check_question(question: Any) -> None:
    """Refuse a question that cannot be searched for.

    Raises:
        QueryError: It is no string, or has nothing but white space in it.
    """
    if not isinstance(question, str):
        raise QueryError(f"the question must be a string, got {type(question).__name__}", question)
    if not question or question.isspace():
        raise QueryError("the question is empty", question)
