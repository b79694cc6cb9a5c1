"""What a sweep says: where its curves peak, if they do, and which setting is worth deploying."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from oprag.compare.analysis.best import choose_economical
from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.reader import ResultsReader
from oprag.compare.results import Results
from oprag.compare.sweep.points import NO_ROOM, Repeated, Unfilled, is_impossible, read_contexts, remarks_of
from oprag.compare.sweep.profile import profile_of, retrieval_of
from oprag.errors import ExperimentError
from oprag.profile import Profile

__all__ = ["Repeated", "Sweep", "Unfilled", "read_sweep"]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a sweep says.

    Attributes:
        metric: What was scored.
        settings: What each setting scored and took.
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
    settings: Sequence[SettingSummary]
    curves: Sequence[Curve]
    orders: Sequence[SettingDifference]
    impossible: Sequence[SettingSummary]
    unfilled: Sequence[Unfilled]
    repeated: Sequence[Repeated]
    chosen: SettingSummary
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
    """What a sweep says that was run; the chosen setting is that of `choose_economical`.

    Args:
        path: The results file.
        experiment: The name of the sweep in it.
        metric: What was scored.
        watch: Told how many settings have their intervals, and how many there are.

    Raises:
        ExperimentError: There is no such experiment in the file, or nothing was scored.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    whole = Results.open(path, experiment).compute([metric], watch)
    impossible = [one for one in whole.settings if is_impossible(one)]
    points = [one for one in whole.settings if not is_impossible(one)]
    contexts = read_contexts(points, path, experiment)
    again = {one.setting.number for one in contexts.repeated}
    points = [one for one in points if one.number not in again]
    if not any(metric in one.scores for one in points):
        if impossible and not points:
            raise ExperimentError(_no_room(path, experiment), metric)
        raise ExperimentError(f"the sweep has no answer with a score of {metric}", metric)
    results = whole.select(points)
    full = [one in contexts.whole for one in points]
    curves = [
        replace(curve, exhausted=full[curve.points[-1].setting.number])
        for curve in results.curves("token_budget", metric)
    ]
    scored = [one for one in results.settings if metric in one.scores]
    chosen, why = choose_economical(scored, metric, axes=("order", "token_budget"))
    about = {
        "metric": metric,
        "score": chosen.scores[metric].describe(),
        "questions": chosen.scores[metric].n,
        "chosen": why,
        "curves": [f"{', '.join(orders)}: {said}" for orders, said in _conclusions(curves).items()],
        "retrieval": retrieval_of(chosen),
    }
    return Sweep(
        metric=metric,
        settings=whole.settings,
        curves=curves,
        orders=results.differences("order", [metric]),
        impossible=impossible,
        unfilled=contexts.unfilled,
        repeated=contexts.repeated,
        chosen=chosen,
        why=why,
        profile=profile_of(chosen, path, about),
    )


def _no_room(path: str | os.PathLike[str], experiment: str) -> str:
    with ResultsReader(path, experiment) as reader:
        (message,) = [failure.message for failure in reader.failures() if failure.error == NO_ROOM]
    return f"no budget of the sweep has room for a chunk of every question: {message}"


def _conclusions(curves: Sequence[Curve]) -> dict[tuple[str, ...], str]:
    orders: dict[str, list[str]] = {}
    for curve in curves:
        orders.setdefault(curve.describe(), []).append(str(curve.values["order"]))
    return {tuple(names): said for said, names in orders.items()}
