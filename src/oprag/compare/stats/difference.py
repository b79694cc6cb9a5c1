"""The difference between two ways to answer the same questions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from oprag.compare.stats.resampling import RESAMPLES, check_resampling, check_scores
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["FEW_UNITS", "Difference", "paired_difference"]

Key = TypeVar("Key", bound=Hashable)

FEW_UNITS = 10
"""With fewer units than this the interval is clearly too narrow."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """First minus second, over the questions that both have.

    Attributes:
        n: How many questions both have.
        mean: The mean difference; None without any.
        low: The lower end of its interval; None where fewer than two units were drawn from.
        high: Its upper end.
        excludes_zero: Whether the interval lies on one side of 0.
        unpaired: How many questions one of the two has alone; they play no part.
        p_value: Of the sign-flip test, two-sided; None without questions. For `holm`, where many differences are
            looked at.
        units: What the interval was drawn from: how many clusters, or questions where there are none.
        differing: How many questions differ at all.
    """

    n: int
    mean: float | None
    low: float | None
    high: float | None
    excludes_zero: bool
    unpaired: int
    p_value: float | None
    units: int
    differing: int

    def describe(self) -> str:
        """The difference in one line, with what it lacks."""
        if self.mean is None:
            parts = ["no question that both have"]
        elif self.low is None or self.high is None:
            parts = [f"{self.mean:+z.3f}, n = {self.n:,}", "too few for an interval"]
        else:
            parts = [f"{self.mean:+z.3f} [{self.low:+z.3f}, {self.high:+z.3f}], n = {self.n:,}"]
            if self.units != self.n:
                parts[0] += f" in {self.units:,} clusters"
            if self.units < FEW_UNITS:
                parts.append("so few that the interval is too narrow")
        if self.unpaired:
            parts.append(f"{self.unpaired:,} without a counterpart")
        return "; ".join(parts)


def paired_difference(
    first: Mapping[Key, float],
    second: Mapping[Key, float],
    *,
    clusters: Mapping[Key, Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Difference:
    """How much better the first is than the second, question by question, and how sure that is.

    Questions differ in difficulty far more than two ways to answer them do. The difference is therefore taken for each
    question, and the percentile bootstrap draws questions (or clusters) with both their scores; the interval is then
    much narrower than that of two separate samples.

    With the sides the other way round it is the negative, to the last digit, and the p-value is the same.

    Args:
        first: The score of each question by its key.
        second: The scores that it is compared with.
        clusters: What each question belongs to, such as its document; questions of one cluster are drawn together.
        confidence: How often such an interval holds the truth.
        resamples: How many samples are drawn. The p-value cannot fall below 1 / (resamples + 1), which bounds how many
            differences `holm` can look at together.
        seed: The same seed gives the same interval, in whatever sequence the questions come.

    Raises:
        OptionError: A score is no finite number, a question that both have has no cluster, or an option cannot be.

    Example:
        >>> in_order = {f"q{number}": number / 10 for number in range(11)}
        >>> by_rank = {f"q{number}": abs(number - 2) / 10 for number in range(11)}
        >>> paired_difference(in_order, by_rank).describe()
        '+0.145 [+0.055, +0.200], n = 11'
    """
    from oprag.compare.stats.permutation import sign_flip_p_value
    from oprag.compare.stats.resampling import bootstrap_interval, units_of

    check_resampling(confidence, resamples, seed)
    for side, scores in (("first", first), ("second", second)):
        check_scores(scores, f"in {side}")
    both = [key for key in first if key in second]
    unpaired = len(first) + len(second) - 2 * len(both)
    if clusters is not None and (missing := [key for key in both if key not in clusters]):
        raise OptionError(
            f"clusters must name the cluster of each question, got none for {describe(missing[0])}", missing
        )
    if not both:
        return Difference(
            n=0,
            mean=None,
            low=None,
            high=None,
            excludes_zero=False,
            unpaired=unpaired,
            p_value=None,
            units=0,
            differing=0,
        )
    apart = [float(first[key]) - float(second[key]) for key in both]
    units = units_of(
        apart,
        None if clusters is None else [clusters[key] for key in both],
    )
    low, high = bootstrap_interval(units, confidence, resamples, seed) or (None, None)
    return Difference(
        n=len(both),
        mean=units.mean,
        low=low,
        high=high,
        excludes_zero=low is not None and high is not None and (low > 0 or high < 0),
        unpaired=unpaired,
        p_value=sign_flip_p_value(units, resamples, seed),
        units=len(units.sums),
        differing=len(apart) - apart.count(0.0),
    )
