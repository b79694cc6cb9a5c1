"""Answering a question as if it were the first, with retrieval and generation measured apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from oprag.compare.calling import Tariff, ask, reply_of
from oprag.compare.calls import Call
from oprag.compare.context_library import Library
from oprag.compare.db.keys import prompt_key
from oprag.compare.db.records import Measurement, Phase, Reply, Spent
from oprag.compare.measuring import Measured, measure
from oprag.compare.money import Meter
from oprag.compare.providers.model import Model
from oprag.compare.work import Unit, Work
from oprag.errors import MissingExtraError
from oprag.methods.effects import Embed, Generate, Request, Retrieve
from oprag.methods.model_calls import Completion, Prompt
from oprag.steps import Limit, Parallel, Step, Steps

__all__ = ["MeasuredAnswers", "Stopped", "row_of"]


class Stopped(Exception):  # noqa: N818 - no error, but the end of a run
    """No more calls may be made."""


class MeasuredAnswers:
    """Answers questions, and measures each step.

    Args:
        library: Gives contexts, vectors and whole texts.
        model: Replies; None where none is asked.
        tariff: What calls are charged with.
        meter: Says when no more calls may be made.
        limit: How many calls are made at the same time.
        failures: How many calls in a row have failed before.

    Attributes:
        failures: How many have now.
        last_error: The error of the last of them here.
        replies: The replies that came, until `take_replies` takes them.
    """

    def __init__(
        self, library: Library, model: Model | None, tariff: Tariff, meter: Meter, *, limit: Limit, failures: int
    ) -> None:
        self._library = library
        self._model = model
        self._tariff = tariff
        self._meter = meter
        self._limit = limit
        self.failures = failures
        self.last_error: Exception | None = None
        self.replies: list[Reply] = []

    def take_replies(self) -> list[Reply]:
        """The replies that have come since the last time."""
        taken, self.replies = self.replies, []
        return taken

    def answer(self, unit: Unit) -> dict[Phase, list[Measured[Any]]]:
        """Answer a question as if it were the first, and tell what the steps of each phase took.

        Raises:
            Stopped: No more calls may be made.
            Exception: It cannot be answered.
        """
        self._library.forget()
        phases: dict[Phase, list[Measured[Any]]] = {}
        work = Work.begun(unit)
        reply: Any = None
        while True:
            try:
                request = work.body.send(reply)
            except StopIteration:
                return phases
            reserved = self._reserve(request)
            taken = measure(self._step(unit, request))
            phases.setdefault("retrieval" if isinstance(request, Retrieve) else "generation", []).append(taken)
            reply = taken.value
            if isinstance(request, Generate):
                self._settle(unit, request.prompts, reserved, reply)

    def _step(self, unit: Unit, request: Request) -> Callable[[], Any]:
        """What is to be done, as a function to be measured."""
        library, cell = self._library, unit.cell
        if isinstance(request, Retrieve):
            return lambda: tuple(library.contexts(cell, unit.question, request.questions))
        if isinstance(request, Generate):
            bodies = [partial(self._asked, prompt) for prompt in request.prompts]
            return lambda: tuple(Parallel(bodies, self._limit, _failed).run())
        if isinstance(request, Embed):
            return lambda: library.vectors(cell, request.questions, request.texts)
        return lambda: tuple(library.whole_text(cell, name) for name in request.sources)

    def _asked(self, prompt: Prompt) -> Steps[Completion]:
        completion: Completion = yield Step(lambda: self._ask(prompt))
        return completion

    def _ask(self, prompt: Prompt) -> Completion:
        assert self._model is not None  # noqa: S101 - a cell without a model asks nothing
        started = time.perf_counter()
        completion = ask(self._model, prompt, self._tariff.count_tokens)
        return completion if completion.seconds else replace(completion, seconds=time.perf_counter() - started)

    def _reserve(self, request: Request) -> list[Spent]:
        """See that all calls of a request may be made: half of them would be spent in vain."""
        at_most = [self._tariff.at_most(prompt) for prompt in request.prompts] if isinstance(request, Generate) else []
        for number, one in enumerate(at_most):
            if (reason := self._meter.refusal(one)) is not None:
                for reserved in at_most[:number]:
                    self._meter.settle(reserved, Spent())
                raise Stopped(reason)
            self._meter.reserve(one)
        return at_most

    def _settle(
        self, unit: Unit, prompts: Sequence[Prompt], reserved: Sequence[Spent], replies: Sequence[Completion | None]
    ) -> None:
        """Count what calls took; those that were not begun, since another one had failed, took nothing."""
        for prompt, at_most, completion in zip(prompts, reserved, replies, strict=True):
            self._meter.settle(at_most, Spent() if completion is None else self._tariff.spent(completion))
            if completion is None:
                continue
            if isinstance(completion.error, MissingExtraError):
                raise completion.error
            self.failures = 0 if completion.error is None else self.failures + 1
            self.last_error = completion.error or self.last_error
            if completion.error is None and self._model is not None:
                identity = self._model.identity
                call = Call(prompt_key(identity, prompt, unit.cell.repeat), unit.cell.model or "", prompt)
                self.replies.append(reply_of(call, identity, completion, completion.seconds, self._tariff))


def _failed(completion: Completion) -> bool:
    return completion.error is not None


def row_of(unit: Unit, attempt: int, phase: Phase, taken: Sequence[Measured[Any]]) -> Measurement:
    """What is written down of several steps of one phase: their times add up, their memory does not."""
    wall = sum(one.wall_seconds for one in taken)
    used = sum(one.cpu_seconds for one in taken)
    return Measurement(
        cell=unit.cell_key,
        question=unit.question_key,
        attempt=attempt,
        phase=phase,
        seconds=wall,
        cpu_percent=100 * used / wall / taken[0].cores if wall else 0.0,
        peak_memory_bytes=max(one.peak_memory_bytes for one in taken),
        memory_growth_bytes=max(one.memory_growth_bytes for one in taken),
    )
