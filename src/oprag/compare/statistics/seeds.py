"""Several random orders as one control."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum
from typing import TypeVar

from oprag.compare.statistics.given import check_scores
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["mean_over"]

Key = TypeVar("Key", bound=Hashable)


def mean_over(values_by_seed: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    """The mean score of each question over several seeds (or repeats), to be resampled afterwards.

    Five random orders of 100 questions are not 500 questions: the scores of one question under several seeds are
    alike, and resampling them as if they were independent makes the interval too narrow, the more so the more seeds
    there are. Averaged first, each question is one unit; more seeds then take away the noise of the orders, and never
    that of the questions.

    Args:
        values_by_seed: For each seed the score of each question by its key; all have the same keys.

    Returns:
        The mean of each question, in the sequence of the first seed.

    Raises:
        OptionError: There is no seed, a question lacks under some of them (the message says which), or a score is no
            finite number.

    Example:
        >>> mean_over([{"q1": 0.0, "q2": 1.0}, {"q1": 0.5, "q2": 1.0}])
        {'q1': 0.25, 'q2': 1.0}
    """
    if not values_by_seed:
        raise OptionError("values_by_seed must hold the scores of at least one seed, got none", values_by_seed)
    keys = dict.fromkeys(key for values in values_by_seed for key in values)
    lacking = {key: [place for place, values in enumerate(values_by_seed) if key not in values] for key in keys}
    if missing := {key: places for key, places in lacking.items() if places}:
        named = "; ".join(
            f"{describe(key)} under seed number {', '.join(map(str, at))}" for key, at in list(missing.items())[:3]
        )
        more = f"; and {len(missing) - 3:,} more" if len(missing) > 3 else ""
        raise OptionError(
            f"each question needs a score under every seed, missing: {named}{more}; leave these questions out", missing
        )
    for place, values in enumerate(values_by_seed):
        check_scores(values, f"under seed number {place}")
    scores = {key: [float(values[key]) for values in values_by_seed] for key in keys}
    # From the first on, so that equal scores have exactly their own mean, and make no difference of rounding alone.
    return {key: first[0] + fsum(one - first[0] for one in first) / len(first) for key, first in scores.items()}
