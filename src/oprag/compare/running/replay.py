"""Answers made again from the replies that are kept, without a call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oprag.compare.db.cache import WorkCache
from oprag.compare.db.records import Spent
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import Call, Made
from oprag.compare.running.work_item import Outcome, WorkItem
from oprag.compare.spec.money import Limits
from oprag.compare.spec.resolved import ResolvedExperiment

__all__ = ["replay"]


def replay(
    resolved: ResolvedExperiment, library: Library, cache: WorkCache, items: Iterable[WorkItem]
) -> Iterator[Outcome]:
    """The outcome of each item that needs no call; an item that would make one is left out, as is one that fails."""
    for item in items:
        # It stops at the first call that it would have to make, so each item has its own.
        engine = Engine(resolved, library, _NoCalls(), cache, Ledger(Limits(calls=0), Spent()))
        yield from (outcome for outcome in engine.run([item]) if outcome.answer is not None)


class _NoCalls:
    """Makes no calls; a `Caller` of an engine that may make none."""

    running = 0

    def begin(self, call: Call) -> None:
        raise AssertionError(f"the call {call.key} was not allowed")

    def take(self) -> Sequence[Made]:
        return ()

    def at_most(self, call: Call) -> Spent:  # noqa: ARG002
        return Spent(1)
