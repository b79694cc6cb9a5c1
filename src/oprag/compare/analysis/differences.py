"""Differences between settings, judged together: a pair of settings has one p-value everywhere."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import Any, TypeVar

import numpy as np

from oprag.compare.analysis.settings import HasValues, grid_values
from oprag.compare.stats.difference import Difference, paired_difference
from oprag.compare.stats.permutation import max_t_p_values
from oprag.compare.stats.resampling import RESAMPLES, FloatArray, IntArray

__all__ = ["ComparisonFamily", "Judgment", "axis_pairs", "highest"]

Described = TypeVar("Described", bound=HasValues)


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


class ComparisonFamily:
    """Comparisons whose p-values are corrected together (`max_t_p_values`).

    Each pair of scores is counted once, however many settings share them and in whichever direction they are compared.
    Pairs with the same score in every question are not counted: these questions cannot tell them apart.

    Args:
        pairs: The scores of the two sides of each comparison, of shape (questions,); NaN where a side has none.
        clusters: What each question belongs to, of the same shape.
        confidence: How often an interval holds the truth.
        resamples: Number of samples for intervals and p-values.
    """

    def __init__(
        self,
        pairs: Iterable[tuple[FloatArray, FloatArray]],
        clusters: IntArray,
        *,
        confidence: float = 0.95,
        resamples: int = RESAMPLES,
    ) -> None:
        self.confidence = confidence
        self._clusters = clusters
        self._resamples = resamples
        self._numbers: dict[bytes, int] = {}
        compared: dict[frozenset[int], dict[int, float]] = {}
        for first, second in pairs:
            key = self._key(first, second)
            if key not in compared:
                compared[key] = self._by_unit(first, second)
        # Signs are drawn for units in this sequence: those of comparisons without any difference are among them.
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

    def compare(self, first: FloatArray, second: FloatArray) -> Judgment:
        """What is known of the difference between the two sides of a comparison of this family."""
        difference = paired_difference(
            first, second, self._clusters, confidence=self.confidence, resamples=self._resamples
        )
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

    def _key(self, first: FloatArray, second: FloatArray) -> frozenset[int]:
        # By content: 0 is -0, and one NaN the other.
        contents = (np.where(np.isnan(one), np.nan, one + 0.0).tobytes() for one in (first, second))
        return frozenset(self._numbers.setdefault(content, len(self._numbers)) for content in contents)

    def _by_unit(self, first: FloatArray, second: FloatArray) -> dict[int, float]:
        """The difference in each unit: a question, or what it belongs to."""
        apart = first - second
        both = ~np.isnan(apart)
        found: dict[int, list[float]] = {}
        for unit, value in zip(self._clusters[both].tolist(), apart[both].tolist(), strict=True):
            found.setdefault(unit, []).append(value)
        return {unit: fsum(values) for unit, values in found.items()}


def highest(samples: Sequence[FloatArray]) -> int:
    """Where the highest sample is: its mean is above that of the most others, over the questions that both have.

    Where all have the same questions, it is the one with the highest mean. Of equal ones it is the first.

    Args:
        samples: The score of each question, NaN where it has none; at least one sample, each with at least one score.
    """
    known = [~np.isnan(one) for one in samples]
    means = [fsum(one[there].tolist()) / int(there.sum()) for one, there in zip(samples, known, strict=True)]
    numbers = range(len(samples))
    if all(np.array_equal(there, known[0]) for there in known):
        return max(numbers, key=means.__getitem__)

    def ahead(number: int, other: int) -> bool:
        both = known[number] & known[other]
        # Exactly rounded: equal samples differ by 0, however they are sorted.
        return fsum([*samples[number][both].tolist(), *(-samples[other][both]).tolist()]) > 0

    wins = [sum(ahead(number, other) for other in numbers if other != number) for number in numbers]
    return max(numbers, key=lambda number: (wins[number], means[number]))


def axis_pairs(
    settings: Iterable[Described], described: Mapping[str, Any], axis: str
) -> Iterator[tuple[Described, Described]]:
    """Each setting with those of the first value that are like it, the setting that is compared last."""
    settings = [setting for setting in settings if axis in setting.values]
    if not settings:
        return
    there = [setting.values[axis] for setting in settings]
    first = next((value for value in grid_values(described)[axis] if value in there), there[0])
    # By the axes that have an effect: there are few such sets, and within two of them equals are found by their values.
    baselines: dict[frozenset[str], list[Described]] = {}
    for setting in settings:
        if _same(setting.values[axis], first):
            baselines.setdefault(frozenset(setting.values), []).append(setting)
    known: dict[tuple[frozenset[str], frozenset[str]], dict[Hashable, list[Described]]] = {}
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


def _place(setting: HasValues, names: Collection[str]) -> Hashable:
    return tuple((type(value), value) for name, value in setting.values.items() if name in names)


def _same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)
