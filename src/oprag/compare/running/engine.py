"""Working on many questions and cells at a time, so that identical model calls are made once.

A method is a generator that yields what it needs (`oprag.methods.effects`). So thousands of them can wait at a time,
without a thread each, and all that wait for the same reply get it from one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from oprag.compare.db.cache import WorkCache
from oprag.compare.db.keys import prompt_key
from oprag.compare.db.records import Reply, Spent
from oprag.compare.db.text import named_error
from oprag.compare.running.ledger import Ledger, Tariff
from oprag.compare.running.library import Library
from oprag.compare.running.model_caller import Call, Caller, Made
from oprag.compare.running.resolved import ResolvedExperiment
from oprag.compare.running.work_item import AskModel, Outcome, WorkInProgress, WorkItem
from oprag.errors import EmbeddingError, MissingExtraError, OpragError, ResultsFileError
from oprag.methods.answer import Answer
from oprag.methods.effects import Embed, Generate, Request, Retrieve
from oprag.methods.model_calls import Completion, Prompt

__all__ = ["Engine"]

# Items that wait for replies at the same time; each holds little more than a context.
_MOST_WAITING = 4_000
# Of prompts that wait for replies: whole documents are long, and each cell has its own copy.
_MOST_CHARACTERS = 200_000_000
_LONGEST = 500  # characters of an error, in the reason of a stop


class Engine:
    """Works on items until all are done, or it is stopped."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        library: Library,
        caller: Caller,
        cache: WorkCache,
        ledger: Ledger,
    ) -> None:
        self._library = library
        self._caller = caller
        self._cache = cache
        self._ledger = ledger
        self._experiment = resolved.experiment
        self._models = resolved.models
        self._judges = resolved.judges
        self._failures = 0
        self._unfound = 0
        self._ready: deque[tuple[WorkInProgress, object]] = deque()
        self._calls: deque[Call] = deque()
        self._waiting: dict[str, list[WorkInProgress]] = {}
        self._works = 0
        self._characters = 0
        self.stopped: str | None = None

    def stop(self, reason: str) -> None:
        """Make no more calls and begin no items; calls in flight still come in.

        A signal handler may call this between any two steps of the engine, so it changes nothing but the reason.
        """
        if self.stopped is None:
            self.stopped = reason

    def run(self, items: Iterable[WorkItem]) -> Iterator[Outcome]:
        """Yield the outcome of each item when it is done; after a stop, of those that need no further call.

        Raises:
            ResultsFileError: A reply could not be stored.
            MissingExtraError: A package that the items or a model need is not installed.
        """
        waiting = iter(items)
        while True:
            while self._ready:
                outcome = self._advance(*self._ready.popleft())
                if outcome is not None:
                    self._works -= 1
                    # The caller writes it to the file; meanwhile the threads have calls to make.
                    self._begin_calls()
                    yield outcome
            self._begin_calls()
            if self._wants_more and (item := next(waiting, None)) is not None:
                try:
                    self._ready.append((WorkInProgress.begun(item, self._judges), None))
                    self._works += 1
                except OpragError as error:
                    yield Outcome(item, error=error)
            elif self._caller.running:
                for made in self._caller.take():
                    self._take(made)
            else:
                break
        for works in self._waiting.values():
            for work in works:
                work.body.close()

    @property
    def _wants_more(self) -> bool:
        """Whether to begin further items, so that no thread is idle."""
        return (
            self.stopped is None
            and len(self._calls) < self._experiment.max_concurrency
            and self._works < _MOST_WAITING
            and self._characters < _MOST_CHARACTERS
        )

    def _advance(self, work: WorkInProgress, reply: object) -> Outcome | None:
        """Send a method what it asked for, until it waits for a model or is done; return its outcome if it is done."""
        try:
            while True:
                try:
                    request = work.body.send(reply)
                except StopIteration as stop:
                    answer: Answer = stop.value
                    return work.ended(answer)
                if isinstance(request, Generate | AskModel):
                    if not self._asked(work, request):
                        return None
                    reply = self._taken(work)
                else:
                    reply = self._fetched(work, request)
                    self._unfound = 0
        except (ResultsFileError, MissingExtraError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to this item, and is written down
            if not isinstance(error, OpragError) or isinstance(error, EmbeddingError):
                self._note_unfound(error)
            return work.ended(None, error)

    def _note_unfound(self, error: Exception) -> None:
        """Count failures that are not the fault of the item, such as an embedder that cannot be reached."""
        self._unfound += 1
        if self._unfound >= self._experiment.give_up_after:
            self.stop(f"the last {self._unfound} searches failed, the last one with {named_error(error, _LONGEST)}")

    def _fetched(self, work: WorkInProgress, request: Request) -> object:
        """The contexts, vectors or texts that a method asks for."""
        item, embedded = work.outcome.item, work.outcome.embedded
        if isinstance(request, Retrieve):
            embedded += self._library.embeds(item.cell, request.questions)
            return tuple(self._library.contexts(item.cell, item.question, request.questions))
        if isinstance(request, Embed):
            embedded += [*request.questions, *request.texts]
            return self._library.vectors(item.cell, request.questions, request.texts)
        assert not isinstance(request, Generate)  # noqa: S101 - told apart before
        return tuple(self._library.whole_text(item.cell, name) for name in request.sources)

    def _asked(self, work: WorkInProgress, request: Generate | AskModel) -> bool:
        """Look up the replies and queue the missing calls; return whether all replies are known."""
        cell = work.outcome.item.cell
        work.judging = isinstance(request, AskModel)
        model = request.model if isinstance(request, AskModel) else cell.model or ""
        identity = self._models[model].identity
        work.wanted = []
        work.replies = {}
        for prompt in request.prompts:
            key = prompt_key(identity, prompt, cell.repeat)
            work.wanted.append((prompt.step, key))
            if key in work.replies:
                continue
            known = None if key in self._waiting else self._known(key)
            work.replies[key] = known
            if known is None:
                if key not in self._waiting:
                    self._queue(work, Call(key, model, prompt, self._at_most(model, prompt)))
                self._waiting[key].append(work)
        if all(work.replies.values()):
            return True
        work.characters = sum(prompt.length for prompt in request.prompts)
        self._characters += work.characters
        return False

    def _queue(self, work: WorkInProgress, call: Call) -> None:  # noqa: ARG002 - Replay reads it
        self._waiting[call.key] = []
        self._calls.append(call)

    def _known(self, key: str) -> Completion | None:
        (stored,) = self._cache.get(Reply, [key])
        return stored and stored.completion

    def _taken(self, work: WorkInProgress) -> tuple[Completion | None, ...]:
        """The replies in the sequence of the prompts; they are recorded as calls of the item."""
        self._characters -= work.characters
        work.characters = 0
        replies = tuple(work.replies[key] for _, key in work.wanted)
        calls = work.outcome.metric_calls if work.judging else work.outcome.calls
        calls += [
            called
            for called, reply in zip(work.wanted, replies, strict=True)
            if reply is not None and reply.error is None
        ]
        return replies

    def _begin_calls(self) -> None:
        most = self._experiment.max_concurrency
        while self._calls and self.stopped is None and self._caller.running < most:
            call = self._calls[0]
            if (reason := self._ledger.refusal(call.at_most)) is not None:
                # Calls in flight may take less than was reserved for them; only what is spent is final.
                if not self._caller.running:
                    self.stop(reason)
                return
            self._calls.popleft()
            self._ledger.reserve(call.at_most)
            self._caller.begin(call)

    def _at_most(self, model: str, prompt: Prompt) -> Spent:
        # Counting the tokens of a prompt takes time, so only where there is a limit that they may exceed.
        return Tariff.of(self._experiment, model).at_most(prompt) if self._ledger.limited else Spent(1)

    def _take(self, made: Made) -> None:
        """Pass a reply on to all items that wait for it."""
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
                f"the last {self._failures} calls failed, the last one with {named_error(completion.error, _LONGEST)}"
            )
        for work in self._waiting.pop(call.key):
            if work.replies.get(call.key, completion) is not None:
                continue  # it has ended without this one, since another call had failed
            work.replies[call.key] = completion
            if completion.error is not None or all(work.replies.values()):
                # A failed call ends the question, so it does not wait for the others.
                self._ready.append((work, self._taken(work)))
                work.replies = {}
