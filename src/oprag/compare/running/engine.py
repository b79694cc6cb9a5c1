"""The engine: processes many questions and cells concurrently, and makes identical model calls once.

A method is a generator that yields its requests (`oprag.methods.run`). Thousands of generators can therefore wait
at the same time without a thread each, and all that wait for the same reply share one call.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from oprag._internal.masking import describe, masked_error
from oprag._internal.tokens import count
from oprag.compare.db.records import (
    FailedCall,
    Reply,
    Spent,
    WorkCache,
    error_message,
    error_name,
    named_error,
    prompt_key,
    storable,
)
from oprag.compare.experiment_methods import CONTROLS, kind_of, pipeline
from oprag.compare.grid import Cell
from oprag.compare.meter import Measurement, Meter
from oprag.compare.metrics.judge import JudgeMetric
from oprag.compare.metrics.registry import ScoredAnswer
from oprag.compare.providers.chat_models import Model
from oprag.compare.running.prepared import PreparedExperiment, WorkItem
from oprag.compare.running.retrieval import Retrieval
from oprag.compare.spending import Spending
from oprag.errors import (
    EmbeddingError,
    ExperimentError,
    MissingExtraError,
    ModelError,
    OpragError,
    OptionError,
    ResultsFileError,
)
from oprag.methods.answer import Answer, Completion, Usage
from oprag.methods.prompts import Prompt
from oprag.methods.replies import without_reasoning
from oprag.methods.run import Answering, Embed, Generate, Request, Retrieve, answering
from oprag.methods.task import Task

__all__ = ["Engine", "Outcome", "PendingCall", "ask"]

_MAX_WAITING = 4_000  # items that wait for replies at the same time; the memory of each is about one context
_MAX_ERROR = 500  # characters of an error message in the reason of a stop
_MAX_TOKENS = 10**15  # larger token counts are invalid


class PendingCall(NamedTuple):
    """A planned call."""

    key: str  # key of the reply
    model: str  # name in the experiment
    prompt: Prompt
    at_most: Spent  # maximum spending


class _AskModel(NamedTuple):
    """A request to call a judge's model; its result is a tuple of one `Completion`."""

    model: str
    prompts: tuple[Prompt]


@dataclass(eq=False)
class Outcome:
    """The outcome of an item, an answer or an error; and while it is processed, what it waits for."""

    item: WorkItem
    body: Generator[Request | _AskModel, Any, Answer] = field(init=False, repr=False)  # the method, then its judges
    answer: Answer | None = None
    error: Exception | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)  # the step and key of each reply, in order
    embedded: list[str] = field(default_factory=list)  # texts that were embedded for the item
    judged: dict[str, float] = field(default_factory=dict)  # scores by judges
    notes: list[str] = field(default_factory=list)  # why a judge returned no score
    metric_calls: list[tuple[str, str]] = field(default_factory=list)  # like `calls`, for judges
    reused: bool = False  # whether a reply of the answer was stored before
    measurement: Measurement | None = None
    replies: dict[str, Completion | None] = field(default_factory=dict)  # requested replies by key; None while missing
    requested: list[tuple[str, str]] = field(default_factory=list)  # steps and keys of the replies, in prompt order
    judging: bool = False  # whether the requested replies are those of a judge


