"""The comparisons of an experiment in one metric, judged together: a pair of settings has one p-value everywhere."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import Any

import numpy as np

from oprag.compare.analysis.settings import grid_values, varying_axes
from oprag.compare.curve import ORDERED_AXES, curves_of
from oprag.compare.highest import Scores, as_arrays, highest
from oprag.compare.metrics.registry import more_is_better
from oprag.compare.reading import Results
from oprag.compare.setting import Setting, settings_of
from oprag.compare.stats.difference import Difference, paired_difference
from oprag.compare.stats.permutation import max_t_p_values
from oprag.compare.stats.resampling import RESAMPLES
from oprag.compare.table import check_resampling

__all__ = ["Family", "Judgment", "axis_pairs", "family_of"]


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """What is known of the difference between two settings.

    Attributes:
        difference: The scores of the first minus those of the second, over the questions that both have.
        adjusted_p: Its p-value, corrected for the whole family; None where the two have no question in
            common, or the same score in every question, and so are not part of it.
        shown: Whether the first is shown to be better: the interval is above 0, and p is below 1 - confidence.
    """

    difference: Difference
    adjusted_p: float | None
    shown: bool

    @property
    def tied(self) -> bool:
        """Whether both have the same score in every question."""
        return self.difference.n > 0 and not self.difference.differing

    def describe(self) -> str:
        """The difference and its p-value in a few words."""
        if self.tied:
            return "the same score in every question"
        adjusted = "" if self.adjusted_p is None else f"; p = {self.adjusted_p:.2g}"
        return f"difference {self.difference.describe()}{adjusted}"


class Family:
    """Comparisons whose p-values are corrected together (`max_t_p_values`).

    Each pair of scores is counted once, however many settings share them and in whichever direction they are compared.
    Pairs with the same score in every question are not counted: these questions cannot tell them apart.

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
        self.clusters = clusters
        self.confidence = confidence
        self._resamples = resamples
        self._numbers: dict[frozenset[tuple[str, float]], int] = {}
        compared: dict[frozenset[int], dict[Hashable, float]] = {}
        for first, second in pairs:
            key = self._key(first, second)
            if key not in compared:
                compared[key] = _by_unit(first, second, clusters)
        units = {unit: row for row, unit in enumerate(dict.fromkeys(chain(*compared.values())))}
        compared = {key: sums for key, sums in compared.items() if any(sums.values())}
        table = np.zeros((len(units), len(compared)))
        for column, sums in enumerate(compared.values()):
            for unit, value in sums.items():
                table[units[unit], column] = value
        corrected = max_t_p_values(table, resamples).tolist() if compared else []
        self._adjusted: dict[frozenset[int], float] = dict(zip(compared, corrected, strict=True))

    @property
    def comparisons(self) -> int:
        """The number of comparisons that p-values are corrected for."""
        return len(self._adjusted)

    def judge(self, first: Scores, second: Scores) -> Judgment:
        """What is known of the difference between the two sides of a comparison of this family."""
        (one, other), clusters = as_arrays([first, second], self.clusters)
        difference = paired_difference(one, other, clusters, confidence=self.confidence, resamples=self._resamples)
        adjusted = self._adjusted.get(self._key(first, second))
        if adjusted is not None and difference.p_value is not None:
            # Of other random signs, it may be larger by a hair.
            adjusted = max(adjusted, difference.p_value)
        above = difference.low is not None and difference.low > 0
        alpha = round(1 - self.confidence, 12)  # 1 - 0.95 is a little more than 0.05
        return Judgment(
            difference=difference,
            adjusted_p=adjusted,
            shown=above and adjusted is not None and adjusted < alpha,
        )

    def _key(self, first: Scores, second: Scores) -> frozenset[int]:
        return frozenset(
            self._numbers.setdefault(frozenset(one.items()), len(self._numbers)) for one in (first, second)
        )


def _by_unit(first: Scores, second: Scores, clusters: Mapping[str, Hashable]) -> dict[Hashable, float]:
    """The difference in each unit: a question, or what it belongs to."""
    found: dict[Hashable, list[float]] = {}
    for question, score in first.items():
        if question in second:
            found.setdefault(clusters[question], []).append(score - second[question])
    return {unit: fsum(apart) for unit, apart in found.items()}


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


def axis_pairs(
    settings: Iterable[Setting], described: Mapping[str, Any], axis: str
) -> Iterator[tuple[Setting, Setting]]:
    """Each setting with those of the first value that are like it, the setting that is compared last."""
    settings = [setting for setting in settings if axis in setting.values]
    if not settings:
        return
    there = [setting.values[axis] for setting in settings]
    first = next((value for value in grid_values(described)[axis] if value in there), there[0])
    # By the axes that have an effect: there are few such sets, and within two of them equals are found by their values.
    baselines: dict[frozenset[str], list[Setting]] = {}
    for setting in settings:
        if _same(setting.values[axis], first):
            baselines.setdefault(frozenset(setting.values), []).append(setting)
    known: dict[tuple[frozenset[str], frozenset[str]], dict[Hashable, list[Setting]]] = {}
    for setting in settings:
        if _same(setting.values[axis], first):
            continue
        names = frozenset(setting.values)
        for others, members in baselines.items():
            shared = (names & others) - {axis}
            if (others, shared) not in known:
                by_values = known[others, shared] = {}
                for one in members:
                    by_values.setdefault(_place(one, shared), []).append(one)
            for one in known[others, shared].get(_place(setting, shared), ()):
                yield one, setting


def _place(setting: Setting, names: Collection[str]) -> Hashable:
    return tuple((type(value), value) for name, value in setting.values.items() if name in names)


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)
