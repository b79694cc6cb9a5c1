"""Answers that are measured one at a time, without the searches and vectors of earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from oprag.compare.db.cache import Record, WorkCache
from oprag.compare.meter import Meter
from oprag.compare.running.library import Library, search_of
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import Outcome, WorkItem
from oprag.methods.answering import Answering

__all__ = ["MeasuredLibrary"]


class MeasuredLibrary(Library):
    """A library that measures answers.

    The index, which all answers share, is built before the clock starts; the question is embedded and searched for
    again. Judges and scores come after the clock has stopped.
    """

    def __init__(self, resolved: ResolvedExperiment, cache: WorkCache) -> None:
        self._switched = _SwitchedCache(cache)
        super().__init__(resolved, self._switched, together=False)
        self._loaded: set[str] = set()

    def measured(self, method: Answering, outcome: Outcome) -> Answering:
        """The method, measured; an answer with a reply that was stored before has no measurement."""
        self._make_ready(outcome.item)
        with self._switched.off(), Meter() as meter:
            answer = yield from method
        if not outcome.reused:
            outcome.measurement = meter.measurement
        return answer

    def _make_ready(self, item: WorkItem) -> None:
        """Do what does not belong to the answer: build the index, load the embedder, forget earlier searches."""
        cell, question = item.cell, item.question
        if cell.embedder:
            index = self.index(cell, question.documents)
            index.make_ready(search_of(cell))
            if self.embeds(cell, [question.text]):
                _ = index.vectors
                if cell.embedder not in self._loaded:
                    self._embedders[cell.embedder].embed_questions(["warm-up"])
                    self._loaded.add(cell.embedder)
        self.forget()


class _SwitchedCache:
    """A cache that can be switched off: it then finds nothing, and stores records when it is on again."""

    def __init__(self, below: WorkCache) -> None:
        self._below = below
        self._held: list[Sequence[Any]] | None = None

    def get(self, kind: type[Record], keys: Sequence[Any]) -> list[Record | None]:
        """The record of each key; None for a missing one."""
        return self._below.get(kind, keys) if self._held is None else [None] * len(keys)

    def put(self, records: Sequence[Record]) -> list[Record]:
        """Store records; return them."""
        if self._held is None:
            return self._below.put(records)
        self._held.append(records)
        return [*records]

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switch the cache off."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            for records in held:
                self._below.put(records)
