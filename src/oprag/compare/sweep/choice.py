"""What a sweep says: where its curves peak, if they do, and which setting is worth deploying."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from oprag.compare.analysis.settings import asks_model
from oprag.compare.curve import Row
from oprag.compare.family import family_of
from oprag.compare.highest import as_arrays, highest
from oprag.compare.pairs import CellDifference, differences
from oprag.compare.reading import Results, read_failures, read_results
from oprag.compare.setting import settings_of
from oprag.compare.stats.difference import Difference, paired_difference
from oprag.compare.sweep.points import NO_ROOM, Repeated, Unfilled, is_impossible, read_contexts, remarks_of
from oprag.compare.sweep.profile import profile_of, retrieval_of
from oprag.compare.sweet_spot import SweetSpot, sweet_spots
from oprag.compare.table import CellSummary, cell_table
from oprag.errors import ExperimentError
from oprag.profile import Profile

__all__ = ["Repeated", "Sweep", "Unfilled", "read_sweep"]

_ALIKE = 1.01
"""Settings with up to so many times the fewest tokens have as many: orders differ by a mark or a word at one budget."""

_OF_ALIKE = "; of those with as many tokens, to one part in a hundred, the one in source order"


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a sweep says.

    Attributes:
        metric: What was scored.
        table: A row for each setting.
        curves: What can be said of the best budget, for each order.
        orders: How the other orders differ from the first one, under each budget.
        impossible: The settings that are on no curve, since questions failed whose chunks do not fit the budget.
        unfilled: The settings whose candidates ran out before their budget did.
        repeated: The settings that are on no curve, since their contexts are those of a smaller budget.
        chosen: The setting that is worth deploying.
        why: Why it is.
        profile: It, as a profile.
    """

    metric: str
    table: Sequence[CellSummary]
    curves: Sequence[SweetSpot]
    orders: Sequence[CellDifference]
    impossible: Sequence[CellSummary]
    unfilled: Sequence[Unfilled]
    repeated: Sequence[Repeated]
    chosen: CellSummary
    why: str
    profile: Profile

    @property
    def conclusions(self) -> dict[tuple[str, ...], str]:
        """What can be said of the best budget, by the orders of which it can."""
        return _conclusions(self.curves)

    @property
    def remarks(self) -> list[str]:
        """What has to be said of budgets that hold no chunk, were not filled or hold nothing more, a sentence each."""
        return remarks_of(self.impossible, self.repeated, self.unfilled)


