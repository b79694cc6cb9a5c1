"""The engine: processes many questions and cells concurrently, and makes identical model calls once.

A method is a generator that yields its requests (`oprag.methods.run`). Thousands of generators can therefore wait
at the same time without a thread each, and all that wait for the same reply share one call.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from oprag._internal.masking import describe, masked_error
from oprag._internal.tokens import TokenCounter, count
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
from oprag.compare.experiment_methods import method_function
from oprag.compare.grid import Cell
from oprag.compare.meter import Measurement, Meter
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
from oprag.methods.run import Answering, Embed, Generate, ReadSources, Request, Retrieve, answering
from oprag.methods.task import Task

__all__ = ["Engine", "Made", "ModelCaller", "Outcome", "PendingCall", "ask"]

_MAX_WAITING = 4_000
"""Items that wait for replies at the same time; the memory of each is about one context."""

_MAX_ERROR = 500
"""Characters of an error message in the reason of a stop."""

_MAX_TOKENS = 10**15
"""Larger token counts are invalid."""


class PendingCall(NamedTuple):
    """A planned call."""

    key: str  # key of the reply
    model: str  # name in the experiment
    prompt: Prompt
    at_most: Spent  # maximum spending


class Made(NamedTuple):
    """A finished call; its completion is already stored, so that it is not lost if the process ends."""

    call: PendingCall
    completion: Completion


class _AskModel(NamedTuple):
    """A request to call a judge's model; its result is a tuple of one `Completion`."""

    model: str
    prompts: tuple[Prompt]


@dataclass
class Outcome:
    """The outcome of an item: an answer or an error."""

    item: WorkItem
    answer: Answer | None = None
    error: Exception | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)  # the step and key of each reply, in order
    embedded: list[str] = field(default_factory=list)  # texts that were embedded for the item
    judged: dict[str, float] = field(default_factory=dict)  # scores by judges
    notes: list[str] = field(default_factory=list)  # why a judge returned no score
    metric_calls: list[tuple[str, str]] = field(default_factory=list)  # like `calls`, for judges
    reused: bool = False  # whether a reply of the answer was stored before
    measurement: Measurement | None = None


@dataclass(eq=False)
class _Work:
    """An item that is being processed."""

    outcome: Outcome  # so far
    body: Generator[Request | _AskModel, Any, Answer]  # the method, then its judges
    replies: dict[str, Completion | None] = field(default_factory=dict)  # requested replies by key; None while missing
    requested: list[tuple[str, str]] = field(default_factory=list)  # steps and keys of the replies, in prompt order
    judging: bool = False  # whether the requested replies are those of a judge


