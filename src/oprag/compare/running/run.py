"""Run an experiment, or continue an earlier run: answer, score and store each question of each cell."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import chain
from operator import attrgetter
from typing import Any

from oprag.compare.data.data_set import Question
from oprag.compare.db.records import (
    AnswerRecord,
    ContextRecord,
    KeptChunk,
    Spent,
    WorkCache,
    error_message,
    error_name,
    named_error,
)
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.experiment import Experiment
from oprag.compare.experiment_methods import FoundChunk, kind_of
from oprag.compare.grid import Cell
from oprag.compare.meter import usable_cores
from oprag.compare.metrics.registry import ScoredAnswer, score_all
from oprag.compare.running.engine import Engine, Outcome
from oprag.compare.running.prepared import PreparedExperiment, WorkItem
from oprag.compare.running.retrieval import Retrieval, VectorSource
from oprag.compare.spending import Spending
from oprag.errors import ExperimentError, MissingExtraError, OptionError, ResultsFileError
from oprag.methods.answer import Answer
from oprag.methods.replies import without_reasoning
from oprag.methods.run import EMPTY

__all__ = ["ProgressCallback", "RunReport", "RunState", "run"]

# Answers can be rebuilt from stored replies, so they are written in batches.
_FLUSH_SECONDS = 0.5
_FLUSH_ANSWERS = 64

_MAX_ERROR = 2_000  # characters of an error message
_SEARCHED = 2  # chunks of an own pipeline that are searched for in all documents
_PACKAGES = ("oprag", "numpy", "langchain-core", "llama-index-core", "wordllama", "bm25s", "sentence-transformers")


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The report of a run, final or in progress.

    Attributes:
        outcome: "complete", or why the run stopped or is stopping early. Empty while the run continues.
        total: Number of answers to generate: one for each question of each cell.
        answered: Number of answers that exist, including those of earlier runs.
        failed: Number of answers that failed, by the class of the error.
        remaining: Number of answers that were not tried.
        spent: Calls, tokens and money spent by all runs.
        running: Number of calls in flight.
        seconds: The duration of this run, in seconds.
    """

    outcome: str
    total: int
    answered: int
    failed: dict[str, int]
    remaining: int
    spent: Spent
    running: int
    seconds: float

    @property
    def done(self) -> int:
        """Number of answers that exist or failed, including those of earlier runs."""
        return self.total - self.remaining

    @property
    def complete(self) -> bool:
        """Whether every question in every cell has an answer."""
        return self.answered == self.total


ProgressCallback = Callable[[RunReport], None]
"""A function that is called with the report so far, several times a second."""


class RunState:
    """The answered, failed and waiting items of an experiment, given those found in the results file."""

    def __init__(
        self, items: Sequence[WorkItem], found: Mapping[tuple[str, str], str | None], *, retry_failed: bool = False
    ) -> None:
        failed = Counter(error for item in items if (error := found.get(item.place)) is not None)
        self.failed_before = failed.total()
        self.failed = Counter[str]() if retry_failed else failed
        again = {place for place, error in found.items() if retry_failed and error is not None}
        self.waiting = [item for item in items if item.place not in found or item.place in again]
        self.total = len(items)
        self.answered = self.total - len(self.waiting) - self.failed.total()
        self._since = time.perf_counter()

    def add(self, records: Iterable[AnswerRecord]) -> None:
        """Count new answers and failures."""
        for record in records:
            if record.error is None:
                self.answered += 1
            else:
                self.failed[record.error] += 1

    def report(self, spent: Spent, outcome: str, running: int = 0) -> RunReport:
        """The report of the run so far."""
        return RunReport(
            outcome=outcome,
            total=self.total,
            answered=self.answered,
            failed=dict(self.failed),
            remaining=self.total - self.answered - self.failed.total(),
            spent=spent,
            running=running,
            seconds=time.perf_counter() - self._since,
        )


