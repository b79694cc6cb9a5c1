"""Summary statistics of a sample of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oprag.compare.stats.resampling import RESAMPLES, FloatArray, IntArray, bootstrap_interval, units_of

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary statistics of a sample of scores.

    Attributes:
        n: Number of scores.
        mean: Their mean; None without any.
        low: The lower end of the interval of the mean; None with fewer than two units, or without samples.
        high: Its upper end.
        median: The median; None without any.
        standard_deviation: Of the sample (divided by n - 1); None for fewer than two scores.
        units: The number of clusters, or of scores if there are none. Below ten the interval is too narrow.
    """

    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    median: float | None = None
    standard_deviation: float | None = None
    units: int = 0

    def describe(self) -> str:
        """The mean with its interval, to three digits, or what there is of them."""
        if self.mean is None:
            return "–"
        interval = "" if self.low is None or self.high is None else f" [{self.low:z.3f}, {self.high:z.3f}]"
        return f"{self.mean:z.3f}{interval}"


def summarise(
    values: FloatArray,
    clusters: IntArray | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Summary:
    """The mean with its bootstrap interval, the median and the standard deviation.

    The interval is the percentile bootstrap over questions: what the mean would be with other questions of the same
    kind. Questions about one document are not independent of each other; with `clusters` whole documents are drawn, and
    the interval is as wide as so many documents allow. With few units it is too narrow: in simulations of scores of
    which half are 0, as F1 often is, 95 % intervals held the true mean in 79 % of the samples of 5 questions, 89 % of
    those of 10, 93 % of those of 20 and 30, and 95 % of those of 50. The sequence of the questions does not matter.

    Args:
        values: The score of each question, of shape (questions,); NaN where it has none.
        clusters: What each question belongs to, such as its document, of the same shape.
        confidence: Confidence level of the interval.
        resamples: Number of bootstrap samples; 0 for no interval.
    """
    known = ~np.isnan(values)
    values = values[known]
    if not len(values):
        return Summary(n=0)
    units = units_of(values, None if clusters is None else clusters[known])
    low, high = bootstrap_interval(units, confidence, resamples) or (None, None)
    return Summary(
        n=len(values),
        mean=units.mean,
        low=low,
        high=high,
        median=float(np.median(values)),
        standard_deviation=float(np.std(values, ddof=1)) if len(values) > 1 else None,
        units=len(units.sums),
    )
