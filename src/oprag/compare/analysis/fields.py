"""Fields of questions: those of the data, and where the evidence is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import Any

from oprag.compare.db.records import QuestionRecord
from oprag.compare.metrics.custom import RESERVED
from oprag.compare.spec.axes import axes

__all__ = ["MOST_FIELDS", "Fields", "question_fields"]

Fields = Mapping[str, str | int | float | bool]

MOST_FIELDS = 50
"""Maximum number of fields of a question; further ones are left out."""
_APART = 2_000
"""Evidence is spread where two spans of it are more than these characters apart."""
_LONGEST = 200
_OF_EVIDENCE = {"evidence_spans", "spread"}


def question_fields(question: QuestionRecord, taken: Collection[str] = ()) -> Fields:
    """The fields of a question by their names.

    With evidence it has `evidence_spans`, the number of spans, and `spread`: whether they are in several documents, or
    two of them more than 2,000 characters apart. A field of the data with that name wins. A field with the name of a
    column, of which some are taken by metrics and costs, is `question_NAME`.
    """
    found: dict[str, Any] = {}
    if question.evidence:
        found = {"evidence_spans": len(question.evidence), "spread": _is_spread(question.evidence)}
    found |= {str(name): value for name, value in question.about.items() if _is_plain(value)}
    reserved = {*axes(), *RESERVED, *taken} - _OF_EVIDENCE
    named = {f"question_{name}" if name in reserved else name: value for name, value in found.items()}
    return dict(list(named.items())[:MOST_FIELDS])


def _is_spread(evidence: Collection[tuple[str, int, int]]) -> bool:
    several = len({document for document, _, _ in evidence}) > 1
    return several or max(start for _, start, _ in evidence) - min(end for _, _, end in evidence) > _APART


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= _LONGEST
    return isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
