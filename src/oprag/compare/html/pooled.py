"""What answers of several settings scored and took together, as a pivot or a heat map shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median, stdev

from oprag.compare.html.material import Material, tokens_of
from oprag.compare.setting import Setting

__all__ = ["Pool", "pooled"]


@dataclass(frozen=True)
class Pool:
    """Values of all answers of some settings.

    Attributes:
        scores: The score of each question in each setting, averaged over seeds and repeats.
        tokens: The tokens of each answer.
        seconds: The seconds of each answer, where they were measured.
    """

    scores: list[float]
    tokens: list[float]
    seconds: list[float]

    @staticmethod
    def middle(values: list[float]) -> tuple[float | None, float | None]:
        """The median and the standard deviation of a sample (divided by n - 1); None where there are too few."""
        return (median(values) if values else None), (stdev(values) if len(values) > 1 else None)

    @staticmethod
    def mean(values: list[float]) -> float | None:
        """The mean; None without any."""
        return fmean(values) if values else None


def pooled(material: Material, settings: Iterable[Setting]) -> Pool:
    """The values of all answers of these settings."""
    pool = Pool([], [], [])
    seconds: Mapping[str, Mapping[str, float]] = material.seconds
    for setting in settings:
        if material.metric is not None:
            pool.scores.extend(setting.scores(material.metric).values())
        for cell in setting.cells:
            pool.tokens.extend(tokens_of(answer) for answer in cell.answers.values() if not answer.failed)
            pool.seconds.extend(seconds.get(cell.key, {}).values())
    return pool
