"""What statistics are given: numbers that are some, and options of the resampling."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_count

__all__ = ["LEAST_RESAMPLES", "RESAMPLES", "check_resampling", "check_scores", "finite"]

RESAMPLES = 10_000
"""Number of samples for every interval, so that one sample of scores has the same interval everywhere."""

LEAST_RESAMPLES = 100
"""With fewer the ends of an interval are mere chance."""


def finite(value: Any, where: str) -> float:
    """The value as a float.

    Args:
        value: A score.
        where: Whose score it is, for the message.

    Raises:
        OptionError: It is no finite number. A failed answer has no score: it is left out and counted as failed.
    """
    if not _is_finite(value):
        raise OptionError(
            f"the value of {where} must be a finite number, got {describe(value)}; leave out what failed", value
        )
    return float(value)


def check_scores(scores: Mapping[Any, Any], where: str) -> None:
    """Refuse scores that are not finite numbers, as `finite` does; by their keys, which are described only then."""
    for key, value in scores.items():
        if not _is_finite(value):
            finite(value, f"{describe(key)} {where}")


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        return False


def check_resampling(confidence: Any, resamples: Any, seed: Any) -> None:
    """Refuse options with which no interval can be made.

    Raises:
        OptionError: The confidence is not between 0 and 1, or the others are no whole numbers from 100 and from 0.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < float(confidence) < 1:
        raise OptionError(f"confidence must be between 0 and 1, such as 0.95, got {describe(confidence)}", confidence)
    check_count("resamples", resamples, optional=False, least=LEAST_RESAMPLES)
    check_count("seed", seed, optional=False, least=0)
