"""Performing what methods ask for: one loop in threads, one in tasks, over what a framework brings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from typing import Any, Protocol

from oprag.context import Context
from oprag.methods.answer import Answer
from oprag.methods.answering import Answering
from oprag.methods.completion import Completion
from oprag.methods.effects import Embed, Generate, Request, Retrieve
from oprag.methods.message import Prompt
from oprag.side_by_side import Limit, aside_by_side, side_by_side

__all__ = ["AsyncBackend", "Backend", "Shown", "adrive", "drive"]

Shown = Context | str | Answer
"""What a driver gives while it runs: contexts as they are found, pieces of the answer, and the answer itself last."""


class Backend(Protocol):
    """What a framework brings: a retriever, a model, embeddings, and the sources.

    Errors of the model are not raised: they stand in the `Completion`. Those of all others are.
    """

    def retrieve(self, question: str) -> Context:
        """The context of a question."""
        ...

    def complete(self, prompt: Prompt) -> Completion:
        """The model's reply."""
        ...

    def stream(self, prompt: Prompt) -> Iterator[str | Completion]:
        """The pieces of the model's reply as they come, and then all of it."""
        ...

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> tuple[Sequence[Any], Sequence[Any]]:
        """A vector for each question, and one for each text."""
        ...

    def read(self, source: str) -> str:
        """The whole text of a source."""
        ...


class AsyncBackend(Protocol):
    """As `Backend`, async."""

    async def retrieve(self, question: str) -> Context:
        """The context of a question."""
        ...

    async def complete(self, prompt: Prompt) -> Completion:
        """The model's reply."""
        ...

    def stream(self, prompt: Prompt) -> AsyncIterator[str | Completion]:
        """The pieces of the model's reply as they come, and then all of it."""
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
    """
    failed = _failed if stop_early else None
    reply: Any = None
    with closing(requests):
        while True:
            request = _next(requests, reply)
            if isinstance(request, Answer):
                yield request
                return
            if isinstance(request, Generate):
                if streaming and _is_streamed(request):
                    stream = _Stream(request)
                    with limit.held(), closing(backend.stream(request.prompts[0])) as pieces:  # type: ignore[type-var]
                        for piece in pieces:
                            if text := stream.take(piece):
                                yield text
                    reply = stream.completions
                else:
                    reply = side_by_side(backend.complete, request.prompts, limit, failed)
            elif isinstance(request, Retrieve):
                reply = side_by_side(backend.retrieve, request.questions, limit)
                yield from reply
            elif isinstance(request, Embed):
                reply = backend.embed(request.questions, request.texts)
            else:
                reply = side_by_side(backend.read, request.sources, limit)


async def adrive(
    requests: Answering, backend: AsyncBackend, limit: Limit, *, streaming: bool = False, stop_early: bool = True
) -> AsyncIterator[Shown]:
    """As `drive`, async; cancelling it cancels the calls that it waits for."""
    failed = _failed if stop_early else None
    reply: Any = None
    with closing(requests):
        while True:
            request = _next(requests, reply)
            if isinstance(request, Answer):
                yield request
                return
            if isinstance(request, Generate):
                if streaming and _is_streamed(request):
                    stream = _Stream(request)
                    async with limit.aheld(), aclosing(backend.stream(request.prompts[0])) as pieces:  # type: ignore[type-var]
                        async for piece in pieces:
                            if text := stream.take(piece):
                                yield text
                    reply = stream.completions
                else:
                    reply = await aside_by_side(backend.complete, request.prompts, limit, failed)
            elif isinstance(request, Retrieve):
                reply = await aside_by_side(backend.retrieve, request.questions, limit)
                for context in reply:
                    yield context
            elif isinstance(request, Embed):
                reply = await backend.embed(request.questions, request.texts)
            else:
                reply = await aside_by_side(backend.read, request.sources, limit)


def _next(requests: Answering, reply: Any) -> Request | Answer:
    """What is to be done next, or the answer."""
    try:
        return requests.send(tuple(reply) if isinstance(reply, list) else reply)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


def _failed(completion: Completion) -> bool:
    return completion.error is not None


def _is_streamed(request: Generate) -> bool:
    return request.final and len(request.prompts) == 1


class _Stream:
    """The reply that a user may see, held back while it may not be the answer."""

    def __init__(self, request: Generate) -> None:
        self._hold = request.hold
        self._held = ""
        self._shown = False
        self.completions: tuple[Completion, ...] = ()

    def take(self, piece: str | Completion) -> str:
        """What can be shown now."""
        if isinstance(piece, Completion):
            self.completions = (replace(piece, shown=self._shown),)
            return ""
        self._held += piece
        # Nothing but white space is no answer; a method may then fall back on an earlier one.
        if not self._shown and (not self._held.strip() or (self._hold is not None and self._hold(self._held))):
            return ""
        self._shown = True
        text, self._held = self._held, ""
        return text
