"""The result of a sweep: curves, budgets that are not points of a curve, and the recommended setting."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from oprag.compare.analysis.best import choose_economical
from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.profiles import profile_of, retrieval_of
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.reader import ResultsReader
from oprag.compare.results import Results
from oprag.compare.running.report import RunReport
from oprag.errors import ExperimentError
from oprag.profile import Profile

__all__ = ["Sweep", "read_sweep"]

_NO_ROOM = "BudgetError"
"""The error of a question if no chunk fits the token budget; a retry would fail again."""
_MARGIN = 0.5
"""Extra candidates as a share of the maximum that a question of the sweep needed, since others may need more."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The result of a sweep.

    Attributes:
        metric: The metric that was scored.
        results: The results of all settings.
        points: The results of the settings that are points of a curve.
        curves: The curve of each order along the budgets, with its sweet spot, if any.
        conclusions: The conclusion on the best budget, by the orders (and continuities) that share it.
        impossible: Settings that are not on a curve, because no chunk fits the budget for some question.
        remarks: Sentences about budgets that no chunk fits, that are not filled, or that add nothing new.
        chosen: The recommended setting.
        reason: The reason for the recommendation.
        profile: The chosen setting as a profile.
    """

    metric: str
    results: Results
    points: Results
    curves: Sequence[Curve]
    conclusions: Mapping[tuple[str, ...], str]
    impossible: Sequence[SettingSummary]
    remarks: Sequence[str]
    chosen: SettingSummary
    reason: str
    profile: Profile

    @staticmethod
    def settled(report: RunReport) -> RunReport:
        """The report of a run, without the answers that failed because no chunk fits the budget.

        Args:
            report: The report of the run of the sweep.
        """
        others = {error: count for error, count in report.failed.items() if error != _NO_ROOM}
        return replace(report, failed=others, total=report.total - report.failed.get(_NO_ROOM, 0))


def read_sweep(path: str | os.PathLike[str], experiment: str, metric: str) -> Sweep:
    """Read the result of a sweep.

    The recommended setting has the fewest tokens of those at most one standard error below the highest score: the
    one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984). See docs/how_to/sweep.md.

    Args:
        path: The results file.
        experiment: The name of the sweep in the file.
        metric: The metric that was scored.

    Raises:
        ExperimentError: The file does not contain the experiment, or no answer has a score.
        ResultsFileError: The file is missing, corrupt or not a results file.
    """
    results = Results.open(path, experiment)
    impossible = [one for one in results.settings if _is_impossible(one)]
    tried = [one for one in results.settings if not _is_impossible(one)]
    contexts = _read_contexts(tried, path)
    repeated = dict(_repeated(tried, contexts))
    points = [number for number in range(len(tried)) if number not in repeated]
    if not any(metric in tried[number].scores for number in points):
        if impossible and not tried:
            raise ExperimentError(_no_budget_fits(path, experiment), metric)
        raise ExperimentError(f"the sweep has no answer with a score of {metric}", metric)
    on_curves = results.select(tried[number] for number in points)
    curves = [
        replace(curve, exhausted=_is_whole(contexts[points[curve.points[-1].setting.number]]))
        for curve in on_curves.curves("token_budget", metric)
    ]
    scored = [one for one in on_curves.settings if metric in one.scores]
    chosen, reason = choose_economical(scored, metric, axes=("order", "continuity", "token_budget"))
    conclusions = _conclusions(curves)
    about = {
        "metric": metric,
        "score": chosen.scores[metric].describe(),
        "questions": chosen.scores[metric].n,
        "chosen": reason,
        "curves": [f"{', '.join(orders)}: {text}" for orders, text in conclusions.items()],
        "retrieval": retrieval_of(chosen),
    }
    depths = [one.depth for one in contexts[points[chosen.number]].values()]
    return Sweep(
        metric=metric,
        results=results,
        points=on_curves,
        curves=curves,
        conclusions=conclusions,
        impossible=impossible,
        remarks=[
            *_impossible_remarks(impossible),
            *_unfilled_remarks(tried, contexts),
            *_repeated_remarks(tried, repeated),
        ],
        chosen=chosen,
        reason=reason,
        profile=_profile_of(chosen, max(depths, default=1), about),
    )


class _ContextSize(NamedTuple):
    """The identity of a context, and the counts that limit its length."""

    key: str
    kept: int
    depth: int  # rank of the last kept candidate, counted from 1
    dropped: Mapping[str, int]
    chunks: int  # all chunks of the documents


_Contexts = Mapping[Hashable, _ContextSize]
"""The contexts of a setting, by seed and question."""


def _read_contexts(settings: Sequence[SettingSummary], path: str | os.PathLike[str]) -> Sequence[_Contexts]:
    """The contexts of each setting."""
    found: list[dict[Hashable, _ContextSize]] = [{} for _ in settings]
    numbers = {
        setting.matrix.cells[cell].key: number
        for number, setting in enumerate(settings)
        for cell in setting.setting.cells
    }
    if numbers:
        with ResultsReader(path, settings[0].matrix.experiment) as reader:
            cells = {cell.key: cell for cell in reader.cells}
            for answer in reader.answers(numbers):
                if (context := answer.context) is not None:
                    depth = max((rank + 1 for _, rank, _ in context.kept), default=1)
                    seed = cells[answer.cell].values.get("seed")
                    found[numbers[answer.cell]][seed, answer.question] = _ContextSize(
                        context.key,
                        len(context.kept),
                        depth,
                        context.dropped,
                        reader.index_sizes.get(context.index_key, 0),
                    )
    return found


def _is_impossible(setting: SettingSummary) -> bool:
    """Whether questions failed, and all failures are because no chunk fits the budget."""
    return {*setting.matrix.errors[list(setting.setting.cells)].flat} - {None} == {_NO_ROOM}


def _is_whole(contexts: _Contexts) -> bool:
    """Whether every context contains all chunks of its documents."""
    return bool(contexts) and all(one.kept == one.chunks for one in contexts.values())


class _Smaller(NamedTuple):
    """A smaller budget with the same contexts, and whether they contain all chunks of their documents."""

    budget: int
    whole: bool


def _repeated(settings: Sequence[SettingSummary], contexts: Sequence[_Contexts]) -> Iterator[tuple[int, _Smaller]]:
    """The settings with the same contexts as a smaller budget: their numbers and that budget."""
    known: dict[Hashable, int] = {}
    for number, setting in sorted(enumerate(settings), key=lambda one: one[1].values["token_budget"]):
        others = tuple((name, str(value)) for name, value in setting.values.items() if name != "token_budget")
        same = others, frozenset((place, one.key) for place, one in contexts[number].items())
        if contexts[number] and setting.failed == 0 and same in known:
            yield number, _Smaller(known[same], _is_whole(contexts[number]))
        else:
            known[same] = setting.values["token_budget"]


def _ran_out(context: _ContextSize) -> bool:
    """Whether all candidates were used, though the budget has room and the documents have more chunks."""
    dropped = context.dropped
    # If chunks were dropped by the similarity threshold, further candidates would be dropped too.
    if dropped.keys() & {"token_budget", "similarity_threshold"}:
        return False
    considered = context.kept + sum(count for reason, count in dropped.items() if reason not in ("k", "max_candidates"))
    return considered < context.chunks


def _no_budget_fits(path: str | os.PathLike[str], experiment: str) -> str:
    with ResultsReader(path, experiment) as reader:
        (message,) = [failure.message for failure in reader.failures() if failure.error == _NO_ROOM]
    return f"for every budget of the sweep, no chunk fits the budget for some question: {message}"


def _conclusions(curves: Sequence[Curve]) -> dict[tuple[str, ...], str]:
    orders: dict[str, list[str]] = {}
    for curve in curves:
        orders.setdefault(curve.describe(), []).append(_name_of(curve.values))
    return {tuple(names): text for text, names in orders.items()}


def _name_of(values: Mapping[str, Any]) -> str:
    """The order of a curve, and its continuity if it has any."""
    continuity = values.get("continuity")
    return f"{values['order']}, continuity {continuity}" if continuity else str(values["order"])


def _impossible_remarks(impossible: Sequence[SettingSummary]) -> Iterator[str]:
    for budget, group in _by_budget(impossible).items():
        failed, total = max((one.failed, one.asked) for one in group)
        yield (
            f"token_budget={budget} ({_orders(group)}) is not a point of the curve: no chunk fits it in "
            f"{failed:,} of {total:,} answers; use smaller chunks"
        )


def _unfilled_remarks(settings: Sequence[SettingSummary], contexts: Sequence[_Contexts]) -> Iterator[str]:
    answers = {one.number: sum(map(_ran_out, group.values())) for one, group in zip(settings, contexts, strict=True)}
    for budget, group in _by_budget([one for one in settings if answers[one.number]]).items():
        worst = max(group, key=lambda one: answers[one.number] / one.answered)
        yield (
            f"token_budget={budget} ({_orders(group)}) is not filled: the {_limit_of(worst):,} best-ranked chunks all "
            f"fit it in {answers[worst.number]:,} of {worst.answered:,} answers, and there are more; use a larger k or "
            "larger chunks to fill it"
        )


def _repeated_remarks(settings: Sequence[SettingSummary], repeated: Mapping[int, _Smaller]) -> Iterator[str]:
    budgets: defaultdict[tuple[_Smaller, str], list[str]] = defaultdict(list)
    for number, smaller in repeated.items():
        values = settings[number].values
        budgets[smaller, values["order"]].append(str(values["token_budget"]))
    orders: defaultdict[tuple[_Smaller, str], list[str]] = defaultdict(list)
    for (smaller, order), some in budgets.items():
        orders[smaller, ", ".join(some)].append(order)
    for (smaller, same), some in orders.items():
        why = ", which contains all chunks" if smaller.whole else ""
        yield (
            f"token_budget={same} ({', '.join(some)}) is not another point of the curve: it has the same contexts as "
            f"token_budget={smaller.budget}{why}"
        )


def _by_budget(settings: Sequence[SettingSummary]) -> dict[int, list[SettingSummary]]:
    found: dict[int, list[SettingSummary]] = {}
    for one in settings:
        found.setdefault(one.values["token_budget"], []).append(one)
    return found


def _orders(settings: Sequence[SettingSummary]) -> str:
    return ", ".join(dict.fromkeys(str(one.values["order"]) for one in settings))


def _profile_of(setting: SettingSummary, depth: int, about: Mapping[str, Any]) -> Profile:
    """The profile of a setting whose questions needed at most `depth` candidates."""
    if setting.values.get("continuity"):
        # What is kept depends on all candidates.
        return profile_of(setting, about)
    k, limit = int(depth * (1 + _MARGIN) + 1), _limit_of(setting)
    # At most as many as in the sweep, whose candidates may not have filled the budget.
    return profile_of(setting, about, k=k if limit is None else min(k, limit))


def _limit_of(setting: SettingSummary) -> int | None:
    """Maximum number of best-ranked chunks of a setting apart from its token budget; None without a limit."""
    limits = [setting.values[name] for name in ("k", "max_candidates") if setting.values[name] is not None]
    return min(limits, default=None)
