"""Settings of a sweep that are no points of its curves, and those that their budget did not decide."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oprag.compare.curve import Row
from oprag.compare.results_file import ResultsFile
from oprag.compare.setting import Setting
from oprag.compare.sweep.contexts import context_columns
from oprag.compare.table import CellSummary

__all__ = ["NO_ROOM", "Unfilled", "is_impossible", "remarks_of", "unfilled_of"]

NO_ROOM = "BudgetError"
"""What a question fails with that not one chunk fits the budget for; another try would change nothing."""


@dataclass(frozen=True, kw_only=True)
class Unfilled:
    """A setting whose candidates ran out before its budget did, though there were more chunks.

    Attributes:
        setting: The setting.
        answers: For how many of its answers.
    """

    setting: CellSummary
    answers: int


def is_impossible(setting: Setting) -> bool:
    """Whether questions failed since not one chunk fits the budget, and for nothing else."""
    errors = {answer.error for cell in setting.cells for answer in cell.answers.values() if answer.failed}
    return errors == {NO_ROOM}


def unfilled_of(
    rows: Sequence[Row], path: ResultsFile | str | os.PathLike[str], experiment: str
) -> tuple[Unfilled, ...]:
    """The settings whose candidates ran out.

    Args:
        rows: The settings, and what they scored.
        path: The results file.
        experiment: The name of the experiment in it.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    settings = {cell.key: number for number, (setting, _) in enumerate(rows) for cell in setting.cells}
    found: Counter[int] = Counter()
    for key, left_out, chunks in context_columns(
        path, experiment, "cells.key, contexts.dropped, indexes.chunks", list(settings)
    ):
        values = rows[settings[key]][0].values
        depth = values["fetch_k"] or values["k"]
        # What is under the threshold of similarity has no better ones behind it.
        decided = json.loads(left_out).keys() & {"token_budget", "similarity_threshold"}
        if not decided and depth is not None and depth < chunks:
            found[settings[key]] += 1
    return tuple(Unfilled(setting=rows[number][1], answers=found[number]) for number in sorted(found))


def remarks_of(impossible: Sequence[CellSummary], unfilled: Sequence[Unfilled]) -> list[str]:
    """What has to be said of budgets, a sentence each.

    Args:
        impossible: The settings that are no points of the curves.
        unfilled: Those whose candidates ran out.
    """
    return [*_no_points(impossible), *_not_filled(unfilled)]


def _no_points(impossible: Sequence[CellSummary]) -> Iterator[str]:
    for budget in dict.fromkeys(row.values["token_budget"] for row in impossible):
        rows = [row for row in impossible if row.values["token_budget"] == budget]
        failed, asked = max((row.failed, row.asked) for row in rows)
        yield (
            f"token_budget={budget} ({_orders(rows)}) is no point of the curve: not one chunk fits it for {failed:,} "
            f"of {asked:,} answers; smaller chunks would"
        )


def _not_filled(unfilled: Sequence[Unfilled]) -> Iterator[str]:
    for budget in dict.fromkeys(one.setting.values["token_budget"] for one in unfilled):
        ours = [one for one in unfilled if one.setting.values["token_budget"] == budget]
        most = max(ours, key=lambda one: one.answers / one.setting.answered)
        yield (
            f"token_budget={budget} ({_orders([one.setting for one in ours])}) is not filled: the "
            f"{most.setting.values['k']:,} best-ranked chunks all fit it in {most.answers:,} of "
            f"{most.setting.answered:,} answers, and there are more; larger chunks, or a larger k, would fill it"
        )


def _orders(rows: Sequence[CellSummary]) -> str:
    return ", ".join(dict.fromkeys(str(row.values["order"]) for row in rows))
