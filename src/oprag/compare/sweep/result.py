"""The result of a sweep: its curves, the budgets that are not points of them, and the setting worth deploying."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from oprag.compare.analysis.best import choose_economical
from oprag.compare.analysis.curves import Curve
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.reader import ResultsReader
from oprag.compare.results import Results
from oprag.compare.running.report import RunReport
from oprag.compare.sweep.profile import limit_of, profile_of, retrieval_of
from oprag.errors import ExperimentError
from oprag.profile import Profile

__all__ = ["Sweep", "read_sweep"]

_NO_ROOM = "BudgetError"
"""The error of a question if no chunk fits the budget; a retry would change nothing."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The result of a sweep.

    Attributes:
        metric: The metric that was scored.
        results: The results of all settings.
        points: The results of the settings that are points of a curve.
        curves: The curve over budgets of each order, with its sweet spot if it has one.
        conclusions: The conclusion on the best budget, by the orders that share it.
        impossible: Settings that are not on a curve, since no chunk of some question fits the budget.
        remarks: Sentences about budgets without room for a chunk, not filled, or with nothing new.
        chosen: The setting that is worth deploying.
        why: The reason for the choice.
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
    why: str
    profile: Profile

    @staticmethod
    def settled(report: RunReport) -> RunReport:
        """The report of a run, without failures due to a budget without room for a chunk.

        Args:
            report: The report of the run of a sweep.
        """
        others = {error: count for error, count in report.failed.items() if error != _NO_ROOM}
        return replace(report, failed=others, total=report.total - report.failed.get(_NO_ROOM, 0))


