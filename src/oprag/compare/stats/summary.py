"""One sample of scores in a few numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from oprag.compare.stats.resampling import RESAMPLES, check_resampling, finite
from oprag.errors import OptionError

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a sample of scores says.

    Attributes:
        n: How many scores.
        mean: Their mean; None without any.
        low: The lower end of the interval of the mean; None where fewer than two units were drawn from.
        high: Its upper end.
        median: The median; None without any.
        standard_deviation: Of the sample (divided by n - 1); None for fewer than two scores.
        units: What the interval was drawn from: how many clusters, or scores where there are none. Under ten the
            interval is too narrow.
    """

    n: int
    mean: float | None
    low: float | None
    high: float | None
    median: float | None
    standard_deviation: float | None
    units: int

    def describe(self) -> str:
        """The mean with its interval, to three digits, or what there is of them."""
        if self.mean is None:
            return "–"
        interval = "" if self.low is None or self.high is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.mean:.3f}{interval}"


def summarise(
    values: Iterable[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Summary:
    """The mean with its bootstrap interval, the median and the standard deviation.

    The interval is the percentile bootstrap over questions: what the mean would be with other questions of the same
    kind. Questions about one document are not independent of each other; with `clusters` whole documents are drawn, and
    the interval is as wide as so many documents allow. With few units it is too narrow: in simulations of scores of
    which half are 0, as F1 often is, 95 % intervals held the true mean in 79 % of the samples of 5 questions, 89 % of
    those of 10, 93 % of those of 20 and 30, and 95 % of those of 50.

    Args:
        values: The score of each question.
        clusters: What each question belongs to, such as its document; in the sequence of the values.
        confidence: How often such an interval holds the truth.
        resamples: How many samples are drawn.
        seed: The same seed gives the same interval, in whatever sequence the values come.

    Raises:
        OptionError: A value is no finite number, there are not as many clusters as values, or an option cannot be.

    Example:
        >>> scores = summarise([0.0, 0.5, 1.0, 0.5])
        >>> scores.n, scores.mean, scores.low, scores.high, scores.median
        (4, 0.5, 0.125, 0.875, 0.5)
    """
    import numpy as np

    from oprag.compare.stats.resampling import bootstrap_interval, units_of

    check_resampling(confidence, resamples, seed)
    if isinstance(values, Mapping):  # Whose keys would be taken for the scores.
        raise OptionError("values must be numbers one after another, got a mapping; give its .values()", values)
    numbers = [finite(value, f"question {place}") for place, value in enumerate(values)]
    if clusters is not None and len(clusters) != len(numbers):
        raise OptionError(
            f"clusters must name the cluster of each value, got {len(clusters)} for {len(numbers)} values", clusters
        )
    if not numbers:
        return Summary(n=0, mean=None, low=None, high=None, median=None, standard_deviation=None, units=0)
    units = units_of(numbers, clusters)
    low, high = bootstrap_interval(units, confidence, resamples, seed) or (None, None)
    return Summary(
        n=len(numbers),
        mean=units.mean,
        low=low,
        high=high,
        median=float(np.median(numbers)),
        standard_deviation=float(np.std(numbers, ddof=1)) if len(numbers) > 1 else None,
        units=len(units.sums),
    )
