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
from oprag.methods.answering import answering, standalone_in
from oprag.methods.effects import Embed, Generate, Request, Retrieve, advanced
from oprag.methods.model_calls import Completion, Prompt
from oprag.methods.registry import MethodFunction
from oprag.methods.task import Task
from oprag.steps import Emit, Limit, Parallel, Step, Steps

__all__ = ["Backend", "Pieces", "Shown", "Vectors", "drive", "prepare"]

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

    def stream(self, prompt: Prompt, pieces: Pieces) -> Steps[Completion]:
        """The model's reply; emits its pieces by `Pieces.read`, if it comes in pieces."""
        ...

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        """A vector for each question, and one for each text."""
        ...

    def read(self, source: str) -> Steps[str]:
        """The whole text of a source."""
        ...


def drive(
    task: Task, backend: Backend, limit: Limit, *, method: MethodFunction | None = None, streaming: bool = False
) -> Steps[Answer]:
    """Answer a question, by default with the method that its options name; emits what is `Shown`, the answer too."""
    failed = _failed if task.options.on_error == "raise" else None
    reply: Any = None
    idle_seconds = 0.0
    with closing(answering(task, method)) as requests:
        while isinstance(request := advanced(requests, reply), Request):
            if isinstance(request, Generate):
                if streaming and request.final and len(request.prompts) == 1:
                    pieces = Pieces(request.hold)
                    place = yield limit.taken()
                    try:
                        completion = yield from backend.stream(request.prompts[0], pieces)
                    finally:
                        place.release()
                    reply = (pieces.timed(completion),)
                    idle_seconds += pieces.idle_seconds
                else:
                    bodies = [partial(backend.complete, prompt) for prompt in request.prompts]
                    reply = tuple((yield Parallel(bodies, limit, failed)))
            elif isinstance(request, Retrieve):
                found = yield Parallel([partial(backend.retrieve, one) for one in request.questions], limit)
                reply = tuple(request.fitted(found))
                for context in reply:
                    since = time.perf_counter()
                    yield Emit(context)
                    idle_seconds += time.perf_counter() - since
            elif isinstance(request, Embed):
                reply = _counted(request, (yield from backend.embed(request.questions, request.texts)))
            else:
                reply = tuple((yield Parallel([partial(backend.read, one) for one in request.sources], limit)))
    # The time that the caller takes between two of them is not the answer's.
    answer = replace(request, seconds=max(0.0, request.seconds - idle_seconds))
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


class Pieces:
    """The pieces of a reply that are emitted while it is written, held back while it may not be the answer.

    Args:
        hold: Whether the beginning of a reply may still turn out not to be the answer.

    Attributes:
        idle_seconds: The time that the caller took between two pieces, which is not the reply's.
    """

    def __init__(self, hold: Callable[[str], bool] | None) -> None:
        self.idle_seconds = 0.0
        self._hold = hold
        self._held = ""
        self._shown = False

    def read(self, opened: Step, text_of: Callable[[Any], str]) -> Steps[None]:
        """Read a model's stream to its end, and close it whatever happens.

        Emits an empty piece when the stream is open, and then the texts of its chunks.
        """
        stream = yield opened
        chunks = aiter(stream) if hasattr(stream, "__aiter__") else iter(stream)
        following = Step(lambda: next(chunks, _END), lambda: anext(chunks, _END))
        try:
            yield from self._emitted("")
            while (chunk := (yield following)) is not _END:
                if text := self._released(text_of(chunk)):
                    yield from self._emitted(text)
        finally:
            yield Step(lambda: _close(chunks), lambda: _close_async(chunks))

    def timed(self, completion: Completion) -> Completion:
        """The reply, with its own seconds alone, and whether any of it was emitted."""
        return replace(completion, shown=self._shown, seconds=max(0.0, completion.seconds - self.idle_seconds))

    def _released(self, text: str) -> str:
        """What can be emitted now."""
        if self._shown:
            return text
        self._held += text
        # Nothing but white space is not an answer; a method may then fall back on an earlier one.
        if not self._held.strip() or (self._hold is not None and self._hold(self._held)):
            return ""
        self._shown = True
        return self._held

    def _emitted(self, text: str) -> Steps[None]:
        since = time.perf_counter()
        yield Emit(text)
        self.idle_seconds += time.perf_counter() - since


def _close(chunks: Any) -> None:
    """Close an iterator that can be closed."""
    if (close := getattr(chunks, "close", None)) is not None:
        close()


async def _close_async(chunks: Any) -> None:
    if (close := getattr(chunks, "aclose", None)) is not None:
        await close()


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
