"""What each cell takes: one at a time, in a fresh process, without caches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from oprag.checks import check_count
from oprag.compare.answer_tables import Spent
from oprag.compare.cell import Cell
from oprag.compare.experiment import Experiment
from oprag.compare.library import Library, search_of
from oprag.compare.measuring import Measured, in_fresh_process, measure
from oprag.compare.money import Limits, Meter, Price
from oprag.compare.nothing import KeepsNothing
from oprag.compare.opened import Opened
from oprag.compare.progress import Progress, Watch
from oprag.compare.records import Measurement, Phase
from oprag.compare.report import Report, versions
from oprag.compare.results_file import ResultsFile
from oprag.compare.work import Unit, Work
from oprag.compare.workshop import longest_replies, make_library
from oprag.errors import OpragError
from oprag.methods.completion import Completion, Usage
from oprag.methods.effects import Embed, Generate, Retrieve
from oprag.methods.message import Prompt
from oprag.side_by_side import Limit, side_by_side
from oprag.tokens import count

__all__ = ["measure_cells"]

_UNKNOWN_REPLY = 1_024  # tokens, for a ceiling, where the model was given no limit


class _Part(NamedTuple):
    """What a fresh process is told to measure."""

    experiment: Experiment
    cell: int
    done: frozenset[tuple[str, int]]
    warmup: int
    repeats: int
    limits: Limits


@dataclass(frozen=True)
class _Taken:
    """What a fresh process has measured."""

    measurements: Sequence[Measurement]
    failed: dict[str, str]
    spent: Spent
    stopped: str | None


def measure_cells(
    experiment: Experiment,
    path: str | os.PathLike[str],
    *,
    warmup: int = 1,
    repeats: int = 3,
    watch: Watch | None = None,
) -> Report:
    """Measure wall time, processor and memory of every question in every cell, and write them to the results file.

    Nothing is shared: each cell has a process of its own, makes its own index, and asks the model again for what was
    asked before. What was measured before, by this run or an earlier one, is not measured again.

    Args:
        experiment: The experiment.
        path: The results file; made where it is missing.
        warmup: How many times the first question is answered before anything is measured.
        repeats: How many times each question is measured.
        watch: Told how far it is, after each cell.

    Raises:
        ExperimentError: The experiment cannot be run as it is described, or holds something that cannot be sent to
            another process.
        ResultsFileError: The file is damaged, is another one, or cannot be written.
        MeasuringError: A process died.
        MissingExtraError: The extra `measure`, or something that the experiment needs, is not installed.
    """
    check_count("warmup", warmup, optional=False, least=0)
    check_count("repeats", repeats, optional=False)
    started = time.perf_counter()
    opened = Opened(experiment)
    file = ResultsFile(path)
    file.check()
    file.begin(experiment.name, opened.described(), opened.cell_rows, opened.question_rows, versions())
    spent = file.spent(experiment.name)
    known = file.measured()
    total = answered = cells_done = 0
    all_units = sum(1 for _ in opened.units())
    failed: dict[str, str] = {}
    outcome: str | None = None
    try:
        for number, row in enumerate(opened.cell_rows):
            units = [unit for unit in opened.units() if unit.cell_key == row.key]
            total += len(units)
            done = frozenset((question, attempt) for cell, question, attempt in known if cell == row.key)
            wanted = {(unit.question_key, attempt) for unit in units for attempt in range(1, repeats + 1)}
            if outcome is None and not wanted <= done:
                part = _Part(experiment, number, done, warmup, repeats, _left(experiment.limits, spent))
                taken = in_fresh_process(_measured, part)
                file.keep_measurements(row.key, taken.measurements, taken.spent)
                spent = Spent(*map(sum, zip(spent, taken.spent, strict=True)))  # type: ignore[arg-type]
                done |= {(one.question, one.attempt) for one in taken.measurements if one.phase != "indexing"}
                failed |= {f"{row.key} {question}": error for question, error in taken.failed.items()}
                outcome = taken.stopped
            answered += sum(
                all((unit.question_key, attempt) in done for attempt in range(1, repeats + 1)) for unit in units
            )
            cells_done += wanted <= done
            if watch is not None:
                watch(
                    Progress(
                        done=total,
                        total=all_units,
                        failed=len(failed),
                        cells=cells_done,
                        all_cells=len(opened.cell_rows),
                        spent=spent,
                        running=0,
                        stopping=outcome,
                    )
                )
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
        raise
    finally:
        file.end(outcome or "complete")
        file.close()
    causes = list(failed.values())
    return Report(
        outcome=outcome or "complete",
        total=total,
        answered=answered,
        failed={cause: causes.count(cause) for cause in dict.fromkeys(causes)},
        left=total - answered - len(failed),
        broken=0,
        spent=spent,
        seconds=time.perf_counter() - started,
    )


def _left(limits: Limits, spent: Spent) -> Limits:
    """What is left of the limits."""
    left = {
        name: None if limit is None else max(0, limit - getattr(spent, name)) for name, limit in vars(limits).items()
    }
    return replace(limits, **left)


def _measured(part: _Part) -> _Taken:
    """In a process of its own: measure one cell."""
    opened = Opened(part.experiment)
    cell, key = opened.cells.cells[part.cell], opened.cell_rows[part.cell].key
    units = [unit for unit in opened.units() if unit.cell_key == key]
    library = make_library(opened, KeepsNothing(), together=False)
    meter = Meter(part.limits, Spent())
    runner = _Runner(opened, library, cell, meter)
    measurements: list[Measurement] = []
    failed: dict[str, str] = {}
    try:
        indexed: set[tuple[str, ...]] = set()
        for unit in units:
            wanted = [one for one in range(1, part.repeats + 1) if (unit.question_key, one) not in part.done]
            if not wanted:
                continue
            try:
                if cell.embedder and unit.question.documents not in indexed:
                    ready = measure(lambda unit=unit: runner.make_ready(unit))  # type: ignore[misc]
                    measurements.append(_row(unit, 1, "indexing", [ready]))
                for _ in range(0 if indexed else part.warmup):
                    runner.answer(unit)
                indexed.add(unit.question.documents)
                for attempt in wanted:
                    phases = runner.answer(unit)
                    measurements += [_row(unit, attempt, phase, taken) for phase, taken in phases.items() if taken]
            except _LimitReached as reached:
                return _Taken(measurements, failed, meter.spent, str(reached))
            except OpragError as error:
                failed[unit.question_key] = type(error.__cause__ or error).__name__
    finally:
        library.close()
    return _Taken(measurements, failed, meter.spent, None)


def _row(unit: Unit, attempt: int, phase: Phase, taken: Sequence[Measured[Any]]) -> Measurement:
    """Several steps of one phase: their times add up, their memory does not."""
    wall = sum(one.wall_seconds for one in taken)
    used = sum(one.cpu_seconds for one in taken)
    cores = taken[0].cores if taken else 1.0
    return Measurement(
        unit.cell_key,
        unit.question_key,
        attempt,
        phase,
        wall,
        100 * used / wall / cores if wall else 0.0,
        max((one.peak_memory_bytes for one in taken), default=0),
        max((one.memory_growth_bytes for one in taken), default=0),
    )


class _LimitReached(Exception):  # noqa: N818 - no error, but the end of a run
    """No more calls may be made."""


class _Runner:
    """Answers questions of one cell, and measures retrieval and generation apart."""

    def __init__(self, opened: Opened, library: Library, cell: Cell, meter: Meter) -> None:
        self._library = library
        self._cell = cell
        self._meter = meter
        self._model = None if cell.model is None else opened.models[cell.model]
        experiment = opened.experiment
        self._price: Price | None = experiment.prices.get(cell.model or "")
        self._longest = longest_replies(experiment).get(cell.model or "", _UNKNOWN_REPLY)
        self._limit = Limit(experiment.max_concurrency)

    def make_ready(self, unit: Unit) -> None:
        """Make the index that the question is searched for in."""
        self._library.index(self._cell, unit.question.documents).make_ready(search_of(self._cell))

    def answer(self, unit: Unit) -> dict[Phase, list[Measured[Any]]]:
        """Answer a question as if it were the first, and tell what each phase took.

        Raises:
            OpragError: It cannot be answered.
        """
        self._library.forget()
        phases: dict[Phase, list[Measured[Any]]] = {"retrieval": [], "generation": []}
        work = Work.begun(unit)
        reply: Any = None
        while True:
            try:
                request = work.body.send(reply)
            except StopIteration:
                return phases
            phase: Phase = "retrieval" if isinstance(request, Retrieve) else "generation"
            taken = measure(self._step(unit, request))
            phases[phase].append(taken)
            reply = taken.value
            if isinstance(request, Generate):
                self._settle(request.prompts, reply)

    def _step(self, unit: Unit, request: Any) -> Callable[[], Any]:
        library, cell = self._library, self._cell
        if isinstance(request, Retrieve):
            return lambda: tuple(library.contexts(cell, unit.question, request.questions))
        if isinstance(request, Generate):
            self._reserve(request.prompts)
            return lambda: tuple(side_by_side(self._complete, request.prompts, self._limit))
        if isinstance(request, Embed):
            return lambda: library.vectors(cell, request.questions, request.texts)
        return lambda: tuple(library.whole_text(cell, name) for name in request.sources)

    def _reserve(self, prompts: Sequence[Prompt]) -> None:
        for at_most in self._at_most(prompts):
            if (reason := self._meter.refusal(at_most)) is not None:
                raise _LimitReached(reason)
            self._meter.reserve(at_most)

    def _at_most(self, prompts: Sequence[Prompt]) -> Iterator[Spent]:
        for prompt in prompts:
            usage = Usage(count(prompt.text, self._cell.assembly.count_tokens), self._longest)
            money = 0.0 if self._price is None else self._price.of(usage)
            yield Spent(1, usage.input_tokens + usage.output_tokens, money)

    def _settle(self, prompts: Sequence[Prompt], completions: Sequence[Completion]) -> None:
        for at_most, completion in zip(self._at_most(prompts), completions, strict=True):
            usage = completion.usage or Usage()
            money = 0.0 if self._price is None else self._price.of(usage)
            self._meter.settle(at_most, Spent(1, usage.input_tokens + usage.output_tokens, money))

    def _complete(self, prompt: Prompt) -> Completion:
        assert self._model is not None  # noqa: S101 - a cell without a model asks nothing
        return self._model.complete(prompt)