def run(
    experiment: Experiment | PreparedExperiment,
    path: str | os.PathLike[str],
    *,
    retry_failed: bool = False,
    measure: bool = False,
    ray: str | None = None,
    on_progress: ProgressCallback | None = None,
) -> RunReport:
    """Answer every question in every cell that has no answer in the results file.

    Identical model calls are made once, across cells and runs. Every reply is stored in the file before it is used, so
    the next run can continue after any interruption. The first Ctrl-C waits for calls in flight; a second one exits at
    once.

    With `measure`, questions are answered one at a time, and the wall time, the CPU time and the peak memory of this
    process are stored with each answer whose calls were all made for it. Each question is embedded and searched for
    again; splitting, embedding and indexing the documents, judging and scoring are not measured.

    With `ray`, models are called by workers of a Ray cluster, one for each CPU, and everything else runs here. Models
    must be importable on every machine.

    Args:
        experiment: The experiment; if it is already prepared, its models are not opened again.
        path: The results file; created if missing.
        retry_failed: Whether to retry questions that failed in earlier runs.
        measure: Whether to measure each answer; `max_concurrency` has no effect then.
        ray: The address of a Ray cluster: HOST:PORT, "auto" for that of this process or machine, or "local" to start
            one on this machine that ends with the run. None calls models in threads of this process.
        on_progress: Called with the report so far, several times a second.

    Returns:
        The report of the run: its outcome, and the number of answers and failures.

    Raises:
        OptionError: `experiment` is not an `Experiment`, or both `measure` and `ray` are set.
        ExperimentError: The experiment cannot be run as described, or the cluster cannot be used.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written; rows already written are
            kept.
        MissingExtraError: A package that the experiment or measuring needs is not installed.
    """
    if measure and find_spec("psutil") is None:
        raise MissingExtraError("Measuring", "compare")
    prepared = PreparedExperiment.of(experiment)
    if ray is not None:
        if measure:
            raise OptionError("answers are measured in this process, got measure and ray; remove one of them", ray)
        from oprag.compare.ray import on_ray

        with on_ray(prepared, ray) as there:
            return run(there, path, retry_failed=retry_failed, on_progress=on_progress)
    name = prepared.experiment.name
    file = ResultsFile(path)
    if prepared.unscored is not None:
        raise ExperimentError(prepared.unscored, prepared.experiment.metrics)
    file.begin(name, prepared.described(), prepared.cell_records, prepared.question_records, _versions(measure=measure))
    outcome = "interrupted"
    last_report = time.monotonic()

    def report(*, now: bool = False) -> None:
        nonlocal last_report
        if on_progress is not None and (now or time.monotonic() - last_report > _FLUSH_SECONDS):
            on_progress(state.report(spending.spent, engine.stopped or "", engine.running))
            last_report = time.monotonic()

    try:
        spending = Spending(prepared.experiment, prepared.experiment.limits, file.spent(name))
        state = RunState([*prepared.items()], file.outcomes(name), retry_failed=retry_failed)
        retrieval = Retrieval(prepared, file, measures=measure)
        recorder = Recorder(prepared, retrieval, file)
        engine = Engine(prepared, retrieval, file, spending, report)
        with closing(retrieval), _stopped_by_signals(engine):
            # A measurement cannot be rebuilt from stored replies, so each is written at once.
            for outcomes in _batches(engine.run(state.waiting), size=1 if measure else _FLUSH_ANSWERS):
                records = recorder.records(outcomes)
                file.put_answers(records)
                state.add(records)
                report(now=True)
        outcome = engine.stopped or "complete"
    except Exception as error:
        outcome = named_error(error)
        raise
    finally:
        # If the file cannot be written, for example on a full disk, the first failed write has raised the error.
        with suppress(ResultsFileError):
            file.end(outcome)
        file.close()
    return state.report(spending.spent, outcome)


@contextmanager
def _stopped_by_signals(engine: Engine) -> Iterator[None]:
    """Stop the engine cleanly on Ctrl-C or SIGTERM; a second signal raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(*_: object) -> None:
        if engine.stopped is not None:
            raise KeyboardInterrupt
        engine.stop("interrupted")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            # A handler that was not installed from Python is None and cannot be restored.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _batches(outcomes: Iterable[Outcome], size: int) -> Iterator[list[Outcome]]:
    """Batch outcomes for writing: twice a second, or earlier if there are many."""
    batch: list[Outcome] = []
    since = time.monotonic()
    for outcome in outcomes:
        batch.append(outcome)
        if len(batch) >= size or time.monotonic() - since > _FLUSH_SECONDS:
            yield batch
            batch, since = [], time.monotonic()
    yield batch


def _versions(*, measure: bool) -> dict[str, str]:
    """The package versions and system of this process; if it measures, the CPU cores that it may use."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    if measure:
        found["cores"] = f"{usable_cores():g}"
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