class Engine:
    """Processes items until all are done or it is stopped; each call has its own thread, and its reply is stored.

    The threads are daemons, so that a process can exit without waiting for a model.
    """

    def __init__(
        self,
        prepared: PreparedExperiment,
        retrieval: Retrieval,
        cache: WorkCache,
        spending: Spending,
        tell: Callable[[], None] = lambda: None,  # called after each call, and twice a second while waiting
    ) -> None:
        self._prepared = prepared
        self._judges = [one for one in prepared.metrics if isinstance(one, JudgeMetric)]
        self._retrieval = retrieval
        self._cache = cache
        self._spending = spending
        self._tell = tell
        # Answers are measured one at a time.
        self._max_calls = 1 if retrieval.measures else prepared.experiment.max_concurrency
        self._failed_calls = self._failed_searches = 0  # in a row
        self._ready: deque[tuple[Outcome, object]] = deque()
        self._calls: deque[PendingCall] = deque()
        self._waiting: dict[str, list[Outcome]] = {}
        self._finished: SimpleQueue[tuple[PendingCall, Completion | BaseException]] = SimpleQueue()
        self._works = 0
        self.running = 0  # number of calls in flight
        self.stopped: str | None = None

    def stop(self, reason: str) -> None:
        """Start no more calls or items; signal handlers may call it, since it only sets the reason."""
        if self.stopped is None:
            self.stopped = reason

    def run(self, items: Iterable[WorkItem]) -> Iterator[Outcome]:
        """Yield the outcome of each item when it is done; after a stop, only of items that need no further call."""
        waiting = iter(items)
        while True:
            while self._ready:
                outcome, reply = self._ready.popleft()
                if self._advance(outcome, reply):
                    self._works -= 1
                    # Start calls first, so that threads are busy while the consumer writes the outcome to the file.
                    self._begin_calls()
                    yield outcome
            self._begin_calls()
            if self._can_start_item and (item := next(waiting, None)) is not None:
                outcome = Outcome(item)
                outcome.body = self._body(outcome)
                self._ready.append((outcome, None))
                self._works += 1
            elif self.running:
                for call, completion in self._take():
                    self._deliver(call, completion)
            else:
                break
        for outcome in chain(*self._waiting.values()):
            outcome.body.close()

    @property
    def _can_start_item(self) -> bool:
        """Whether to start another item: there are too few queued calls to keep all threads busy."""
        if self._retrieval.measures and (self._works or self._calls or self.running):
            return False
        return self.stopped is None and len(self._calls) < self._max_calls and self._works < _MAX_WAITING

    def _body(self, outcome: Outcome) -> Generator[Request | _AskModel, Any, Answer]:
        """Run the method, then the judges of its answer; a failed judge call fails the item."""
        cell, question = outcome.item.cell, outcome.item.question
        task = Task(question.text, cell.options, cell.context_options, question.choices)
        method = answering(task, pipeline if kind_of(cell.method).own else CONTROLS.get(cell.method))
        answer = yield from (self._measured(method, outcome) if self._retrieval.measures else method)
        text = without_reasoning(answer.text)
        given = ScoredAnswer(question=question, method=cell.method, text=text, context=answer.context)
        for metric in self._judges:
            prompt = metric.ask(given) if metric.applies(given) else None
            if prompt is None:
                continue
            (completion,) = yield _AskModel(metric.judge.model, (prompt,))
            if completion.error is not None:
                reason = " ".join(masked_error(completion.error).split())
                raise ModelError(f"the judge {metric.name!r} failed: {reason}", metric.name) from completion.error
            try:
                outcome.judged[metric.name] = metric.read(completion.text)
            except OptionError as error:
                outcome.notes.append(f"no {metric.name}: {error}")
        return answer

    def _measured(self, method: Answering, outcome: Outcome) -> Answering:
        """The method, measured; an answer with a reply that was stored before has no measurement."""
        self._retrieval.make_ready(outcome.item.cell, outcome.item.question)
        with Meter() as meter:
            answer = yield from method
        if not outcome.reused:
            outcome.measurement = meter.measurement
        return answer

    def _advance(self, outcome: Outcome, reply: object) -> bool:
        """Advance a method until it waits for a model or ends; return whether it has ended."""
        try:
            while True:
                try:
                    request = outcome.body.send(reply)
                except StopIteration as stop:
                    outcome.answer = stop.value
                    return True
                if isinstance(request, Generate | _AskModel):
                    if not self._request_replies(outcome, request):
                        return False
                    reply = self._take_replies(outcome)
                else:
                    cell, question = outcome.item.cell, outcome.item.question
                    if isinstance(request, Retrieve):
                        outcome.embedded += self._retrieval.embeds(cell, request.questions)
                    elif isinstance(request, Embed):
                        outcome.embedded += [*request.questions, *request.texts]
                    reply = self._retrieval.fetch(cell, question, request)
                    self._failed_searches = 0
        except (ResultsFileError, MissingExtraError):
            raise
        except Exception as error:  # noqa: BLE001 - any exception is recorded as the failure of this item
            # Some failures are not specific to an item, such as an unreachable embedder.
            if not isinstance(error, OpragError) or isinstance(error, EmbeddingError):
                self._failed_searches += 1
                self._give_up(self._failed_searches, "searches", error)
            outcome.error = error
            return True

    def _give_up(self, failed: int, what: str, error: Exception | None) -> None:
        """Stop after too many failures in a row."""
        if failed >= self._prepared.experiment.give_up_after:
            self.stop(f"the last {failed} {what} failed, the last one with {named_error(error, _MAX_ERROR)}")

    def _request_replies(self, outcome: Outcome, request: Generate | _AskModel) -> bool:
        """Look up the replies and queue the missing calls; return whether all replies are known."""
        cell = outcome.item.cell
        outcome.judging = isinstance(request, _AskModel)
        model = request.model if isinstance(request, _AskModel) else cell.caller or ""
        outcome.requested = []
        outcome.replies = {}
        for prompt in request.prompts:
            key = self._key(model, prompt, cell)
            outcome.requested.append((prompt.step, key))
            stored = None if key in self._waiting else self._cache.reply(key)
            outcome.replies[key] = stored and stored.completion
            if stored is not None:
                outcome.reused = outcome.reused or not outcome.judging
                continue
            if key not in self._waiting:
                self._waiting[key] = []
                self._calls.append(PendingCall(key, model, prompt, self._spending.at_most(model, prompt)))
            self._waiting[key].append(outcome)
        return all(outcome.replies.values())

    def _key(self, model: str, prompt: Prompt, cell: Cell) -> str:
        return prompt_key(self._prepared.models[model].identity, prompt, cell.repeat)

    def _take_replies(self, outcome: Outcome) -> tuple[Completion | None, ...]:
        """The replies in the order of the prompts; also records them as calls of the item."""
        replies = tuple(outcome.replies[key] for _, key in outcome.requested)
        calls = outcome.metric_calls if outcome.judging else outcome.calls
        pairs = zip(outcome.requested, replies, strict=True)
        calls += [called for called, reply in pairs if reply is not None and reply.error is None]
        return replies

    def _begin_calls(self) -> None:
        while self._calls and self.stopped is None and self.running < self._max_calls:
            call = self._calls[0]
            if (reason := self._spending.refusal(call.at_most)) is not None:
                # Calls in flight may spend less than reserved, so only stop when none are left.
                if not self.running:
                    self.stop(reason)
                return
            self._calls.popleft()
            self._spending.reserve(call.at_most)
            self.running += 1
            threading.Thread(target=self._call, args=(call,), name="oprag-model", daemon=True).start()

    def _call(self, call: PendingCall) -> None:
        try:
            self._finished.put((call, self._stored(call)))
        except BaseException as error:  # noqa: BLE001 - raised again by `_take`
            self._finished.put((call, error))

    def _stored(self, call: PendingCall) -> Completion:
        """Make a call, and store its reply, so that it is not lost if the process ends."""
        model, step = self._prepared.models[call.model], call.prompt.step
        completion = ask(model, call.prompt)
        if completion.error is not None:
            details = error_name(completion.error), error_message(completion.error), completion.seconds
            self._cache.put_failure(FailedCall(call.key, model.identity, step, *details))
            return completion
        usage = completion.usage
        if usage is None:  # the model does not report it
            counter = self._prepared.experiment.token_counter
            usage = Usage(count(call.prompt.text, counter), count(completion.text, counter), 0, estimated=True)
        about = (call.key, model.identity, step, completion.text, usage, completion.finish_reason, completion.seconds)
        # Use the reply as stored, so that a repeated run, which reads it from the file, gives the same results.
        return self._cache.put_reply(Reply(*about, self._spending.cost(call.model, usage))).completion

    def _take(self) -> list[tuple[PendingCall, Completion]]:
        """Wait for a call to finish; return all finished calls."""
        taken: list[tuple[PendingCall, Completion]] = []
        while not taken or not self._finished.empty():
            try:
                # A wait without a timeout could not be interrupted with Ctrl-C on Windows.
                call, completion = self._finished.get(timeout=0.5)
            except Empty:
                self._tell()
                continue
            self.running -= 1
            if isinstance(completion, BaseException):
                raise completion
            taken.append((call, completion))
        self._tell()
        return taken

    def _deliver(self, call: PendingCall, completion: Completion) -> None:
        """Deliver a reply to all items that wait for it."""
        self._spending.settle(call.at_most, call.model, completion)
        if isinstance(completion.error, MissingExtraError | ExperimentError):
            raise completion.error
        self._failed_calls = 0 if completion.error is None else self._failed_calls + 1
        self._give_up(self._failed_calls, "calls", completion.error)
        for outcome in self._waiting.pop(call.key):
            if outcome.replies.get(call.key, completion) is not None:
                continue  # it was told, or the item has already ended, since another of its calls failed
            outcome.replies[call.key] = completion
            if completion.error is not None or all(outcome.replies.values()):
                # A failed call ends the item, so do not wait for its other calls.
                self._ready.append((outcome, self._take_replies(outcome)))
                outcome.replies = {}


