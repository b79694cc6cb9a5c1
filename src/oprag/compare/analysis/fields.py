"""Fields of questions: fields of the data set, and two derived from the evidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import Any

from oprag.compare.db.records import QuestionRecord
from oprag.compare.metrics.registry import RESERVED
from oprag.compare.spec.axes import axes

__all__ = ["MOST_FIELDS", "Fields", "question_fields"]

Fields = Mapping[str, str | int | float | bool]

MOST_FIELDS = 50
"""Maximum number of fields per question; further ones are dropped."""
_SPREAD_DISTANCE = 2_000
"""Evidence counts as spread if more than this many characters lie between two of its spans."""
_MAX_LENGTH = 200
_EVIDENCE_FIELDS = {"evidence_spans", "spread"}


def question_fields(question: QuestionRecord, taken: Collection[str] = ()) -> Fields:
    """Fields of a question by name.

    A question with evidence also has `evidence_spans`, the number of spans, and `spread`: whether the spans are in
    several documents, or more than 2,000 characters lie between two of them. A field of the data set with one of these
    names takes precedence. A field with the name of a result column is renamed to `question_NAME`; `taken` lists the
    columns of metrics and costs.
    """
    found: dict[str, Any] = {}
    if question.evidence:
        found = {"evidence_spans": len(question.evidence), "spread": _is_spread(question.evidence)}
    found |= {str(name): value for name, value in question.about.items() if _is_plain(value)}
    reserved = {*axes(), *RESERVED, *taken} - _EVIDENCE_FIELDS
    named = {f"question_{name}" if name in reserved else name: value for name, value in found.items()}
    return dict(list(named.items())[:MOST_FIELDS])


def _is_spread(evidence: Collection[tuple[str, int, int]]) -> bool:
    several = len({document for document, _, _ in evidence}) > 1
    return several or max(start for _, start, _ in evidence) - min(end for _, _, end in evidence) > _SPREAD_DISTANCE


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= _MAX_LENGTH
    return isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value))
