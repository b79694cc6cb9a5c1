"""The comparisons of an experiment in one metric, judged together: a pair of settings has one p-value everywhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from oprag.compare.analysis.differences import ComparisonFamily, Judgment, axis_pairs
from oprag.compare.analysis.matrix import as_numbers
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.curve import ORDERED_AXES, curves_of
from oprag.compare.highest import Scores, as_array, highest
from oprag.compare.metrics.registry import more_is_better
from oprag.compare.reading import Results
from oprag.compare.setting import Setting, settings_of
from oprag.compare.stats.resampling import RESAMPLES, FloatArray
from oprag.compare.table import check_resampling

__all__ = ["Family", "family_of"]


class Family:
    """The comparisons of an experiment in one metric, of scores by the keys of their questions.

    Args:
        pairs: The scores of the two sides of each comparison.
        clusters: What each question belongs to.
        confidence: How often an interval holds the truth.
        resamples: Number of samples for intervals and p-values.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[Scores, Scores]],
        clusters: Mapping[str, Hashable],
        *,
        confidence: float = 0.95,
        resamples: int = RESAMPLES,
    ) -> None:
        check_resampling(confidence, resamples)
        self._questions = list(clusters)
        arrays = ((self._array(first), self._array(second)) for first, second in pairs)
        numbers = as_numbers(list(clusters.values()))
        self._family = ComparisonFamily(arrays, numbers, confidence=confidence, resamples=resamples)

    @property
    def comparisons(self) -> int:
        """The number of comparisons that p-values are corrected for."""
        return self._family.comparisons

    def judge(self, first: Scores, second: Scores) -> Judgment:
        """What is known of the difference between the two sides of a comparison of this family."""
        return self._family.compare(self._array(first), self._array(second))

    def _array(self, sample: Scores) -> FloatArray:
        return as_array(sample, self._questions)


def family_of(
    results: Results,
    metric: str,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Family:
    """All comparisons of an experiment in one metric.

    They are those that tables, sentences and reports are made of: the values of each axis against its first value with
    all else equal and, where more of the metric is better, the highest setting of each data set against all others, and
    the highest point of each curve against its other points. So a pair has the same p-value wherever it is shown.

    The highest setting is picked by its scores: where nothing differs, some single comparison with it has a p-value
    below 0.05 in more than one experiment of twenty (in one of eight for 15 settings). That all comparisons with
    it have one, as a best setting and a sweet spot need, happens in one of twenty at most.

    Args:
        results: The results.
        metric: The metric.
        confidence: How often an interval holds the truth.
        resamples: Number of samples for intervals and p-values.
    """
    settings = settings_of(results.cells)
    scores = {id(setting): setting.scores(metric) for setting in settings}
    pairs = _along_axes(settings, results.described)
    if more_is_better(metric):
        pairs = chain(pairs, _with_the_highest([setting for setting in settings if scores[id(setting)]], scores))
    return Family(
        ((scores[id(first)], scores[id(second)]) for first, second in pairs),
        results.clusters,
        confidence=confidence,
        resamples=resamples,
    )


def _along_axes(settings: Sequence[Setting], described: Mapping[str, Any]) -> Iterator[tuple[Setting, Setting]]:
    for axis in varying_axes(settings)[0]:
        yield from axis_pairs(settings, described, axis)


def _with_the_highest(settings: Sequence[Setting], scores: Mapping[int, Scores]) -> Iterator[tuple[Setting, Setting]]:
    by_data: dict[object, list[Setting]] = {}
    for setting in settings:
        by_data.setdefault(setting.values["data"], []).append(setting)
    groups = list(by_data.values())
    for axis in varying_axes(settings)[0]:
        if axis in ORDERED_AXES:
            groups += [
                [setting for setting, _ in members]
                for _, members in curves_of([(setting, setting) for setting in settings], axis)
            ]
    for members in groups:
        place = highest([scores[id(setting)] for setting in members])
        yield from ((members[place], other) for number, other in enumerate(members) if number != place)
