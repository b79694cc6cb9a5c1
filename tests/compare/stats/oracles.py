"""Many differences looked at together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from oprag.compare.stats.resampling import check_scores
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["holm"]

Key = TypeVar("Key", bound=Hashable)


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """The p-values of a family of tests, adjusted so that all claims together are wrong in at most so many cases.

    Of 100 differences that are nothing, five fall below 0.05 by chance. What is below 0.05 after the adjustment can be
    claimed for the whole family: the chance that any of these claims is wrong is at most 5 %, however the tests depend
    on each other (Holm 1979, "A simple sequentially rejective multiple test procedure").

    Args:
        p_values: The p-value of each test by its key (`Difference.p_value`).

    Returns:
        The adjusted p-values with the same keys in the same sequence; never smaller than the given ones.

    Raises:
        OptionError: A p-value is not from 0 to 1.

    Example:
        >>> holm({"k = 8": 0.02, "k = 32": 0.01, "k = 128": 0.4})
        {'k = 8': 0.04, 'k = 32': 0.03, 'k = 128': 0.4}
    """
    check_scores(p_values, "in the family")
    for key, value in p_values.items():
        if not 0 <= value <= 1:
            raise OptionError(f"p-values must be from 0 to 1, got {describe(value)} for {describe(key)}", value)
    adjusted: dict[Key, float] = dict.fromkeys(p_values, 1.0)
    so_far = 0.0
    for place, key in enumerate(sorted(p_values, key=lambda key: p_values[key])):
        so_far = max(so_far, min(1.0, (len(p_values) - place) * float(p_values[key])))
        adjusted[key] = so_far
    return adjusted
