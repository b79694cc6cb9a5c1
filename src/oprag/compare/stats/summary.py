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
        mean: The mean score; None without scores.
        low: The lower end of the confidence interval of the mean; None with fewer than two units, or 0 resamples.
        high: The upper end of the confidence interval; None if `low` is.
        median: The median score; None without scores.
        standard_deviation: The sample standard deviation (n - 1); None with fewer than two scores.
        units: Number of clusters, or of scores if they are not clustered. Below ten the interval is too narrow.
    """

    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    median: float | None = None
    standard_deviation: float | None = None
    units: int = 0

    def describe(self) -> str:
        """The mean with its interval, to three decimals; without the interval if it is None, "–" without a mean."""
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

    The interval is the percentile bootstrap over questions: the range of the mean with other questions of the same
    kind. Questions about the same document are not independent; with `clusters`, whole documents are resampled, so the
    width of the interval depends on the number of documents. With few units it is too narrow: in simulations with half
    of the scores 0, as is common with F1, 95 % intervals contained the true mean in 79 % of the samples of 5 questions,
    89 % of those of 10, 93 % of those of 20 and 30, and 95 % of those of 50. The order of the questions has no effect.

    Args:
        values: The score of each question, of shape (questions,); NaN if it has none.
        clusters: The cluster of each question, such as its document, of the same shape.
        confidence: Confidence level of the interval, between 0 and 1.
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