def read_sweep(
    path: str | os.PathLike[str],
    experiment: str,
    metric: str,
    *,
    watch: Callable[[int, int], None] | None = None,
) -> Sweep:
    """What a sweep says that was run.

    The chosen setting is the one with the fewest tokens that is at most one standard error behind the highest one: of
    models that are hardly worse than the best one, the smallest (the one-standard-error rule, Breiman, Friedman, Olshen
    and Stone 1984, Classification and Regression Trees, 3.4.3). The error is that of the difference, question by
    question, not that of the highest mean as in the book: all settings were asked the same questions, hard and easy
    ones. The tokens are those that the model read and wrote; without a model those of the context. Of
    settings that take as many, to one part in a hundred, it is the one in source order. The random order is a control,
    and is chosen where there is no other one alone.

    Args:
        path: The results file.
        experiment: The name of the sweep in it.
        metric: What was scored.
        watch: Told how many settings have their intervals, and how many there are.

    Raises:
        ExperimentError: There is no such experiment in the file, or nothing was scored.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    results = read_results(path, experiment)
    table = cell_table(results, watch=watch)
    everything = list(zip(settings_of(results.cells), table, strict=True))
    impossible = [row for setting, row in everything if is_impossible(setting)]
    points = [(setting, row) for setting, row in everything if not is_impossible(setting)]
    contexts = read_contexts(points, path, experiment)
    again = [one.setting for one in contexts.repeated]
    points = [(setting, row) for setting, row in points if not any(row is one for one in again)]
    rows = [(setting, row) for setting, row in points if row.scores.get(metric) is not None]
    if not rows:
        if impossible and not points:
            raise ExperimentError(_no_room(path, experiment), metric)
        raise ExperimentError(f"the sweep has no answer with a score of {metric}", metric)
    results = replace(results, cells=[cell for setting, _ in points for cell in setting.cells])
    family = family_of(results, metric)
    curves = [
        replace(curve, exhausted=any(curve.points[-1].setting is row for row in contexts.whole))
        for curve in sweet_spots(
            results, axis="token_budget", metric=metric, table=[row for _, row in points], family=family
        )
    ]
    (setting, chosen), why = _choice(rows, results, metric)
    about = {
        "metric": metric,
        "score": chosen.scores[metric].describe(),
        "questions": chosen.scores[metric].n,
        "chosen": why,
        "curves": [f"{', '.join(orders)}: {said}" for orders, said in _conclusions(curves).items()],
        "retrieval": retrieval_of(setting),
    }
    return Sweep(
        metric=metric,
        table=table,
        curves=curves,
        orders=differences(results, axis="order", metrics=[metric], family=family),
        impossible=impossible,
        unfilled=contexts.unfilled,
        repeated=contexts.repeated,
        chosen=chosen,
        why=why,
        profile=profile_of(setting, results, path, about),
    )


def _no_room(path: str | os.PathLike[str], experiment: str) -> str:
    (message,) = [failure.message for failure in read_failures(path, experiment) if failure.error == NO_ROOM]
    return f"no budget of the sweep has room for a chunk of every question: {message}"


def _conclusions(curves: Sequence[SweetSpot]) -> dict[tuple[str, ...], str]:
    orders: dict[str, list[str]] = {}
    for curve in curves:
        orders.setdefault(curve.describe(), []).append(str(curve.values["order"]))
    return {tuple(names): said for said, names in orders.items()}


def _choice(rows: Sequence[Row], results: Results, metric: str) -> tuple[Row, str]:
    """The setting that is worth deploying, and why it is."""
    # What a control scores is chance, and what is deployed should be better.
    controls = [row for row in rows if row[0].values["order"] == "random"]
    rows = [row for row in rows if row[0].values["order"] != "random"] or rows
    scores = [setting.scores(metric) for setting, _ in rows]
    top = highest(scores)
    arrays, clusters = as_arrays(scores, results.clusters)
    behind = {
        number: paired_difference(arrays[top], other, clusters) for number, other in enumerate(arrays) if number != top
    }
    near = [row for number, row in enumerate(rows) if number == top or _is_near(behind[number])]
    most = _ALIKE * min(_tokens(row) for _, row in near)
    alike = [row for row in near if _tokens(row[1]) <= most]
    chosen = min(alike, key=lambda row: (row[0].values["order"] != "source", _tokens(row[1])))
    if chosen is not rows[top]:
        why = (
            f"the fewest tokens of {len(near)} settings that are behind the highest {metric} "
            f"({_score_at(rows[top][1], metric)}) by at most one standard error of the difference"
        )
    elif any(one.low is not None for one in behind.values()):
        why = f"the highest {metric}; those with fewer tokens are behind it by more than one standard error"
    else:
        why = f"the highest {metric}; of so few questions nothing can be said of its error"
    if any(_tokens(row) < _tokens(chosen[1]) for _, row in near):
        why += _OF_ALIKE
    if chance := _higher_control(controls, rows[top][1], metric):
        why += f"; the random order, a control, is higher still ({_score_at(chance, metric)})"
    return chosen, why


def _higher_control(controls: Sequence[Row], top: CellSummary, metric: str) -> CellSummary | None:
    """The control with the highest mean, if it is above the highest of what may be deployed."""
    best = max((row for _, row in controls), key=lambda row: row.scores[metric].mean or 0.0, default=top)
    return best if (best.scores[metric].mean or 0.0) > (top.scores[metric].mean or 0.0) else None


def _is_near(one: Difference) -> bool:
    """Whether it is as high as the highest, or behind it by at most the standard error of the mean difference."""
    if one.mean is None or one.mean <= 0:
        return one.mean is not None
    # Of a 95 % interval, about 1.96 standard errors to each side.
    return one.low is not None and one.high is not None and one.mean <= (one.high - one.low) / (2 * 1.96)


def _tokens(row: CellSummary) -> float:
    """What an answer takes: the tokens that a model read and wrote, or those of the context where none was asked."""
    taken = ("input_tokens", "output_tokens") if asks_model(row) else ("context_tokens",)
    return sum(row.per_answer.get(name, 0.0) for name in taken)


def _score_at(row: CellSummary, metric: str) -> str:
    return f"{row.scores[metric].describe()} at order={row.values['order']}, token_budget={row.values['token_budget']}"
