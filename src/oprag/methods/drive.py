"""Performing what methods ask for: one loop in threads, one in tasks, over what a framework brings."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from typing import Any, Protocol

from oprag.context import Context
from oprag.errors import EmbeddingError
from oprag.methods.answer import Answer
from oprag.methods.answering import Answering, standalone_in
from oprag.methods.effects import Embed, Generate, Request, Retrieve
from oprag.methods.model_calls import Completion, Prompt
from oprag.methods.task import Task
from oprag.side_by_side import Limit, aside_by_side, side_by_side

__all__ = ["AsyncBackend", "Backend", "Shown", "adrive", "aprepare", "drive", "prepare"]

Shown = Context | str | Answer
"""What a driver gives while it runs: contexts as they are found, pieces of the answer, and the answer itself last.

An empty piece says that the model has been asked for it."""


class Backend(Protocol):
    """What a framework brings: a retriever, a model, embeddings, and the sources.

    Errors of the model are not raised: they stand in the `Completion`. Those of all others are.

    Attributes:
        known: Replies by their prompt; what is in it is not asked for again.
    """

    known: dict[Prompt, Completion]

    def retrieve(self, question: str) -> Context:
        """The context of a question."""
        ...

    def complete(self, prompt: Prompt) -> Completion:
        """The model's reply."""
        ...

    def stream(self, prompt: Prompt) -> Iterator[str | Completion]:
        """The pieces of the model's reply as they come, and then all of it.

        Where a call begins before its first piece comes, an empty piece may say so.
        """
        ...

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> tuple[Sequence[Any], Sequence[Any]]:
        """A vector for each question, and one for each text."""
        ...

    def read(self, source: str) -> str:
        """The whole text of a source."""
        ...


