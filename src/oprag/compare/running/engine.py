"""The engine: processes many questions and cells concurrently, and makes identical model calls once.

A method is a generator that yields its requests (`oprag.methods.effects`). Thousands of generators can therefore wait
at the same time without a thread each, and all that wait for the same reply share one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from oprag.compare.db.cache import WorkCache
from oprag.compare.db.keys import prompt_key
from oprag.compare.db.records import Reply, Spent
from oprag.compare.db.text import named_error
from oprag.compare.running.ledger import Ledger, Tariff
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import Caller, Made, PendingCall
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import AskModel, Outcome, WorkInProgress, WorkItem
from oprag.compare.spec.grid import Cell
from oprag.errors import EmbeddingError, MissingExtraError, OpragError, ResultsFileError
from oprag.methods.answer import Answer
from oprag.methods.answering import Answering
from oprag.methods.effects import Embed, Generate, ReadSources, Retrieve
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["Engine"]

# Items that wait for replies at the same time; the memory of each is about one context.
_MAX_WAITING = 4_000
# Characters of prompts that wait for replies: whole documents are long, and each cell has its own copy.
_MAX_CHARACTERS = 200_000_000
_MAX_ERROR = 500  # characters of an error message in the reason of a stop


class Engine:
    """Processes items until all are done or it is stopped."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        library: Library,
        caller: Caller,
        cache: WorkCache,
        ledger: Ledger,
        *,
        measured: Callable[[Answering, Outcome], Answering] | None = None,  # measures answers; they run one at a time
    ) -> None:
        self._library = library
        self._caller = caller
        self._cache = cache
        self._ledger = ledger
        self._experiment = resolved.experiment
        self._measured = measured
        self._max_calls = 1 if measured is not None else self._experiment.max_concurrency
        self._models = resolved.models
        self._judges = resolved.judges
        self._failures = 0
        self._search_failures = 0
        self._ready: deque[tuple[WorkInProgress, object]] = deque()
        self._calls: deque[PendingCall] = deque()
        self._waiting: dict[str, list[WorkInProgress]] = {}
        self._works = 0
        self._characters = 0
        self.stopped: str | None = None

    def stop(self, reason: str) -> None:
        """Start no more calls or items; calls in flight are still completed.

        Safe to call from a signal handler, since it only sets the reason.
        """
        if self.stopped is None:
            self.stopped = reason

    def run(self, items: Iterable[WorkItem]) -> Iterator[Outcome]:
        """Yield the outcome of each item when it is done; after a stop, only of items that need no further call.

        Raises:
            ResultsFileError: A reply could not be stored.
            MissingExtraError: A package that an item or a model needs is not installed.
        """
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
                try:
                    self._ready.append((WorkInProgress.begun(item, self._judges, self._measured), None))
                    self._works += 1
                except OpragError as error:
                    yield Outcome(item, error=error)
            elif self._caller.running:
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
        if self._measured is not None and (self._works or self._calls or self._caller.running):
            return False
        return (
            self.stopped is None
            and len(self._calls) < self._max_calls
            and self._works < _MAX_WAITING
            and self._characters < _MAX_CHARACTERS
        )

    def _advance(self, work: WorkInProgress, reply: object) -> Outcome | None:
        """Advance a method until it waits for a model or ends; return its outcome if it has ended."""
        try:
            while True:
                try:
                    request = work.body.send(reply)
                except StopIteration as stop:
                    answer: Answer = stop.value
                    return work.ended(answer)
                if isinstance(request, Generate | AskModel):
                    if not self._request_replies(work, request):
                        return None
                    reply = self._take_replies(work)
                else:
                    reply = self._fetch(work, request)
                    self._search_failures = 0
        except (ResultsFileError, MissingExtraError):
            raise
        except Exception as error:  # noqa: BLE001 - any exception is recorded as the failure of this item
            if not isinstance(error, OpragError) or isinstance(error, EmbeddingError):
                self._count_search_failure(error)
            return work.ended(None, error)

    def _count_search_failure(self, error: Exception) -> None:
        """Count failures that are not specific to an item, such as an unreachable embedder; stop after too many."""
        self._search_failures += 1
        if self._search_failures >= self._experiment.give_up_after:
            self.stop(
                f"the last {self._search_failures} searches failed, the last one with {named_error(error, _MAX_ERROR)}"
            )

    def _fetch(self, work: WorkInProgress, request: Retrieve | Embed | ReadSources) -> object:
        """The contexts, vectors or texts that a method requests."""
        item, embedded = work.outcome.item, work.outcome.embedded
        if isinstance(request, Retrieve):
            embedded += self._library.embeds(item.cell, request.questions)
        elif isinstance(request, Embed):
            embedded += [*request.questions, *request.texts]
        return self._library.fetch(item.cell, item.question, request)

    def _request_replies(self, work: WorkInProgress, request: Generate | AskModel) -> bool:
        """Look up the replies and queue the missing calls; return whether all replies are known."""
        cell = work.outcome.item.cell
        work.judging = isinstance(request, AskModel)
        model = request.model if isinstance(request, AskModel) else cell.caller or ""
        identity = self._models[model].identity
        work.requested = []
        work.replies = {}
        for prompt in request.prompts:
            key = self._key(identity, prompt, cell)
            work.requested.append((prompt.step, key))
            if key in work.replies:
                continue
            known = None if key in self._waiting else self._known(key)
            work.replies[key] = known
            if known is not None:
                work.outcome.reused = work.outcome.reused or not work.judging
            else:
                if key not in self._waiting:
                    self._queue(PendingCall(key, model, prompt, self._at_most(model, prompt)))
                self._waiting[key].append(work)
        if all(work.replies.values()):
            return True
        work.characters = sum(prompt.length for prompt in request.prompts)
        self._characters += work.characters
        return False

    def _key(self, identity: str, prompt: Prompt, cell: Cell) -> str:
        return prompt_key(identity, prompt, cell.repeat)

    def _queue(self, call: PendingCall) -> None:
        self._waiting[call.key] = []
        self._calls.append(call)

    def _known(self, key: str) -> Completion | None:
        (stored,) = self._cache.get(Reply, [key])
        return stored and stored.completion

    def _take_replies(self, work: WorkInProgress) -> tuple[Completion | None, ...]:
        """The replies in the order of the prompts; also records them as calls of the item."""
        self._characters -= work.characters
        work.characters = 0
        replies = tuple(work.replies[key] for _, key in work.requested)
        calls = work.outcome.metric_calls if work.judging else work.outcome.calls
        calls += [
            called
            for called, reply in zip(work.requested, replies, strict=True)
            if reply is not None and reply.error is None
        ]
        return replies

    def _begin_calls(self) -> None:
        while self._calls and self.stopped is None and self._caller.running < self._max_calls:
            call = self._calls[0]
            if (reason := self._ledger.refusal(call.at_most)) is not None:
                # Calls in flight may spend less than reserved, so only stop when none are left.
                if not self._caller.running:
                    self.stop(reason)
                return
            self._calls.popleft()
            self._ledger.reserve(call.at_most)
            self._caller.begin(call)

    def _at_most(self, model: str, prompt: Prompt) -> Spent:
        # Counting the tokens of a prompt is slow, so only do it if there is a spending limit.
        return Tariff.of(self._experiment, model).at_most(prompt) if self._ledger.limited else Spent(1)

    def _deliver(self, made: Made) -> None:
        """Deliver a reply to all items that wait for it."""
        call, completion, spent = made
        self._ledger.settle(call.at_most, spent)
        if isinstance(completion.error, MissingExtraError):
            raise completion.error
        if completion.error is None:
            self._failures = 0
        else:
            self._failures += 1
        if self._failures >= self._experiment.give_up_after:
            self.stop(
                f"the last {self._failures} calls failed, the last one with {named_error(completion.error, _MAX_ERROR)}"
            )
        for work in self._waiting.pop(call.key):
            if work.replies.get(call.key, completion) is not None:
                continue  # the item has already ended, since another of its calls failed
            work.replies[call.key] = completion
            if completion.error is not None or all(work.replies.values()):
                # A failed call ends the item, so do not wait for its other calls.
                self._ready.append((work, self._take_replies(work)))
                work.replies = {}
