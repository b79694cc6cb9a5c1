"""Drive methods: perform their requests with a framework's backend, for sync and async code."""

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
"""Values that a driver emits: contexts when they are retrieved, pieces of the answer, and finally the answer.

An empty piece means that the stream of the model has been opened."""

Vectors = tuple[Sequence[Any], Sequence[Any]]
"""One vector per question, and one per text."""

_END = object()


class Backend(Protocol):
    """The components of a framework: a retriever, a model, embeddings and source texts.

    Errors of the model are not raised but returned in the `Completion`; all other errors are raised.

    Attributes:
        known: Replies by prompt, which are reused instead of calling the model.
    """

    known: dict[Prompt, Completion]

    def retrieve(self, question: str) -> Steps[Context]:
        """Retrieve the context of a question."""
        ...

    def complete(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model."""
        ...

    def stream(self, prompt: Prompt, pieces: Pieces) -> Steps[Completion]:
        """Call the model; if it streams, emit the pieces of the reply with `Pieces.read`."""
        ...

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        """Return one vector per question, and one per text."""
        ...

    def read(self, source: str) -> Steps[str]:
        """Read the full text of a source."""
        ...


def drive(
    task: Task, backend: Backend, limit: Limit, *, method: MethodFunction | None = None, streaming: bool = False
) -> Steps[Answer]:
    """Answer a question, and emit contexts, pieces of the answer and the answer (see `Shown`).

    Args:
        task: The question.
        backend: The components of the framework.
        limit: Limit of concurrent calls.
        method: The method; the method of the options by default.
        streaming: Whether to stream the final reply.
    """
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
                    started = time.perf_counter()
                    yield Emit(context)
                    idle_seconds += time.perf_counter() - started
            elif isinstance(request, Embed):
                reply = _check_counts(request, (yield from backend.embed(request.questions, request.texts)))
            else:
                reply = tuple((yield Parallel([partial(backend.read, one) for one in request.sources], limit)))
    # Exclude the time that the caller spent on emitted values.
    answer = replace(request, seconds=max(0.0, request.seconds - idle_seconds))
    yield Emit(answer)
    return answer


def prepare(task: Task, backend: Backend) -> Steps[None]:
    """Do the work that compared methods share, before any of them is timed.

    Rewrites a follow-up as a standalone question and retrieves its context; the backend caches both.
    """
    question = task.question
    if task.follows_up:
        prompt = task.prompt("condense")
        reply = backend.known[prompt] = yield from backend.complete(prompt)
        question = standalone_in(reply) or question
    yield from backend.retrieve(question)


class Pieces:
    """Emits the pieces of a streamed reply, and holds them back while it is unclear whether the reply is the answer.

    Args:
        hold: Whether a reply that starts with a given text may turn out not to be the answer.

    Attributes:
        idle_seconds: Time that the caller spent between pieces, in seconds, not counted as time of the reply.
    """

    def __init__(self, hold: Callable[[str], bool] | None) -> None:
        self.idle_seconds = 0.0
        self._hold = hold
        self._held = ""
        self._streamed = False

    def read(self, opened: Step, text_of: Callable[[Any], str]) -> Steps[None]:
        """Read a model's stream to its end, and always close it.

        Emits an empty piece when the stream is open, then the texts of its chunks.

        Args:
            opened: Opens the stream.
            text_of: Returns the text of a chunk of the stream.
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
        """The reply, with `seconds` reduced by the idle time, and `streamed` set if any of it was emitted."""
        return replace(completion, streamed=self._streamed, seconds=max(0.0, completion.seconds - self.idle_seconds))

    def _released(self, text: str) -> str:
        """Add a piece, and return the text that can be emitted now."""
        if self._streamed:
            return text
        self._held += text
        # Whitespace alone is not an answer: the method may fall back to an earlier one.
        if not self._held.strip() or (self._hold is not None and self._hold(self._held)):
            return ""
        self._streamed = True
        return self._held

    def _emitted(self, text: str) -> Steps[None]:
        started = time.perf_counter()
        yield Emit(text)
        self.idle_seconds += time.perf_counter() - started


def _close(chunks: Any) -> None:
    """Close an iterator if it has a `close` method."""
    if (close := getattr(chunks, "close", None)) is not None:
        close()


async def _close_async(chunks: Any) -> None:
    if (close := getattr(chunks, "aclose", None)) is not None:
        await close()


def _failed(completion: Completion) -> bool:
    return completion.error is not None


def _check_counts(request: Embed, vectors: Vectors) -> Vectors:
    """Return the vectors; raise unless there is one per text."""
    given: Any
    for texts, given in zip((request.questions, request.texts), vectors, strict=True):
        number = 0 if given is None else len(given)
        if number != len(texts):
            raise EmbeddingError(f"the embedder returned {number} vectors for {len(texts)} texts", given)
    return vectors