class AsyncBackend(Protocol):
    """As `Backend`, async."""

    known: dict[Prompt, Completion]

    async def retrieve(self, question: str) -> Context:
        """The context of a question."""
        ...

    async def complete(self, prompt: Prompt) -> Completion:
        """The model's reply."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[str | Completion]:
        """The pieces of the model's reply as they come, and then all of it.

        Where a call begins before its first piece comes, an empty piece may say so.
        """
        ...

    async def embed(self, questions: Sequence[str], texts: Sequence[str]) -> tuple[Sequence[Any], Sequence[Any]]:
        """A vector for each question, and one for each text."""
        ...

    async def read(self, source: str) -> str:
        """The whole text of a source."""
        ...


def drive(
    requests: Answering, backend: Backend, limit: Limit, *, streaming: bool = False, stop_early: bool = True
) -> Iterator[Shown]:
    """Perform the requests of one question.

    Args:
        requests: The question at work.
        backend: What the framework brings.
        limit: How many calls may be made at the same time.
        streaming: Whether to give the answer in pieces as the model writes it.
        stop_early: Whether a failed call is reason not to begin others.

    Yields:
        The contexts, the pieces of the answer when it is streamed, and the answer.

    Raises:
        ModelError: A call failed and is not to be skipped.
        BudgetError: A prompt does not fit the model's context window.
        EmbeddingError: The embeddings gave vectors of another number.
    """
    failed = _failed if stop_early else None
    idle = _Idle()
    reply: Any = None
    with closing(requests):
        while True:
            request = _next(requests, reply)
            if isinstance(request, Answer):
                yield idle.taken_off(request)
                return
            if isinstance(request, Generate):
                if streaming and _is_streamed(request):
                    stream = _Stream(request, idle)
                    with limit.held(), closing(backend.stream(request.prompts[0])) as pieces:  # type: ignore[type-var]
                        for piece in pieces:
                            text = stream.take(piece)
                            if text or piece == "":
                                with idle:
                                    yield text
                    reply = stream.completions
                else:
                    reply = side_by_side(backend.complete, request.prompts, limit, failed)
            elif isinstance(request, Retrieve):
                found: Any = side_by_side(backend.retrieve, request.questions, limit)
                reply = request.fitted(found)
                for context in reply:
                    with idle:
                        yield context
            elif isinstance(request, Embed):
                reply = _counted(request, backend.embed(request.questions, request.texts))
            else:
                reply = side_by_side(backend.read, request.sources, limit)


async def adrive(
    requests: Answering, backend: AsyncBackend, limit: Limit, *, streaming: bool = False, stop_early: bool = True
) -> AsyncIterator[Shown]:
    """As `drive`, async; cancelling it cancels the calls that it waits for."""
    failed = _failed if stop_early else None
    idle = _Idle()
    reply: Any = None
    with closing(requests):
        while True:
            request = _next(requests, reply)
            if isinstance(request, Answer):
                yield idle.taken_off(request)
                return
            if isinstance(request, Generate):
                if streaming and _is_streamed(request):
                    stream = _Stream(request, idle)
                    async with limit.aheld(), aclosing(backend.stream(request.prompts[0])) as pieces:  # type: ignore[type-var]
                        async for piece in pieces:
                            text = stream.take(piece)
                            if text or piece == "":
                                with idle:
                                    yield text
                    reply = stream.completions
                else:
                    reply = await aside_by_side(backend.complete, request.prompts, limit, failed)
            elif isinstance(request, Retrieve):
                found: Any = await aside_by_side(backend.retrieve, request.questions, limit)
                reply = request.fitted(found)
                for context in reply:
                    with idle:
                        yield context
            elif isinstance(request, Embed):
                reply = _counted(request, await backend.embed(request.questions, request.texts))
            else:
                reply = await aside_by_side(backend.read, request.sources, limit)


def prepare(task: Task, backend: Backend) -> None:
    """Do what methods that are compared share, before the clock of one of them runs.

    A follow-up is made to stand by itself, and what it means is searched for; the backend remembers both.
    """
    question = task.question
    if task.follows_up:
        prompt = task.prompt("condense")
        reply = backend.known[prompt] = backend.complete(prompt)
        question = standalone_in(reply) or question
    backend.retrieve(question)


async def aprepare(task: Task, backend: AsyncBackend) -> None:
    """As `prepare`, async."""
    question = task.question
    if task.follows_up:
        prompt = task.prompt("condense")
        reply = backend.known[prompt] = await backend.complete(prompt)
        question = standalone_in(reply) or question
    await backend.retrieve(question)


def _next(requests: Answering, reply: Any) -> Request | Answer:
    """What is to be done next, or the answer."""
    try:
        return requests.send(tuple(reply) if isinstance(reply, list) else reply)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


def _failed(completion: Completion) -> bool:
    return completion.error is not None


def _counted(request: Embed, vectors: tuple[Sequence[Any], Sequence[Any]]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The vectors, one for each text."""
    given: Any
    for texts, given in zip((request.questions, request.texts), vectors, strict=True):
        number = 0 if given is None else len(given)
        if number != len(texts):
            raise EmbeddingError(f"the embeddings gave {number} vectors for {len(texts)} texts", given)
    return vectors


def _is_streamed(request: Generate) -> bool:
    return request.final and len(request.prompts) == 1


class _Idle:
    """The time that whoever reads takes between two pieces, which is none of the answer's."""

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


class _Stream:
    """The reply that a user may see, held back while it may not be the answer."""

    def __init__(self, request: Generate, idle: _Idle) -> None:
        self._idle = idle
        self._idle_before = idle.seconds
        self._hold = request.hold
        self._held = ""
        self._shown = False
        self.completions: tuple[Completion, ...] = ()

    def take(self, piece: str | Completion) -> str:
        """What can be shown now."""
        if isinstance(piece, Completion):
            seconds = piece.seconds - (self._idle.seconds - self._idle_before)
            self.completions = (replace(piece, shown=self._shown, seconds=max(0.0, seconds)),)
            return ""
        self._held += piece
        # Nothing but white space is no answer; a method may then fall back on an earlier one.
        if not self._shown and (not self._held.strip() or (self._hold is not None and self._hold(self._held))):
            return ""
        self._shown = True
        text, self._held = self._held, ""
        return text
