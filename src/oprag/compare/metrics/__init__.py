"""Metrics, one a file: functions of plain values, checked against reference implementations."""

from typing import TYPE_CHECKING

from oprag.lazy import loader

__all__ = [
    "answer_cosine",
    "choice_accuracy",
    "evidence_coverage",
    "exact_match",
    "inverted_pairs",
    "long_context_share",
    "paper_token_usage",
    "rouge_l",
    "token_f1",
]

# No file is called as its function is: importing the file would put it in the place of the function.
_PLACES = {
    "answer_cosine": "oprag.compare.metrics.vectors",
    "choice_accuracy": "oprag.compare.metrics.choices",
    "evidence_coverage": "oprag.compare.metrics.evidence",
    "exact_match": "oprag.compare.metrics.exact",
    "inverted_pairs": "oprag.compare.metrics.inversions",
    "long_context_share": "oprag.compare.metrics.share",
    "paper_token_usage": "oprag.compare.metrics.paper_tokens",
    "rouge_l": "oprag.compare.metrics.rouge",
    "token_f1": "oprag.compare.metrics.f1",
}

if TYPE_CHECKING:
    from oprag.compare.metrics.choices import choice_accuracy
    from oprag.compare.metrics.evidence import evidence_coverage
    from oprag.compare.metrics.exact import exact_match
    from oprag.compare.metrics.f1 import token_f1
    from oprag.compare.metrics.inversions import inverted_pairs
    from oprag.compare.metrics.paper_tokens import paper_token_usage
    from oprag.compare.metrics.rouge import rouge_l
    from oprag.compare.metrics.share import long_context_share
    from oprag.compare.metrics.vectors import answer_cosine

__getattr__ = loader(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
