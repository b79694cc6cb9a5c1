"""Measuring one cell in a dedicated process: indexing, retrieval and generation are measured separately."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, NamedTuple

from oprag.compare.cores import usable_cores
from oprag.compare.db.cache import NoCache
from oprag.compare.db.keys import prompt_key
from oprag.compare.db.records import FailedMeasurement, Measurement, Phase, Reply, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import error_message, error_name, named_error
from oprag.compare.measure.usage import ResourceUsage, measure_usage
from oprag.compare.running.ledger import Ledger, Tariff
from oprag.compare.running.library import Library, search_of
from oprag.compare.running.model_caller import ask, reply_of
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import AskModel, WorkInProgress, WorkItem
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.grid import Cells
from oprag.errors import MissingExtraError, ResultsFileError
from oprag.methods.effects import Generate, Request, Retrieve
from oprag.methods.model_calls import Completion, Prompt
from oprag.steps import Limit, Parallel, Step, Steps

__all__ = ["MAX_MESSAGE_LENGTH", "CellPart", "Ended", "measure_cell"]

MAX_MESSAGE_LENGTH = 2_000  # maximum characters of an error message


class CellPart(NamedTuple):
    """Work of one process."""

    path: str
    run: int  # number of the run
    experiment: Experiment  # only the parts that the cell needs
    items: Sequence[tuple[WorkItem, Sequence[int]]]  # questions of the cell, with their missing attempts
    indexed: AbstractSet[tuple[str, ...]]  # documents whose indexing was already measured
    warmup: int  # number of unmeasured answers to the first question
    spent: Spent  # in the experiment so far
    failures: int  # consecutive failed calls


class Ended(NamedTuple):
    """How measuring a cell ended."""

    stopped: str | None  # reason to stop the run; None to continue
    failures: int  # consecutive failed calls


def measure_cell(part: CellPart) -> Ended:
    """Run the missing measurements of a cell, and write each question when it is done."""
    cell = _MeasuredCell(part)
    try:
        cell.warm_embedder()
        # Garbage is collected before each phase; freezing excludes all objects that are loaded now.
        gc.freeze()
        for item, attempts in part.items:
            cell.measure(item, attempts)
    except _Stopped as stopped:
        return Ended(stopped.args[0], cell.failures)
    finally:
        cell.close()
    return Ended(None, cell.failures)


class _Stopped(Exception):  # noqa: N818 - control flow, not an error
    """A limit was reached, or too many consecutive calls failed."""


class _MeasuredCell:
    """Answers the questions of a cell, each without caches from earlier ones, and measures each step."""

    def __init__(self, part: CellPart) -> None:
        experiment = part.experiment
        item, _ = part.items[0]
        self.cell, self._key = item.cell, item.cell_key
        self.failures = part.failures
        self._part = part
        self._file = ResultsFile(part.path, part.run)
        resolved = ResolvedExperiment(experiment)
        # Only this cell is needed, and the grid may be large.
        resolved.cells = Cells((self.cell,), 1, {}, 0)
        self._library = Library(resolved, NoCache(), together=False)
        self._embedders = resolved.embedders
        name = self.cell.model or ""
        self._model: Any = resolved.models.get(name)  # a cell without a model makes no calls
        self._tariff = Tariff.of(experiment, name)
        self._ledger = Ledger(experiment.limits, part.spent)
        self._limit = Limit(experiment.max_concurrency)
        self._last_error: Exception | None = None
        self._replies: list[Reply] = []
        self._indexed: set[tuple[str, ...]] = set()
        self._warm = False

    def warm_embedder(self) -> None:
        """Load the tokenizer and the embedder, so that their loading is not measured with the first index."""
        if not self._part.warmup or not self.cell.embedder:
            return
        embedder = self._embedders[self.cell.embedder]
        with self._recorded(None):
            embedder.tokenizer.count("warm-up")
            if self.cell.search != "bm25" or self.cell.context_options.needs_vectors:
                embedder.embed_documents(["warm-up"])

    def measure(self, item: WorkItem, attempts: Sequence[int]) -> None:
        """Measure a question and write the measurements or the failure."""
        with self._recorded(item) as taken:
            if self.cell.embedder and item.question.documents not in self._indexed:
                taken.extend(self._make_index(item))
            if not self._warm:
                for _ in range(self._part.warmup):
                    self._answer(item)
                self._warm = True
            for attempt in attempts:
                taken.extend(_row(item, attempt, *phase) for phase in self._answer(item).items())

    def close(self) -> None:
        """Close the stores and the file."""
        self._library.close()
        self._file.close()

    @contextmanager
    def _recorded(self, item: WorkItem | None) -> Iterator[list[Measurement]]:
        """Write the measurements of a question and their spending, even if the block raises."""
        measurements: list[Measurement] = []
        before = self._ledger.spent
        try:
            yield measurements
        except (_Stopped, MissingExtraError, ResultsFileError):
            raise
        except Exception as error:  # noqa: BLE001 - recorded as the failure of this question
            # The cause, an error of the model client, is more specific than the error of the method.
            kind = error_name(error.__cause__ or error)
            if item is not None:
                failure = FailedMeasurement(
                    item.cell_key, item.question_key, kind, error_message(error, MAX_MESSAGE_LENGTH)
                )
                self._file.put_failed_measurements([failure])
        finally:
            spent = self._ledger.spent.minus(before)
            replies, self._replies = self._replies, []
            self._file.put_measurements(self._key, measurements, spent, replies)
        if self.failures >= self._part.experiment.give_up_after:
            last = named_error(self._last_error, MAX_MESSAGE_LENGTH)
            raise _Stopped(f"the last {self.failures} calls failed, the last one with {last}")

    def _make_index(self, item: WorkItem) -> list[Measurement]:
        """Build the index of the question; return its measurement unless there is one already."""
        documents = item.question.documents
        try:
            taken = measure_usage(lambda: self._library.index(self.cell, documents).make_ready(search_of(self.cell)))
        except Exception:
            # Discard the partial index, which would make the next attempt look cheap.
            self._library.close()
            raise
        self._indexed.add(documents)
        return [] if documents in self._part.indexed else [_row(item, 1, "indexing", [taken])]

    def _answer(self, item: WorkItem) -> dict[Phase, list[ResourceUsage[Any]]]:
        """Answer a question without caches; return the usage of each step, by phase."""
        self._library.forget()
        phases: dict[Phase, list[ResourceUsage[Any]]] = {}
        work = WorkInProgress.begun(item)
        reply: Any = None
        while True:
            try:
                request = work.body.send(reply)
            except StopIteration:
                return phases
            assert not isinstance(request, AskModel)  # noqa: S101 - judges are not measured
            if isinstance(request, Generate):
                self._check_limits(request.prompts)
            taken = measure_usage(self._step(item, request))
            phases.setdefault("retrieval" if isinstance(request, Retrieve) else "generation", []).append(taken)
            reply = taken.value
            if isinstance(request, Generate):
                self._settle(item, request.prompts, reply)

    def _step(self, item: WorkItem, request: Request) -> Callable[[], Any]:
        """Return a function that executes the request."""
        if isinstance(request, Generate):
            bodies = [partial(self._call, prompt) for prompt in request.prompts]
            return lambda: tuple(Parallel(bodies, self._limit, _failed).run())
        return partial(self._library.fetch, item.cell, item.question, request)

    def _call(self, prompt: Prompt) -> Steps[Completion]:
        completion: Completion = yield Step(partial(ask, self._model, prompt, self._tariff.count_tokens))
        return completion

    def _check_limits(self, prompts: Sequence[Prompt]) -> None:
        """Stop unless the limits allow all calls of a request: a partial request would waste its calls."""
        at_most = reduce(Spent.plus, map(self._tariff.at_most, prompts), Spent())
        if (reason := self._ledger.refusal(at_most)) is not None:
            raise _Stopped(reason)

    def _settle(self, item: WorkItem, prompts: Sequence[Prompt], replies: Sequence[Completion | None]) -> None:
        """Record the calls that were made; calls after a failed one were not started and have no reply."""
        for prompt, completion in zip(prompts, replies, strict=True):
            if completion is None:
                continue
            self._ledger.settle(Spent(), self._tariff.spent(completion))
            if isinstance(completion.error, MissingExtraError):
                raise completion.error
            self.failures = 0 if completion.error is None else self.failures + 1
            self._last_error = completion.error or self._last_error
            if completion.error is None:
                key = prompt_key(self._model.identity, prompt, item.cell.repeat)
                self._replies.append(reply_of(key, self._model, prompt.step, completion, self._tariff))


def _failed(completion: Completion) -> bool:
    return completion.error is not None


def _row(item: WorkItem, attempt: int, phase: Phase, taken: Sequence[ResourceUsage[Any]]) -> Measurement:
    """Combine the steps of a phase into one measurement: times are summed, memory is the maximum."""
    wall = sum(one.seconds for one in taken)
    used = sum(one.cpu_seconds for one in taken)
    return Measurement(
        cell=item.cell_key,
        question=item.question_key,
        attempt=attempt,
        phase=phase,
        seconds=wall,
        cpu_percent=100 * used / wall / usable_cores() if wall else 0.0,
        peak_memory_bytes=max(one.peak_memory_bytes for one in taken),
        memory_growth_bytes=max(one.memory_growth_bytes for one in taken),
    )
