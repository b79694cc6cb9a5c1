"""What a sweep says: where its curves peak, if they do, and which setting is worth deploying."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from oprag.assembly import Assembly
from oprag.compare.cell import ALONE, LIKELIHOODS
from oprag.compare.highest import Lag, highest, lags
from oprag.compare.pairs import CellDifference, differences
from oprag.compare.reading import opened_database, read_results
from oprag.compare.results_file import ResultsFile
from oprag.compare.setting import Setting, settings_of
from oprag.compare.sweet_spot import SweetSpot, sweet_spots
from oprag.compare.table import CellSummary, cell_table
from oprag.errors import ExperimentError, OptionError
from oprag.methods.options import MethodOptions
from oprag.profile import Profile

__all__ = ["Sweep", "read_sweep"]

_SPREAD = 0.5
"""More candidates than any question of the sweep needed, since others may need more."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a sweep says.

    Attributes:
        metric: What was scored.
        table: A row for each setting.
        curves: What can be said of the best budget, for each order.
        orders: How the other orders differ from the first one, under each budget.
        chosen: The setting that is worth deploying.
        why: Why it is.
        profile: It, as a profile.
    """

    metric: str
    table: Sequence[CellSummary]
    curves: Sequence[SweetSpot]
    orders: Sequence[CellDifference]
    chosen: CellSummary
    why: str
    profile: Profile

    @property
    def conclusions(self) -> dict[tuple[str, ...], str]:
        """What can be said of the best budget, by the orders of which it can."""
        return _conclusions(self.curves)


def read_sweep(path: ResultsFile | str | os.PathLike[str], experiment: str, metric: str) -> Sweep:
    """What a sweep says that was run.

    The chosen setting is the one with the fewest tokens whose mean is within one standard error of the highest one: of
    models that are hardly worse than the best one, the smallest (the one-standard-error rule, Breiman, Friedman, Olshen
    and Stone 1984, Classification and Regression Trees, 3.4.3). The error is that of the difference to the highest,
    question by question.

    Args:
        path: The results file.
        experiment: The name of the sweep in it.
        metric: What was scored.

    Raises:
        ExperimentError: There is no such experiment in the file, or nothing was scored.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    results = read_results(path, experiment)
    table = cell_table(results)
    rows = [
        (setting, row)
        for setting, row in zip(settings_of(results.cells), table, strict=True)
        if row.scores.get(metric) is not None
    ]
    if not rows:
        raise ExperimentError(f"the sweep has no answer with a score of {metric}", metric)
    curves = sweet_spots(results, axis="token_budget", metric=metric, table=table)
    scores = [setting.scores(metric) for setting, _ in rows]
    top = highest(scores)
    behind = lags(scores, top, clusters=results.clusters, confidence=0.95)
    near = [number for number in range(len(rows)) if number == top or _is_near(behind[number])]
    place = min(near, key=lambda number: (rows[number][1].per_answer.get("context_tokens", 0.0), number))
    setting, chosen = rows[place]
    why = _why(rows[top][1], chosen, len(near) - 1, metric)
    about = {
        "metric": metric,
        "score": _score(chosen, metric),
        "questions": chosen.scores[metric].n,
        "chosen": why,
        "curves": [f"{', '.join(orders)}: {said}" for orders, said in _conclusions(curves).items()],
        "retrieval": _retrieval(setting),
    }
    return Sweep(
        metric=metric,
        table=table,
        curves=curves,
        orders=differences(results, axis="order", metrics=[metric]),
        chosen=chosen,
        why=why,
        profile=_profile(setting, results.described["count_tokens"], path, about),
    )


def _conclusions(curves: Sequence[SweetSpot]) -> dict[tuple[str, ...], str]:
    orders: dict[str, list[str]] = {}
    for curve in curves:
        orders.setdefault(curve.describe(), []).append(str(curve.values["order"]))
    return {tuple(names): said for said, names in orders.items()}


def _is_near(lag: Lag) -> bool:
    """Whether the mean difference to the highest is at most its standard error."""
    one = lag.difference
    if one.mean is None or one.low is None or one.high is None:
        return False
    # Of a 95 % interval, about 1.96 standard errors to each side.
    return one.mean <= (one.high - one.low) / (2 * 1.96)


def _why(top: CellSummary, chosen: CellSummary, near: int, metric: str) -> str:
    if chosen is top:
        return f"the highest {metric}, and no setting with fewer tokens is within one standard error of it"
    return (
        f"the fewest tokens of {near + 1} settings within one standard error of the highest {metric} "
        f"({_score(top, metric)} at order={top.values['order']}, token_budget={top.values['token_budget']})"
    )


def _score(row: CellSummary, metric: str) -> str:
    one = row.scores[metric]
    return f"{one.mean:.3f}" + ("" if one.low is None or one.high is None else f" [{one.low:.3f}, {one.high:.3f}]")


def _retrieval(setting: Setting) -> str:
    """What a profile cannot hold, since it belongs to the index."""
    names = ("splitter", "chunk_size", "chunk_overlap", "embedder", "retriever", "store")
    return ", ".join(f"{name}={setting.values[name]}" for name in names if setting.values.get(name) is not None)


def _profile(
    setting: Setting, counter: str, path: ResultsFile | str | os.PathLike[str], about: Mapping[str, Any]
) -> Profile:
    values = {**setting.values, "k": _candidates(setting, path)}
    if values["order"] == "random":
        values["seed"] = setting.cells[0].values["seed"]
    assembly = Assembly(**_those_of(Assembly, values))
    answered = values["method"] not in (*ALONE, *LIKELIHOODS)
    options = MethodOptions(**_those_of(MethodOptions, values)) if answered else None
    profile = Profile.of(assembly, options, about)
    try:
        return replace(profile, assembly={**profile.assembly, "count_tokens": counter})
    except OptionError:
        # A function of the user's own: no profile names code to be run.
        said = f"{counter}, which no profile can name: give count_tokens beside it"
        return replace(profile, about={**profile.about, "count_tokens": said})


def _those_of(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {one.name: values[one.name] for one in fields(kind) if one.name in values}


def _candidates(setting: Setting, path: ResultsFile | str | os.PathLike[str]) -> int:
    """How many of the best-ranked chunks a retriever has to give, so that the budget decides as it did here."""
    marks = ", ".join("?" * len(setting.cells))
    with opened_database(path).reading() as connection:
        rows = connection.execute(
            "SELECT contexts.kept FROM answers JOIN cells ON cells.id = answers.cell "  # noqa: S608
            f"JOIN contexts ON contexts.id = answers.context WHERE cells.key IN ({marks})",
            [cell.key for cell in setting.cells],
        )
        needed = max((rank + 1 for (kept,) in rows for _, rank, _ in json.loads(kept)), default=1)
    return int(needed * (1 + _SPREAD) + 1)
