"""Settings of a sweep that are no points of its curves, and those that their budget did not decide."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from oprag.compare.analysis.settings import HasValues
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.db.reader import ResultsReader

__all__ = [
    "NO_ROOM",
    "Contexts",
    "Repeated",
    "Unfilled",
    "is_impossible",
    "limit_of",
    "read_contexts",
    "remarks_of",
]

NO_ROOM = "BudgetError"
"""What a question fails with that not one chunk fits the budget for; another try would change nothing."""


@dataclass(frozen=True, kw_only=True)
class Unfilled:
    """A setting whose candidates ran out before its budget did, though there were more chunks.

    Attributes:
        setting: The setting.
        answers: For how many of its answers.
    """

    setting: SettingSummary
    answers: int


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A setting whose contexts are those of a smaller budget, each of them, so that it says nothing new.

    Attributes:
        setting: The setting.
        budget: The least budget with the same contexts.
        whole: Whether each of them is all chunks of its documents.
    """

    setting: SettingSummary
    budget: int
    whole: bool


@dataclass(frozen=True, kw_only=True)
class Contexts:
    """What the contexts of a sweep say about its settings.

    Attributes:
        unfilled: The settings whose candidates ran out before their budget did.
        repeated: The settings whose contexts are those of a smaller budget.
        whole: The settings whose contexts are all chunks of their documents.
    """

    unfilled: Sequence[Unfilled]
    repeated: Sequence[Repeated]
    whole: Sequence[SettingSummary]


class _Row(NamedTuple):
    context: str
    kept: int
    dropped: Mapping[str, int]
    chunks: int


def is_impossible(setting: SettingSummary) -> bool:
    """Whether questions failed since not one chunk fits the budget, and for nothing else."""
    cells = {*setting.setting.cells}
    return {error for (cell, _), error in setting.matrix.errors.items() if cell in cells} == {NO_ROOM}


def read_contexts(settings: Sequence[SettingSummary], path: str | os.PathLike[str], experiment: str) -> Contexts:
    """What the contexts of a sweep say about its settings.

    Args:
        settings: The settings.
        path: The results file.
        experiment: The name of the experiment in it.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    cells = {
        setting.matrix.cells[cell].key: (number, setting.matrix.cells[cell].values.get("seed"))
        for number, setting in enumerate(settings)
        for cell in setting.setting.cells
    }
    contexts: dict[int, dict[Hashable, _Row]] = {}
    with ResultsReader(path, experiment) as reader:
        keys = [cell.key for cell in reader.cells]
        for stored in reader.contexts([place for place, key in enumerate(keys) if key in cells]):
            number, seed = cells[keys[stored.cell]]
            context = stored.context
            row = _Row(context.key, len(context.kept), context.dropped, stored.chunks)
            contexts.setdefault(number, {})[seed, stored.question] = row
    return Contexts(
        unfilled=tuple(_unfilled(settings, contexts)),
        repeated=tuple(_repeated(settings, contexts)),
        whole=tuple(settings[number] for number, ours in contexts.items() if _is_whole(ours)),
    )


def limit_of(setting: HasValues) -> int | None:
    """How many of the best-ranked chunks a setting keeps at most, whatever its budget; None without a limit."""
    limits = [setting.values[name] for name in ("k", "max_candidates") if setting.values[name] is not None]
    return min(limits, default=None)


def _unfilled(
    settings: Sequence[SettingSummary], contexts: Mapping[int, Mapping[Hashable, _Row]]
) -> Iterator[Unfilled]:
    for number, setting in enumerate(settings):
        if count := sum(map(_ran_out, contexts.get(number, {}).values())):
            yield Unfilled(setting=setting, answers=count)


def _ran_out(context: _Row) -> bool:
    """Whether there were more chunks than were looked at, and it was not the budget that left them out."""
    dropped = context.dropped
    # What is under the threshold of similarity has no better ones behind it.
    if dropped.keys() & {"token_budget", "similarity_threshold"}:
        return False
    return (
        context.kept + sum(count for reason, count in dropped.items() if reason not in ("k", "max_candidates"))
        < context.chunks
    )


def _repeated(
    settings: Sequence[SettingSummary], contexts: Mapping[int, Mapping[Hashable, _Row]]
) -> Iterator[Repeated]:
    known: dict[Hashable, int] = {}
    for number, setting in sorted(enumerate(settings), key=lambda one: one[1].values["token_budget"]):
        ours = contexts.get(number, {})
        others = tuple((name, str(value)) for name, value in setting.values.items() if name != "token_budget")
        same = others, frozenset((place, one.context) for place, one in ours.items())
        if ours and setting.failed == 0 and same in known:
            yield Repeated(setting=setting, budget=known[same], whole=_is_whole(ours))
        else:
            known[same] = setting.values["token_budget"]


def _is_whole(contexts: Mapping[Hashable, _Row]) -> bool:
    return all(one.kept == one.chunks for one in contexts.values())


def remarks_of(
    impossible: Sequence[SettingSummary], repeated: Sequence[Repeated], unfilled: Sequence[Unfilled]
) -> list[str]:
    """What has to be said of budgets, a sentence each.

    Args:
        impossible: The settings that are no points of the curves, since questions failed.
        repeated: Those that are none since their contexts are those of a smaller budget.
        unfilled: Those whose candidates ran out.
    """
    return [*_no_points(impossible), *_not_filled(unfilled), *_nothing_new(repeated)]


def _no_points(impossible: Sequence[SettingSummary]) -> Iterator[str]:
    for budget in dict.fromkeys(row.values["token_budget"] for row in impossible):
        rows = [row for row in impossible if row.values["token_budget"] == budget]
        failed, asked = max((row.failed, row.asked) for row in rows)
        yield (
            f"token_budget={budget} ({_orders(rows)}) is no point of the curve: not one chunk fits it for {failed:,} "
            f"of {asked:,} answers; smaller chunks would"
        )


def _nothing_new(repeated: Sequence[Repeated]) -> Iterator[str]:
    by_order: dict[tuple[int, bool, str], list[int]] = {}
    for one in repeated:
        place = one.budget, one.whole, str(one.setting.values["order"])
        by_order.setdefault(place, []).append(one.setting.values["token_budget"])
    alike: dict[tuple[int, bool, tuple[int, ...]], list[str]] = {}
    for (budget, whole, order), budgets in by_order.items():
        alike.setdefault((budget, whole, tuple(budgets)), []).append(order)
    for (budget, whole, same), orders in alike.items():
        why = ", which holds all chunks" if whole else ""
        yield (
            f"token_budget={', '.join(map(str, same))} ({', '.join(orders)}): the contexts are those of "
            f"token_budget={budget}{why}, so this is no other point of the curve"
        )


def _not_filled(unfilled: Sequence[Unfilled]) -> Iterator[str]:
    for budget in dict.fromkeys(one.setting.values["token_budget"] for one in unfilled):
        ours = [one for one in unfilled if one.setting.values["token_budget"] == budget]
        most = max(ours, key=lambda one: one.answers / one.setting.answered)
        yield (
            f"token_budget={budget} ({_orders([one.setting for one in ours])}) is not filled: the "
            f"{limit_of(most.setting):,} best-ranked chunks all fit it in {most.answers:,} of "
            f"{most.setting.answered:,} answers, and there are more; larger chunks, or a larger k, would fill it"
        )


def _orders(rows: Sequence[SettingSummary]) -> str:
    return ", ".join(dict.fromkeys(str(row.values["order"]) for row in rows))
