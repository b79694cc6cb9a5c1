"""Run methods: the requests of a method, and the driver that performs them with the components of a framework.

A method is a generator that yields requests and receives their results. The same generator therefore works for sync and
async code, every framework, single questions and batches, and live and cached replies.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, chain
from typing import Any, ClassVar

from oprag._internal.masking import describe, masked_error
from oprag._internal.sync_async import END, Emit, Items, Limit, Step, Steps, concurrently
from oprag._internal.warn import warn
from oprag.chunk import changed
from oprag.context import Context
from oprag.embedding.vector_cache import VectorCache
from oprag.errors import EmbeddingError, ModelError, ModelWarning
from oprag.methods.answer import Answer, Call, Completion, Result, Usage
from oprag.methods.prompts import Prompt
from oprag.methods.registry import MethodFunction, find_method
from oprag.methods.replies import reply_text, without_reasoning
from oprag.methods.task import Task
from oprag.methods.window import Room, cut_note, within
from oprag.positions.source_reader import SourceReader, read_with

__all__ = [
    "CUT_SHORT",
    "EMPTY",
    "Answering",
    "Backend",
    "Body",
    "Collected",
    "Embed",
    "Generate",
    "ReadSources",
    "Request",
    "Retrieve",
    "Shown",
    "Together",
    "Vectors",
    "answering",
    "completed",
    "drive",
    "drive_each",
    "flattened",
]

CUT_SHORT = "a reply was cut short at the model's limit of output tokens"
EMPTY = "the model's reply was empty"
"""Notes of answers; `oprag.compare` counts stored answers by their text."""

_CUT_SHORT = {"length", "model_length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
"""Finish reasons of truncated replies: "model_length" is Mistral's, the last is Anthropic's for a full context."""

# The requests of a method.


@dataclass(frozen=True)
class _Request:
    """What a method needs from a driver."""

    kinds: ClassVar[Mapping[str, Any]]
    """The type of the items of each field that is a tuple; requests are merged by joining these."""

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            values = getattr(self, name)
            if not isinstance(values, tuple) or not all(isinstance(value, kind) for value in values):
                raise TypeError(f"{name} must be a tuple of {kind.__name__}, got {describe(values)}")


@dataclass(frozen=True)
class Retrieve(_Request):
    """Retrieve the context of each question; the result is a tuple of `Context`.

    Attributes:
        questions: The questions.
        rooms: The tokens left for each context in the prompt that it is for, from `Task.room`, or None; contexts are
            shortened to them. By default, none are.

    Raises:
        TypeError: The questions are not a tuple of strings.
    """

    questions: tuple[str, ...]
    rooms: tuple[Room | None, ...] = ()

    kinds: ClassVar = {"questions": str, "rooms": Room | None}

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rooms", self.rooms or (None,) * len(self.questions))

    def fitted(self, contexts: Iterable[Context]) -> tuple[Context, ...]:
        """Shorten contexts to their rooms.

        Args:
            contexts: One context per question.

        Raises:
            BudgetError: No chunk of a context fits.
        """
        both = zip(contexts, self.rooms, strict=True)
        return tuple([context if room is None else within(context, room) for context, room in both])


@dataclass(frozen=True)
class Generate(_Request):
    """Call the model with all prompts concurrently; the result is a tuple of `Completion`.

    A failed call has an `error` and an empty text; with `on_error="raise"`, the error is raised to the user and never
    reaches the method.

    Attributes:
        prompts: The prompts.
        final: Whether the reply is the answer, so that its tokens may be streamed to the user.
        hold: With `final`: whether a reply that starts with a given text may turn out not to be the answer; streaming
            starts when this returns False.

    Raises:
        TypeError: The prompts are not a tuple of `Prompt` objects, as returned by `Task.prompt`.
    """

    prompts: tuple[Prompt, ...]
    final: bool = False
    hold: Callable[[str], bool] | None = None

    kinds: ClassVar = {"prompts": Prompt}


@dataclass(frozen=True)
class Embed(_Request):
    """Embed questions and texts; the result is the vectors of the questions and the vectors of the texts.

    Attributes:
        questions: Texts to embed as questions.
        texts: Texts to embed as documents.

    Raises:
        TypeError: The questions or texts are not a tuple of strings.
    """

    questions: tuple[str, ...]
    texts: tuple[str, ...]

    kinds: ClassVar = {"questions": str, "texts": str}


@dataclass(frozen=True)
class ReadSources(_Request):
    """Read the full text of sources; the result is a tuple of strings.

    Attributes:
        sources: The names of retrieved sources.

    Raises:
        TypeError: The names are not a tuple of strings.
    """

    sources: tuple[str, ...]

    kinds: ClassVar = {"sources": str}


@dataclass(frozen=True)
class Together:
    """Run other bodies concurrently; the result is a tuple of their results.

    Attributes:
        bodies: The bodies, not yet started.
    """

    bodies: tuple[Body, ...]


Request = Retrieve | Generate | Embed | ReadSources
"""A request that a driver performs."""

Body = Generator[Request | Together, Any, Result]
"""A running method: the generator for one question."""


# What a framework provides.

Vectors = tuple[Sequence[Any], Sequence[Any]]
"""One vector per question, and one per text."""


@dataclass(kw_only=True)
class Backend(ABC):
    """The components of a framework that answer one question; errors of the model are returned in the `Completion`."""

    limit: Limit  # of concurrent calls
    reader: SourceReader | None = None  # reads the full text of sources, if available
    found: dict[str, Context] = field(default_factory=dict)  # cache of contexts by question
    # Replies by prompt, which are reused instead of calling the model.
    known: dict[Prompt, Completion] = field(default_factory=dict)

    @abstractmethod
    def find(self, question: str) -> Steps[Context]:
        """Search for a question, and build its context."""

    @abstractmethod
    def call(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model; may raise any error."""

    @abstractmethod
    def embedding(self) -> tuple[Any, VectorCache]:
        """The `oprag.Embedder`, and the cache of its vectors."""

    def opened(self, prompt: Prompt) -> tuple[Step, Collected] | None:  # noqa: ARG002
        """Open a stream of the model's reply, and what collects it; None (the default) if it is not streamed."""
        return None

    def retrieve(self, question: str) -> Steps[Context]:
        """Retrieve the context of a question, once."""
        if question not in self.found:
            self.found[question] = yield from self.find(question)
        return self.found[question]

    def complete(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model, and return its reply or its error."""
        if self.known and prompt in self.known:
            return self.known[prompt]
        return (yield from completed(self.call(prompt)))

    def stream(self, prompt: Prompt, hold: Callable[[str], bool] | None) -> Steps[Completion]:
        """Call the model, and emit its reply in pieces once it is known to be the answer; first an empty one."""
        started = time.perf_counter()
        collected: Collected | None = None
        held, streamed = "", False
        try:
            opened = self.opened(prompt)
            if opened is None:
                return (yield from self.complete(prompt))
            opening, collected = opened
            chunks = Items((yield opening))
            try:
                yield Emit("")
                while (chunk := (yield chunks.following)) is not END:
                    text = collected.add(chunk)
                    if not streamed:
                        held += text
                        # Whitespace alone is not an answer: the method may fall back to an earlier one.
                        streamed = bool(held.strip()) and not (hold is not None and hold(held))
                        text = held if streamed else ""
                    if text:
                        yield Emit(text)
            finally:
                yield chunks.closing
            reply = collected.completion()
        except Exception as error:  # noqa: BLE001 - as in `completed`
            reply = Completion(error=error, usage=None if collected is None else collected.usage)
        return replace(reply, seconds=time.perf_counter() - started, streamed=streamed)

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        """Return one vector per question, and one per text."""
        # Imports NumPy.
        from oprag.stores.vectors import embedded_together

        vectors: Any = yield from embedded_together(*self.embedding(), questions, texts)
        for given, wanted in zip(vectors, (questions, texts), strict=True):
            if len(given) != len(wanted):
                raise EmbeddingError(f"the embedder returned {len(given)} vectors for {len(wanted)} texts", given)
        return vectors  # type: ignore[no-any-return]

    def read(self, source: str) -> Steps[str]:
        """Read the full text of a source."""
        return (yield Step(lambda: read_with(self.reader, source)))  # type: ignore[no-any-return]


class Collected(ABC):
    """Collects the chunks of a streamed reply."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.usage: Usage | None = None
        self.finish_reason: str | None = None

    @abstractmethod
    def add(self, chunk: Any) -> str:
        """Add a chunk, and return its text."""

    def completion(self) -> Completion:
        """The whole reply."""
        return Completion("".join(self.texts), usage=self.usage, finish_reason=self.finish_reason)


def completed(call: Steps[Completion]) -> Steps[Completion]:
    """Call a model, and return its reply or its error, with the time that it took."""
    started = time.perf_counter()
    try:
        reply = yield from call
    except Exception as error:  # noqa: BLE001 - clients raise all kinds of errors, which are recorded
        reply = Completion(error=error)
    return changed(reply, seconds=time.perf_counter() - started)


# One question.

Answering = Generator[Request, Any, Answer]
"""Yields requests for the driver, and returns the answer."""

Shown = Context | str | Answer
"""Values that a driver emits: contexts when they are retrieved, pieces of the answer, and finally the answer.

An empty piece means that the stream of the model has been opened. The text of an answer that was not streamed is one
piece; an object of a model has none."""


def drive(
    task: Task, backend: Backend, *, method: MethodFunction | None = None, streaming: bool = False
) -> Steps[Answer]:
    """Answer a question, and emit contexts, pieces of the answer and the answer (see `Shown`)."""
    failed = (lambda completion: completion.error is not None) if task.options.on_error == "raise" else None
    reply: Any = None
    streamed = False
    with closing(answering(task, method)) as requests:
        while True:
            try:
                request = requests.send(reply)
            except StopIteration as stop:
                answer: Answer = stop.value
                break
            if isinstance(request, Retrieve):
                searches = [partial(backend.retrieve, question) for question in request.questions]
                reply = request.fitted((yield from concurrently(searches, backend.limit)))
                for context in reply:
                    yield Emit(context)
            elif isinstance(request, Generate):
                if streaming and request.final and len(request.prompts) == 1:
                    final = partial(backend.stream, request.prompts[0], request.hold)
                    reply = yield from concurrently([final], backend.limit)
                    streamed = streamed or reply[0].streamed
                else:
                    calls = [partial(backend.complete, prompt) for prompt in request.prompts]
                    reply = yield from concurrently(calls, backend.limit, failed)
            elif isinstance(request, Embed):
                reply = yield from backend.embed(request.questions, request.texts)
            else:
                names = list(dict.fromkeys(request.sources))
                texts = yield from concurrently([partial(backend.read, name) for name in names], backend.limit)
                reply = tuple(map(dict(zip(names, texts, strict=True)).__getitem__, request.sources))
    if answer.parsed is None and not streamed:
        yield Emit(answer.text)
    yield Emit(answer)
    return answer


def drive_each(questions: Iterable[tuple[Task, Backend]]) -> Steps[list[Answer]]:
    """Answer with several methods, which share a context and a standalone question, made before any is timed."""
    answers: list[Answer] = []
    found: dict[str, Context] = {}
    known: dict[Prompt, Completion] = {}
    for task, backend in questions:
        backend.found, backend.known = found, known
        question = task.question
        if task.follows_up:
            prompt = task.prompt("condense")
            known[prompt] = yield from backend.complete(prompt)
            question = _standalone_in(known[prompt]) or question
        yield from backend.retrieve(question)
        answers.append((yield from drive(task, backend)))
    return answers


def answering(task: Task, method: MethodFunction | None = None) -> Answering:
    """Answer a question; yields requests for a driver.

    Args:
        task: The question.
        method: The method; the method of the options by default.

    Raises:
        OptionError: The method is unknown.
        ModelError: A call failed, and `on_error="raise"`, part of its reply was already streamed, or no answer is left
            without it.
    """
    started = time.perf_counter()
    name = task.options.method
    run = method or find_method(name).run
    calls: list[Call] = []
    notes: list[str] = []

    def ask(request: Request) -> Generator[Request, Any, Any]:
        """Yield a request, and record its reply."""
        reply = yield request
        if isinstance(request, Generate):
            calls.extend(_calls(request, reply, task))
        elif isinstance(request, Retrieve):
            rooms = zip(reply, request.rooms, strict=True)
            notes.extend(note for context, room in rooms if room is not None and (note := cut_note(context, room)))
        return reply

    standalone = None
    if task.follows_up:
        (reply,) = yield from ask(Generate((task.prompt("condense"),)))
        standalone = _standalone_in(reply)
        if standalone is None:
            notes.append("the follow-up could not be rewritten as a standalone question and was used unchanged")
    body: Any = run(task if standalone is None else replace(task, question=standalone))
    if not isinstance(body, Generator):
        raise TypeError(f"method {name!r} must be a generator function that yields requests")
    result: Any = yield from flattened(body, ask)
    if not isinstance(result, Result):
        raise TypeError(f"method {name!r} must return a Result, got {type(result).__name__}")
    return Answer(
        question=task.question,
        text=result.text,
        method=name,
        contexts=result.contexts,
        calls=tuple(calls),
        parsed=result.parsed,
        standalone_question=standalone,
        route=result.route,
        answers=result.answers,
        passages=result.passages,
        notes=(*result.notes, *notes, *_notes_on_calls(result, calls)),
        seconds=time.perf_counter() - started,
        cited=task.options.cite,
    )


def _standalone_in(reply: Completion) -> str | None:
    """The standalone question in the reply to the "condense" prompt; None if the reply is empty."""
    return without_reasoning(reply_text(reply, "condense")).strip() or None


def _calls(request: Generate, replies: Sequence[Completion | None], task: Task) -> list[Call]:
    """The calls of a request; raise if one failed and cannot be skipped."""
    # A reply is None if its prompt was not sent because another call had failed.
    both = zip(request.prompts, replies, strict=True)
    counter = task.context_options.count_tokens
    calls = [Call(prompt, reply, counter) for prompt, reply in both if reply is not None]
    for call in calls:
        if call.error is not None and (task.options.on_error == "raise" or call.completion.streamed):
            raise ModelError(_described(call, request.prompts), call) from call.error
    return calls


def _notes_on_calls(result: Result, calls: Sequence[Call]) -> list[str]:
    """Notes on failed calls and truncated or empty replies; raise if failed calls left no answer."""
    notes: list[str] = []
    failed = [call for call in calls if call.error is not None]
    if failed:
        number = f"{len(failed)} of {len(calls)} calls failed"
        first = f"the first: {_described(failed[0], [call.prompt for call in calls])}"
        if not result.empty and result.parsed is None and not result.text.strip():
            raise ModelError(f"{number}, so there is no answer; {first}", failed[0]) from failed[0].error
        notes.append(f"{number} and were skipped")
        warn(f"{notes[-1]}; {first}", ModelWarning)
    if any((call.completion.finish_reason or "").casefold() in _CUT_SHORT for call in calls):
        notes.append(CUT_SHORT)
    if (
        calls
        and not failed
        and not without_reasoning(calls[-1].reply).strip()
        and not without_reasoning(result.text).strip()
    ):
        notes.append(EMPTY)
    return notes


def _described(call: Call, prompts: Sequence[Prompt]) -> str:
    same_step = [prompt for prompt in prompts if prompt.step == call.step]
    number = next(number for number, prompt in enumerate(same_step, 1) if prompt is call.prompt)
    which = f" ({number} of {len(same_step)})" if len(same_step) > 1 else ""
    # Join the lines of multi-line messages.
    reason = " ".join(masked_error(call.error).split())
    return f"the model call {call.step!r}{which} failed: {reason}"


# Bodies that run together.

_Ask = Callable[[Request], Generator[Request, Any, Any]]
"""Yields a request, and returns its reply."""


def _asked(request: Request) -> Generator[Request, Any, Any]:
    return (yield request)


def flattened(body: Body, ask: _Ask = _asked) -> Generator[Request, Any, Result]:
    """Wrap a body so that it yields only requests, through `ask`; `Together` is run here."""
    reply: Any = None
    with closing(body):
        while True:
            try:
                request = body.send(reply)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            if isinstance(request, Together):
                reply = yield from _together(request.bodies, ask)
            elif isinstance(request, Request):
                reply = yield from ask(request)
            else:
                raise TypeError(f"a method must yield requests, such as Generate, got {describe(request)}")


def _together(bodies: tuple[Body, ...], ask: _Ask) -> Generator[Request, Any, tuple[Result, ...]]:
    """Run bodies in rounds of one request each, merged by kind: prompts of all bodies are sent under one limit."""
    running = [flattened(body) for body in bodies]
    results: dict[int, Result] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(running)))
    try:
        while replies:
            pending: dict[int, Request] = {}
            for number, reply in replies.items():
                try:
                    pending[number] = running[number].send(reply)
                except StopIteration as stop:
                    results[number] = stop.value
            replies = {}
            for kind in (Retrieve, ReadSources, Embed, Generate):
                group = {number: request for number, request in pending.items() if isinstance(request, kind)}
                if group:
                    replies |= zip(group, (yield from _merged([*group.values()], ask)), strict=True)
    finally:
        for body in running:
            body.close()
    return tuple(results[number] for number in range(len(running)))


def _merged(requests: Sequence[Request], ask: _Ask) -> Generator[Request, Any, Iterable[Any]]:
    """Merge requests of the same kind into one, and split its reply among them."""
    kind: Any = type(requests[0])
    columns = {name: [getattr(request, name) for request in requests] for name in kind.kinds}
    # Not final: the last reply of an inner body is not the answer to the user's question, so it is not streamed.
    reply = yield from ask(kind(**{name: tuple(chain.from_iterable(column)) for name, column in columns.items()}))
    replies = reply if kind is Embed else (reply,)
    split = [_split(values, column) for values, column in zip(replies, columns.values(), strict=False)]
    return zip(*split, strict=True) if kind is Embed else split[0]


def _split(values: Any, column: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Split values into those of each request."""
    ends = list(accumulate(map(len, column)))
    return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]