def read_sweep(
    path: str | os.PathLike[str],
    experiment: str,
    metric: str,
    *,
    watch: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Read the result of a sweep.

    The chosen setting is the one with the fewest tokens that is at most one standard error below the highest one, by
    the one-standard-error rule (Breiman, Friedman, Olshen and Stone 1984); docs/sweeping.md has the details.

    Args:
        path: The results file.
        experiment: Name of the sweep in it.
        metric: The metric that was scored.
        watch: Called with the number of settings that are done, and of all settings.

    Raises:
        ExperimentError: The file has no such experiment, or no answer has a score.
        ResultsFileError: The file is missing, damaged or not a results file.
    """
    results = Results.open(path, experiment).compute([metric], watch)
    impossible = [one for one in results.settings if _is_impossible(one)]
    tried = [one for one in results.settings if not _is_impossible(one)]
    contexts = _read_contexts(tried, path)
    repeated = dict(_repeated(tried, contexts))
    points = [number for number in range(len(tried)) if number not in repeated]
    if not any(metric in tried[number].scores for number in points):
        if impossible and not tried:
            raise ExperimentError(_no_room(path, experiment), metric)
        raise ExperimentError(f"the sweep has no answer with a score of {metric}", metric)
    on_curves = results.select(tried[number] for number in points)
    curves = [
        replace(curve, exhausted=_is_whole(contexts[points[curve.points[-1].setting.number]]))
        for curve in on_curves.curves("token_budget", metric)
    ]
    scored = [one for one in on_curves.settings if metric in one.scores]
    chosen, why = choose_economical(scored, metric, axes=("order", "token_budget"))
    conclusions = _conclusions(curves)
    about = {
        "metric": metric,
        "score": chosen.scores[metric].describe(),
        "questions": chosen.scores[metric].n,
        "chosen": why,
        "curves": [f"{', '.join(orders)}: {said}" for orders, said in conclusions.items()],
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
        remarks=[*_no_points(impossible), *_not_filled(tried, contexts), *_nothing_new(tried, repeated)],
        chosen=chosen,
        why=why,
        profile=profile_of(chosen, max(depths, default=1), about),
    )


class _Context(NamedTuple):
    """The identity of a context, and why it is not longer."""

    key: str
    kept: int
    depth: int  # rank of the last kept candidate, counted from 1
    dropped: Mapping[str, int]
    chunks: int


_Contexts = Mapping[Hashable, _Context]
"""The contexts of a setting, by seed and question."""


def _read_contexts(settings: Sequence[SettingSummary], path: str | os.PathLike[str]) -> Sequence[_Contexts]:
    """The contexts of each setting."""
    found: list[dict[Hashable, _Context]] = [{} for _ in settings]
    numbers = {
        setting.matrix.cells[cell].key: number
        for number, setting in enumerate(settings)
        for cell in setting.setting.cells
    }
    if numbers:
        with ResultsReader(path, settings[0].matrix.experiment) as reader:
            wanted = [place for place, cell in enumerate(reader.cells) if cell.key in numbers]
            for place, question, context, chunks in reader.contexts(wanted):
                cell = reader.cells[place]
                depth = max((rank + 1 for _, rank, _ in context.kept), default=1)
                found[numbers[cell.key]][cell.values.get("seed"), question] = _Context(
                    context.key, len(context.kept), depth, context.dropped, chunks
                )
    return found


def _is_impossible(setting: SettingSummary) -> bool:
    """Whether questions failed, and only because no chunk fits the budget."""
    return {*setting.matrix.errors[list(setting.setting.cells)].flat} - {None} == {_NO_ROOM}


def _is_whole(contexts: _Contexts) -> bool:
    """Whether each context is all chunks of its documents."""
    return bool(contexts) and all(one.kept == one.chunks for one in contexts.values())


class _Smaller(NamedTuple):
    """A smaller budget with the same contexts, and whether each of them is all chunks of its documents."""

    budget: int
    whole: bool


def _repeated(settings: Sequence[SettingSummary], contexts: Sequence[_Contexts]) -> Iterator[tuple[int, _Smaller]]:
    """The number of each setting that adds nothing, and the smaller budget with the same contexts."""
    known: dict[Hashable, int] = {}
    for number, setting in sorted(enumerate(settings), key=lambda one: one[1].values["token_budget"]):
        others = tuple((name, str(value)) for name, value in setting.values.items() if name != "token_budget")
        same = others, frozenset((place, one.key) for place, one in contexts[number].items())
        if contexts[number] and setting.failed == 0 and same in known:
            yield number, _Smaller(known[same], _is_whole(contexts[number]))
        else:
            known[same] = setting.values["token_budget"]


def _ran_out(context: _Context) -> bool:
    """Whether all candidates were used though the budget had room and there were more chunks."""
    dropped = context.dropped
    # After chunks below the similarity threshold there are no better ones.
    if dropped.keys() & {"token_budget", "similarity_threshold"}:
        return False
    looked_at = context.kept + sum(count for reason, count in dropped.items() if reason not in ("k", "max_candidates"))
    return looked_at < context.chunks


def _no_room(path: str | os.PathLike[str], experiment: str) -> str:
    with ResultsReader(path, experiment) as reader:
        (message,) = [failure.message for failure in reader.failures() if failure.error == _NO_ROOM]
    return f"no budget of the sweep has room for a chunk of every question: {message}"


def _conclusions(curves: Sequence[Curve]) -> dict[tuple[str, ...], str]:
    orders: dict[str, list[str]] = {}
    for curve in curves:
        orders.setdefault(curve.describe(), []).append(str(curve.values["order"]))
    return {tuple(names): said for said, names in orders.items()}


def _no_points(impossible: Sequence[SettingSummary]) -> Iterator[str]:
    for budget, ours in _by_budget(impossible).items():
        failed, asked = max((one.failed, one.asked) for one in ours)
        yield (
            f"token_budget={budget} ({_orders(ours)}) is not a point of the curve: no chunk fits it in {failed:,} "
            f"of {asked:,} answers; smaller chunks would"
        )


def _not_filled(settings: Sequence[SettingSummary], contexts: Sequence[_Contexts]) -> Iterator[str]:
    answers = {one.number: sum(map(_ran_out, ours.values())) for one, ours in zip(settings, contexts, strict=True)}
    for budget, ours in _by_budget([one for one in settings if answers[one.number]]).items():
        most = max(ours, key=lambda one: answers[one.number] / one.answered)
        yield (
            f"token_budget={budget} ({_orders(ours)}) is not filled: the {limit_of(most):,} best-ranked chunks all fit "
            f"it in {answers[most.number]:,} of {most.answered:,} answers, and there are more; larger chunks, or a "
            "larger k, would fill it"
        )


def _nothing_new(settings: Sequence[SettingSummary], repeated: Mapping[int, _Smaller]) -> Iterator[str]:
    budgets: defaultdict[tuple[_Smaller, str], list[str]] = defaultdict(list)
    for number, smaller in repeated.items():
        values = settings[number].values
        budgets[smaller, values["order"]].append(str(values["token_budget"]))
    orders: defaultdict[tuple[_Smaller, str], list[str]] = defaultdict(list)
    for (smaller, order), some in budgets.items():
        orders[smaller, ", ".join(some)].append(order)
    for (smaller, same), some in orders.items():
        why = ", which holds all chunks" if smaller.whole else ""
        yield (
            f"token_budget={same} ({', '.join(some)}): the contexts are those of "
            f"token_budget={smaller.budget}{why}, so it is not another point of the curve"
        )


def _by_budget(settings: Sequence[SettingSummary]) -> dict[int, list[SettingSummary]]:
    found: dict[int, list[SettingSummary]] = {}
    for one in settings:
        found.setdefault(one.values["token_budget"], []).append(one)
    return found


def _orders(settings: Sequence[SettingSummary]) -> str:
    return ", ".join(dict.fromkeys(str(one.values["order"]) for one in settings))