class Recorder:
    """Makes answer records with scores."""

    def __init__(self, prepared: PreparedExperiment, retrieval: Retrieval, cache: WorkCache) -> None:
        embedder = prepared.score_embedder
        self._retrieval = retrieval
        self._metrics = prepared.metrics
        self._embedder = None if embedder is None else VectorSource(embedder, cache)
        self._lengths: dict[tuple[str, tuple[str, ...]], int] = {}

    def records(self, outcomes: Sequence[Outcome]) -> list[AnswerRecord]:
        """The records of the outcomes; failures come first."""
        records = [_failed(outcome) for outcome in outcomes if outcome.answer is None]
        answered = [(one, one.answer, *self._chunks(one, one.answer)) for one in outcomes if one.answer is not None]
        scored = score_all(self._metrics, [given for _, _, given, _ in answered], self._embedder)
        for (outcome, answer, _, about), (scores, notes) in zip(answered, scored, strict=True):
            record = AnswerRecord(
                *outcome.item.place,
                text=answer.text,
                notes=(*answer.notes, *notes, *outcome.notes),
                route=answer.route,
                calls=len(outcome.calls),
                embedded_tokens=self._retrieval.embedded_tokens(outcome.item.cell, outcome.embedded),
                scores={**scores, **outcome.judged},
                replies=[*outcome.calls, *outcome.metric_calls],
            )
            measured = {} if outcome.measurement is None else outcome.measurement._asdict()
            records.append(record._replace(**answer.usage._asdict(), **measured, **about))
        return records

    def _chunks(self, outcome: Outcome, answer: Answer) -> tuple[ScoredAnswer, dict[str, Any]]:
        """What is scored, and what the record says of the chunks that the answer was made from."""
        cell, question, context = outcome.item.cell, outcome.item.question, answer.context
        given = ScoredAnswer(
            question=question,
            method=cell.method,
            text=without_reasoning(answer.text),
            k=cell.context_options.k,
            tokens_read=sum(cell.context_options.count_tokens(call.prompt.text) for call in answer.calls),
            tokens_of_sources=self._length(cell, question),
        )
        if kind_of(cell.method).own:
            if not given.text.strip():
                outcome.notes.append(EMPTY)
            found, about = self._returned(outcome, answer.parsed)
            return replace(given, **found), about
        if context is None:
            return given, {}
        index = self._retrieval.index(cell, question.documents)
        rows = [int(chunk.id or 0) for chunk in context.kept]
        spans = [index.spans[row] for row in rows]
        kept = [
            KeptChunk(question.documents.index(name), start, end, chunk.rank, chunk.similarity)
            for (name, start, end), chunk in zip(spans, context.kept, strict=True)
        ]
        dropped: dict[str, int] = Counter(str(drop.reason) for drop in context.dropped)
        retrieved = [chunk for chunk in sorted(context.kept, key=attrgetter("rank")) if chunk.neighbor_of is None]
        ranked = [int(chunk.id or 0) for chunk in retrieved]
        relevant = index.touching(question.evidence)
        return replace(given, context=context, spans=spans, ranked=ranked, relevant=relevant), {
            "context": ContextRecord(kept, dropped),
            "context_tokens": context.tokens,
            "context_embedder_tokens": sum(index.tokens[row] for row in rows),
            "context_chunks": len(kept),
        }

    def _returned(self, outcome: Outcome, chunks: Sequence[FoundChunk] | None) -> tuple[dict[str, Any], dict[str, int]]:
        """What is scored of the chunks that an own pipeline returned, and what the record says of them."""
        if chunks is None:
            return {}, {}
        cell, question = outcome.item.cell, outcome.item.question
        texts = {name: self._retrieval.whole_text(cell, name) for name in question.documents}
        places = [chunk.places_in(texts) for chunk in chunks]
        if missing := places.count([]):
            outcome.notes.append(f"{missing:,} of {len(chunks):,} chunks are not in the documents of the question")
        tokens = sum(cell.context_options.count_tokens(chunk.text) for chunk in chunks)
        # Chunks of other documents cover nothing. If all chunks are found nowhere, they may have been rewritten.
        located = missing < len(chunks) or not chunks or _any_of(self._retrieval.whole_texts(cell), chunks)
        about = {"context_tokens": tokens, "context_chunks": len(chunks)}
        return {"spans": [*chain(*places)], "located": located}, about

    def _length(self, cell: Cell, question: Question) -> int:
        """The number of tokens of the whole documents of a question."""
        key = cell.data, question.documents
        if key not in self._lengths:
            texts = (self._retrieval.whole_text(cell, name) for name in question.documents)
            self._lengths[key] = sum(cell.context_options.count_tokens(text) for text in texts)
        return self._lengths[key]


def _failed(outcome: Outcome) -> AnswerRecord:
    # The client's error, which is the cause, is more specific than the error of the method.
    cause = outcome.error and (outcome.error.__cause__ or outcome.error)
    return AnswerRecord(
        *outcome.item.place,
        error=error_name(cause),
        message=error_message(outcome.error, _MAX_ERROR),
        calls=len(outcome.calls),
        replies=outcome.calls,
    )


def _any_of(texts: Iterable[tuple[str, str]], chunks: Sequence[FoundChunk]) -> bool:
    """Whether a chunk is from one of these documents, by its source or, of the first chunks, by its text."""
    sources = [f"/{chunk.source}" for chunk in chunks if chunk.source is not None]
    # Searching all documents takes a second per GB.
    wanted = [chunk.text for chunk in chunks[:_SEARCHED] if chunk.text.strip()]
    return any(
        any(source.endswith(f"/{name}") for source in sources) or any(one in text for one in wanted)
        for name, text in texts
    )
