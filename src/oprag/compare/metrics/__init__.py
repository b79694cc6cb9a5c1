"""Metrics: functions of plain values, checked against reference implementations."""

from typing import TYPE_CHECKING

from oprag.lazy import loader

__all__ = [
    "answer_cosine",
    "choice_accuracy",
    "evidence_coverage",
    "exact_match",
    "inverted_pairs",
    "long_context_share",
    "mrr",
    "ndcg",
    "paper_token_usage",
    "recall",
    "rouge_l",
    "token_f1",
]

# No file is called as its function is: importing the file would put it in the place of the function.
_PLACES = {
    "answer_cosine": "oprag.compare.metrics.answers",
    "choice_accuracy": "oprag.compare.metrics.choices",
    "evidence_coverage": "oprag.compare.metrics.contexts",
    "exact_match": "oprag.compare.metrics.answers",
    "inverted_pairs": "oprag.compare.metrics.contexts",
    "long_context_share": "oprag.compare.metrics.answers",
    "mrr": "oprag.compare.metrics.contexts",
    "ndcg": "oprag.compare.metrics.contexts",
    "paper_token_usage": "oprag.compare.metrics.answers",
    "recall": "oprag.compare.metrics.contexts",
    "rouge_l": "oprag.compare.metrics.rouge",
    "token_f1": "oprag.compare.metrics.answers",
}

if TYPE_CHECKING:
    from oprag.compare.metrics.answers import (
        answer_cosine,
        exact_match,
        long_context_share,
        paper_token_usage,
        token_f1,
    )
    from oprag.compare.metrics.choices import choice_accuracy
    from oprag.compare.metrics.contexts import evidence_coverage, inverted_pairs, mrr, ndcg, recall
    from oprag.compare.metrics.rouge import rouge_l

__getattr__ = loader(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
