"""Performing what methods ask for with what a framework brings, in steps for sync and async."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from oprag.context import Context
from oprag.errors import EmbeddingError
from oprag.methods.answer import Answer
from oprag.methods.answering import Answering, standalone_in
from oprag.methods.effects import Embed, Generate, Request, Retrieve
from oprag.methods.model_calls import Completion, Prompt
from oprag.methods.task import Task
from oprag.steps import Emit, Limit, Parallel, Step, Steps

__all__ = ["Backend", "Shown", "Vectors", "drive", "prepare", "read_stream"]

Shown = Context | str | Answer
"""What a driver emits: contexts as they are found, pieces of the answer, and the answer itself last.

An empty piece says that the model has been asked for it."""

Vectors = tuple[Sequence[Any], Sequence[Any]]
"""A vector for each question, and one for each text."""

_END = object()


class Backend(Protocol):
    """What a framework brings: a retriever, a model, embeddings, and the sources.

    Errors of the model are not raised: the `Completion` has them. Those of all others are.

    Attributes:
        known: Replies by their prompt, which are not asked for again.
    """

    known: dict[Prompt, Completion]

    def retrieve(self, question: str) -> Steps[Context]:
        """The context of a question."""
        ...

    def complete(self, prompt: Prompt) -> Steps[Completion]:
        """The model's reply."""
        ...

    def stream(self, prompt: Prompt) -> Steps[Completion]:
        """The model's reply; emits its pieces as they come.

        Where a call begins before its first piece comes, an empty piece may say so.
        """
        ...

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        """A vector for each question, and one for each text."""
        ...

    def read(self, source: str) -> Steps[str]:
        """The whole text of a source."""
        ...


def drive(
    requests: Answering, backend: Backend, limit: Limit, *, streaming: bool = False, stop_early: bool = True
) -> Steps[Answer]:
    """Perform the requests of one question; emits what is `Shown`, the answer too.

    Args:
        requests: The question at work.
        backend: What the framework brings.
        limit: How many calls may be made at the same time.
        streaming: Whether to emit the answer in pieces as the model writes it.
        stop_early: Whether a failed call is reason not to begin others.

    Returns:
        The answer.

    Raises:
        ModelError: A call failed and is not to be skipped.
        BudgetError: A prompt does not fit the model's context window.
        EmbeddingError: The embeddings gave vectors of another number.
    """
    failed = _failed if stop_early else None
    idle = _Idle()
    reply: Any = None
    with closing(requests):
        while not isinstance(request := _next(requests, reply), Answer):
            if isinstance(request, Generate):
                if streaming and request.final and len(request.prompts) == 1:
                    reply = ((yield from _streamed(request, backend, limit, idle)),)
                else:
                    bodies = [partial(backend.complete, prompt) for prompt in request.prompts]
                    reply = tuple((yield Parallel(bodies, limit, failed)))
            elif isinstance(request, Retrieve):
                found = yield Parallel([partial(backend.retrieve, one) for one in request.questions], limit)
                reply = tuple(request.fitted(found))
                for context in reply:
                    with idle:
                        yield Emit(context)
            elif isinstance(request, Embed):
                reply = _counted(request, (yield from backend.embed(request.questions, request.texts)))
            else:
                reply = tuple((yield Parallel([partial(backend.read, one) for one in request.sources], limit)))
    answer = idle.taken_off(request)
    yield Emit(answer)
    return answer


def prepare(task: Task, backend: Backend) -> Steps[None]:
    """Do what methods that are compared share, before the clock of one of them runs.

    A follow-up is made to stand by itself, and what it means is searched for; the backend remembers both.
    """
    question = task.question
    if task.follows_up:
        prompt = task.prompt("condense")
        reply = backend.known[prompt] = yield from backend.complete(prompt)
        question = standalone_in(reply) or question
    yield from backend.retrieve(question)


def read_stream(opened: Step, take: Callable[[Any], str]) -> Steps[None]:
    """Read a model's stream to its end, and close it whatever happens; for a `Backend`.

    Emits an empty piece when the stream is open, and then the text of each chunk.

    Args:
        opened: Opens the stream: an iterable, or an async one.
        take: Returns the text of a chunk.
    """
    opened_stream = yield opened
    chunks = aiter(opened_stream) if hasattr(opened_stream, "__aiter__") else iter(opened_stream)
    following = Step(lambda: next(chunks, _END), lambda: anext(chunks, _END))
    try:
        yield Emit("")
        while (chunk := (yield following)) is not _END:
            if text := take(chunk):
                yield Emit(text)
    finally:
        yield Step(lambda: _close(chunks), lambda: _close_async(chunks))


def _close(chunks: Any) -> None:
    """Close an iterator that can be closed."""
    if (close := getattr(chunks, "close", None)) is not None:
        close()


async def _close_async(chunks: Any) -> None:
    if (close := getattr(chunks, "aclose", None)) is not None:
        await close()


def _next(requests: Answering, reply: Any) -> Request | Answer:
    """What is to be done next, or the answer."""
    try:
        return requests.send(reply)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


def _failed(completion: Completion) -> bool:
    return completion.error is not None


def _counted(request: Embed, vectors: Vectors) -> Vectors:
    """The vectors, one for each text."""
    given: Any
    for texts, given in zip((request.questions, request.texts), vectors, strict=True):
        number = 0 if given is None else len(given)
        if number != len(texts):
            raise EmbeddingError(f"the embeddings gave {number} vectors for {len(texts)} texts", given)
    return vectors


class _Idle:
    """The time that the caller takes between two pieces, which is not the answer's."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since = 0.0

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._since

    def taken_off(self, answer: Answer) -> Answer:
        """The answer, with its own seconds alone."""
        return replace(answer, seconds=max(0.0, answer.seconds - self.seconds))


def _streamed(request: Generate, backend: Backend, limit: Limit, idle: _Idle) -> Steps[Completion]:
    """The reply that the user reads while it is written; pieces are held back while it may not be the answer."""
    idle_before, held, shown = idle.seconds, "", False
    place = yield limit.taken()
    try:
        stream = backend.stream(request.prompts[0])
        step = next(stream)
        while True:
            result = None
            try:
                if not isinstance(step, Emit):
                    result = yield step
                elif step.value:
                    held += step.value
                    # Nothing but white space is not an answer; a method may then fall back on an earlier one.
                    if shown or (held.strip() and not (request.hold is not None and request.hold(held))):
                        shown, text, held = True, held, ""
                        with idle:
                            yield Emit(text)
                else:
                    with idle:
                        yield step
            except BaseException as error:  # noqa: BLE001 - it belongs to the stream, which closes itself
                step = stream.throw(error)
            else:
                step = stream.send(result)
    except StopIteration as stop:
        completion: Completion = stop.value
    finally:
        place.release()
    seconds = max(0.0, completion.seconds - (idle.seconds - idle_before))
    return replace(completion, shown=shown, seconds=seconds)
