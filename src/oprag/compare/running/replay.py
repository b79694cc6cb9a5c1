"""Remaking answers from stored replies; only judges are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oprag.compare.db.cache import WorkCache
from oprag.compare.running.engine import Engine
from oprag.compare.running.ledger import Ledger
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import Call, ModelCaller
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import Outcome, WorkInProgress, WorkItem
from oprag.errors import ModelError

__all__ = ["Replay"]


class Replay(Engine):
    """Remakes answers from stored replies; one that would need a call of its own is left out."""

    def __init__(self, resolved: ResolvedExperiment, library: Library, cache: WorkCache, ledger: Ledger) -> None:
        self._models_of_judges = ModelCaller(resolved, cache)
        super().__init__(resolved, library, self._models_of_judges, cache, ledger)

    def run(self, items: Iterable[WorkItem]) -> Iterator[Outcome]:
        """Yield the outcome of each item that needs no call of its own."""
        return (outcome for outcome in super().run(items) if not isinstance(outcome.error, _NotKeptError))

    def close(self) -> None:
        """Let the threads end."""
        self._models_of_judges.close()

    def _queue(self, work: WorkInProgress, call: Call) -> None:
        if not work.judging:
            raise _NotKeptError("the reply is not kept", call.key)
        super()._queue(work, call)


class _NotKeptError(ModelError):
    """A reply is not stored, so the answer would need a call."""
