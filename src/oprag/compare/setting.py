"""Cells that are one setting with their answers, as the modules read them that are not yet on the matrix of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from oprag.compare.analysis.settings import group_cells
from oprag.compare.reading import CellAnswers

__all__ = ["Setting", "mean_over", "settings_of"]


@dataclass(frozen=True)
class Setting:
    """Cells that are one setting.

    Attributes:
        values: The values of the axes that have an effect, but for the seed and the repeat.
        cells: The cells.
    """

    values: Mapping[str, Any]
    cells: Sequence[CellAnswers] = field(repr=False)

    def scores(self, metric: str) -> dict[str, float]:
        """The score of each question by its key, averaged over the cells, where all of them have one."""
        return mean_over(
            [
                {key: answer.scores[metric] for key, answer in cell.answers.items() if metric in answer.scores}
                for cell in self.cells
            ]
        )


def settings_of(cells: Iterable[CellAnswers]) -> list[Setting]:
    """The settings of cells, in their sequence."""
    cells = list(cells)
    groups = group_cells([cell.values for cell in cells])
    return [Setting(one.values, [cells[number] for number in one.cells]) for one in groups]


def mean_over(by_cell: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean score of each question over the cells of a setting, where all of them have one.

    Five random orders of 100 questions are not 500 questions: the scores of one question under several seeds are
    alike, and resampling them as if they were independent makes the interval too narrow, the more so the more seeds
    there are. Averaged first, each question is one unit; more seeds then take away the noise of the orders, and never
    that of the questions.
    """
    if not by_cell:
        return {}
    first, *others = by_cell
    # From the first on, so that equal scores have exactly their own mean, and make no difference of rounding alone.
    return {
        question: score + fsum(other[question] - score for other in others) / len(by_cell)
        for question, score in first.items()
        if all(question in other for other in others)
    }