class Engine:
    """Processes items until all are done or it is stopped."""

    def __init__(
        self,
        prepared: PreparedExperiment,
        retrieval: Retrieval,
        cache: WorkCache,
        spending: Spending,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        experiment = prepared.experiment
        self._retrieval = retrieval
        self._caller = ModelCaller(prepared.models, experiment.token_counter, cache, spending, tell)
        self._cache = cache
        self._spending = spending
        self._models = prepared.models
        self._judges = prepared.judges
        self._give_up_after = experiment.give_up_after
        # Answers are measured one at a time.
        self._max_calls = 1 if retrieval.measures else experiment.max_concurrency
        self._failed_calls = self._failed_searches = 0  # in a row
        self._ready: deque[tuple[_Work, object]] = deque()
        self._calls: deque[PendingCall] = deque()
        self._waiting: dict[str, list[_Work]] = {}
        self._works = 0
        self.stopped: str | None = None

    def close(self) -> None:
        """Close the retrieval."""
        self._retrieval.close()

    @property
    def running(self) -> int:
        """Number of calls in flight."""
        return self._caller.running

    def stop(self, reason: str) -> None:
        """Start no more calls or items; signal handlers may call it, since it only sets the reason."""
        if self.stopped is None:
            self.stopped = reason

    def run(self, items: Iterable[WorkItem]) -> Iterator[Outcome]:
        """Yield the outcome of each item when it is done; after a stop, only of items that need no further call."""
        waiting = iter(items)
        while True:
            while self._ready:
                outcome = self._advance(*self._ready.popleft())
                if outcome is not None:
                    self._works -= 1
                    # Start calls first, so that threads are busy while the consumer writes the outcome to the file.
                    self._begin_calls()
                    yield outcome
            self._begin_calls()
            if self._can_start_item and (item := next(waiting, None)) is not None:
                outcome = Outcome(item)
                self._ready.append((_Work(outcome, self._body(outcome)), None))
                self._works += 1
            elif self.running:
                for made in self._caller.take():
                    self._deliver(made)
            else:
                break
        for works in self._waiting.values():
            for work in works:
                work.body.close()

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
        method = answering(task, method_function(cell.method))
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

    def _advance(self, work: _Work, reply: object) -> Outcome | None:
        """Advance a method until it waits for a model or ends; return its outcome if it has ended."""
        outcome = work.outcome
        try:
            while True:
                try:
                    request = work.body.send(reply)
                except StopIteration as stop:
                    outcome.answer = stop.value
                    return outcome
                if isinstance(request, Generate | _AskModel):
                    if not self._request_replies(work, request):
                        return None
                    reply = self._take_replies(work)
                else:
                    reply = self._fetch(outcome, request)
                    self._failed_searches = 0
        except (ResultsFileError, MissingExtraError):
            raise
        except Exception as error:  # noqa: BLE001 - any exception is recorded as the failure of this item
            # Some failures are not specific to an item, such as an unreachable embedder.
            if not isinstance(error, OpragError) or isinstance(error, EmbeddingError):
                self._failed_searches += 1
                self._give_up(self._failed_searches, "searches", error)
            outcome.error = error
            return outcome

    def _give_up(self, failed: int, what: str, error: Exception | None) -> None:
        """Stop after too many failures in a row."""
        if failed >= self._give_up_after:
            self.stop(f"the last {failed} {what} failed, the last one with {named_error(error, _MAX_ERROR)}")

    def _fetch(self, outcome: Outcome, request: Retrieve | Embed | ReadSources) -> object:
        """The contexts, vectors or texts that a method requests."""
        item = outcome.item
        if isinstance(request, Retrieve):
            outcome.embedded += self._retrieval.embeds(item.cell, request.questions)
        elif isinstance(request, Embed):
            outcome.embedded += [*request.questions, *request.texts]
        return self._retrieval.fetch(item.cell, item.question, request)

    def _request_replies(self, work: _Work, request: Generate | _AskModel) -> bool:
        """Look up the replies and queue the missing calls; return whether all replies are known."""
        cell = work.outcome.item.cell
        work.judging = isinstance(request, _AskModel)
        model = request.model if isinstance(request, _AskModel) else cell.caller or ""
        work.requested = []
        work.replies = {}
        for prompt in request.prompts:
            key = self._key(model, prompt, cell)
            work.requested.append((prompt.step, key))
            if key in work.replies:
                continue
            known = None if key in self._waiting else self._known(key)
            work.replies[key] = known
            if known is not None:
                work.outcome.reused = work.outcome.reused or not work.judging
                continue
            if key not in self._waiting:
                self._waiting[key] = []
                self._calls.append(PendingCall(key, model, prompt, self._spending.at_most(model, prompt)))
            self._waiting[key].append(work)
        return all(work.replies.values())

    def _key(self, model: str, prompt: Prompt, cell: Cell) -> str:
        return prompt_key(self._models[model].identity, prompt, cell.repeat)

    def _known(self, key: str) -> Completion | None:
        stored = self._cache.reply(key)
        return stored and stored.completion

    def _take_replies(self, work: _Work) -> tuple[Completion | None, ...]:
        """The replies in the order of the prompts; also records them as calls of the item."""
        replies = tuple(work.replies[key] for _, key in work.requested)
        calls = work.outcome.metric_calls if work.judging else work.outcome.calls
        calls += [
            called
            for called, reply in zip(work.requested, replies, strict=True)
            if reply is not None and reply.error is None
        ]
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
            self._caller.begin(call)

    def _deliver(self, made: Made) -> None:
        """Deliver a reply to all items that wait for it."""
        call, completion = made
        self._spending.settle(call.at_most, call.model, completion)
        if isinstance(completion.error, MissingExtraError | ExperimentError):
            raise completion.error
        self._failed_calls = 0 if completion.error is None else self._failed_calls + 1
        self._give_up(self._failed_calls, "calls", completion.error)
        for work in self._waiting.pop(call.key):
            if work.replies.get(call.key, completion) is not None:
                continue  # the item has already ended, since another of its calls failed
            work.replies[call.key] = completion
            if completion.error is not None or all(work.replies.values()):
                # A failed call ends the item, so do not wait for its other calls.
                self._ready.append((work, self._take_replies(work)))
                work.replies = {}


class ModelCaller:
    """Calls models, each call in its own thread, and stores their replies.

    The threads are daemons, so that a process can exit without waiting for a model.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        count_tokens: TokenCounter,
        cache: WorkCache,
        spending: Spending,
        tell: Callable[[], None] = lambda: None,  # called after each call, and twice a second while waiting
    ) -> None:
        self._models = models
        self._count = count_tokens
        self._cache = cache
        self._spending = spending
        self._tell = tell
        self._done: SimpleQueue[Made | BaseException] = SimpleQueue()
        self.running = 0  # number of calls in flight

    def begin(self, call: PendingCall) -> None:
        """Start a call; its reply will be stored."""
        self.running += 1
        threading.Thread(target=self._work, args=(call,), name="oprag-model", daemon=True).start()

    def take(self) -> list[Made]:
        """Wait for a call to finish; return all finished calls."""
        taken: list[Made] = []
        while not taken or not self._done.empty():
            try:
                # A wait without a timeout could not be interrupted with Ctrl-C on Windows.
                made = self._done.get(timeout=0.5)
            except Empty:
                self._tell()
                continue
            self.running -= 1
            if isinstance(made, BaseException):
                raise made
            taken.append(made)
        self._tell()
        return taken

    def _work(self, call: PendingCall) -> None:
        try:
            self._done.put(self._made(call))
        except BaseException as error:  # noqa: BLE001 - raised again by `take`
            self._done.put(error)

    def _made(self, call: PendingCall) -> Made:
        """Make a call, and store its reply."""
        model, step = self._models[call.model], call.prompt.step
        completion = ask(model, call.prompt)
        if completion.error is not None:
            details = error_name(completion.error), error_message(completion.error), completion.seconds
            self._cache.put_failure(FailedCall(call.key, model.identity, step, *details))
            return Made(call, completion)
        usage = completion.usage
        if usage is None:  # the model does not report it
            usage = Usage(count(call.prompt.text, self._count), count(completion.text, self._count), 0, estimated=True)
        about = (call.key, model.identity, step, completion.text, usage, completion.finish_reason, completion.seconds)
        # Use the reply as stored, so that a repeated run, which reads it from the file, gives the same results.
        kept = self._cache.put_reply(Reply(*about, self._spending.cost(call.model, usage)))
        return Made(call, kept.completion)


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
