"""Metrics: functions of plain values, checked against reference implementations."""

from oprag.compare.metrics.answers import (
    answer_cosine,
    choice_accuracy,
    exact_match,
    long_context_share,
    paper_token_usage,
    rouge_l,
    token_f1,
)
from oprag.compare.metrics.contexts import evidence_coverage, inverted_pairs, mrr, ndcg, recall

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