def ask(model: Model, prompt: Prompt) -> Completion:
    """Call a model and check its reply; the time is measured if the model does not report it."""
    started = time.perf_counter()
    try:
        completion = _checked(model.complete(prompt))
    except Exception as error:  # noqa: BLE001 - a custom model may raise anything
        completion = Completion(error=error)
    reported: Any = completion.seconds
    told = isinstance(reported, int | float) and 0 < reported < math.inf
    return replace(completion, seconds=reported if told else time.perf_counter() - started)


def _checked(given: Any) -> Completion:
    """Validate a reply, since a custom model may return anything, and normalize it to what can be stored."""
    if isinstance(given, str):
        given = Completion(str(given))
    if not isinstance(given, Completion):
        raise ModelError(f"a model must return a string or a Completion, got {describe(given)}", given)
    if given.error is not None:
        return given
    if not isinstance(given.text, str):
        raise ModelError(f"the text of a reply must be a string, got {describe(given.text)}", given)
    usage, reason = given.usage, given.finish_reason
    if usage is not None:
        try:
            tokens, estimated = [int(one) for one in usage[:3]], bool(usage[3])
        except (TypeError, ValueError, OverflowError, IndexError):
            tokens, estimated = [-1], False
        if not all(0 <= one < _MAX_TOKENS for one in tokens):
            raise ModelError(f"the usage of a reply must consist of token counts, got {describe(usage)}", given)
        usage = Usage(tokens[0], tokens[1], tokens[2], estimated)
    reason = None if reason is None else storable(str(reason))
    return replace(given, text=storable(str(given.text)), usage=usage, finish_reason=reason)
