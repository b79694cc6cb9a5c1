"""Two results of the same questions: the settings that both have, compared question by question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oprag.compare.analysis.differences import ComparisonFamily
from oprag.compare.analysis.matrix import ResultMatrix
from oprag.compare.analysis.settings import Setting, content
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.stats.difference import Difference
from oprag.errors import ExperimentError

__all__ = ["Changed", "changes_since"]


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A setting in two results.

    Attributes:
        setting: The setting in the new results.
        difference: New minus old scores, over the questions that both have; `adjusted_p` is corrected for all settings.
    """

    setting: SettingSummary
    difference: Difference

    @property
    def worse(self) -> bool:
        """Whether the new scores are significantly lower."""
        return (-self.difference).significantly_higher


def changes_since(new: ResultMatrix, old: ResultMatrix, metric: str) -> list[Changed]:
    """Compare the settings that are in both results, in the order of the new ones.

    Questions are the same if their text, gold answers, evidence and documents are.

    Args:
        new: The new results.
        old: The results to compare with.
        metric: The metric.

    Raises:
        ExperimentError: The results have no setting or no scored question in common.
    """
    columns = {question.key: column for column, question in enumerate(old.questions)}
    values = {_key(one): one for one in old.settings}
    same = [(one, values[_key(one)]) for one in new.settings if _key(one) in values]
    if not same:
        raise ExperimentError(
            f"the results of {old.experiment!r} have no setting of {new.experiment!r}", old.experiment
        )
    scores = new.setting_values(metric)
    before = np.full((len(old.settings), len(new.questions)), np.nan)
    if metric in old.values:
        for column, question in enumerate(new.questions):
            if question.key in columns:
                before[:, column] = old.setting_values(metric)[:, columns[question.key]]
    both = np.array([*(scores[one.number] for one, _ in same), *(before[other.number] for _, other in same)])
    if np.isnan(both[: len(same)] - both[len(same) :]).all():
        raise ExperimentError(f"no question has scores for {metric} in both results", metric)
    pairs = [(number, len(same) + number) for number in range(len(same))]
    family = ComparisonFamily(new, both, pairs)
    return [
        Changed(setting=SettingSummary(new, one.number), difference=family.compare(*pair))
        for (one, _), pair in zip(same, pairs, strict=True)
    ]


def _key(setting: Setting) -> object:
    return content(setting.values, setting.values)
