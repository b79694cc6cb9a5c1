"""Metrics of which more is better."""

from __future__ import annotations

from oprag.compare.reading import Results
from oprag.compare.table import check_known_metric, metrics_of
from oprag.errors import OptionError

__all__ = ["NOT_BETTER", "check_better", "check_metric"]

NOT_BETTER = {
    "inverted_pairs": "it says how chunks stand, and not how good an answer is",
    "paper_token_usage": "it counts tokens",
    "long_context_share": "it counts tokens",
}
"""The metrics of which more is not better, and why."""


def check_better(metric: str) -> None:
    """Refuse a metric of which more is not better.

    Raises:
        OptionError: It is one.
    """
    if metric in NOT_BETTER:
        raise OptionError(f"more {metric} is not better: {NOT_BETTER[metric]}; name a metric of the answers", metric)


def check_metric(metric: str, results: Results) -> None:
    """Refuse a metric of which no value is the best.

    Raises:
        OptionError: There is no such metric, or more of it is not better.
    """
    check_better(metric)
    check_known_metric(metric, metrics_of(results))
