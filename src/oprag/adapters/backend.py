"""What a framework provides to run methods: a retriever, a model, embeddings and the texts of sources."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oprag._internal.files.source_reader import SourceReader, read_with
from oprag._internal.sync_async import Emit, Step, Steps
from oprag.context import Context
from oprag.embedding.vector_cache import VectorCache
from oprag.methods.model_calls import Completion, Prompt, Usage

__all__ = ["Backend", "Collected", "Pieces", "Vectors", "completed"]

Vectors = tuple[Sequence[Any], Sequence[Any]]
"""One vector per question, and one per text."""

_END = object()


@dataclass(kw_only=True)
class Backend(ABC):
    """The components of a framework that answer one question.

    Errors of the model are not raised but returned in the `Completion`; all other errors are raised.

    Attributes:
        reader: Reads the full text of sources, if available.
        found: Cache of contexts by question.
        known: Replies by prompt, which are reused instead of calling the model.
    """

    reader: SourceReader | None = None
    found: dict[str, Context] = field(default_factory=dict)
    known: dict[Prompt, Completion] = field(default_factory=dict)

    @abstractmethod
    def find(self, question: str) -> Steps[Context]:
        """Search for a question, and build its context."""

    @abstractmethod
    def call(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model; may raise any error."""

    @abstractmethod
    def embedding(self) -> tuple[Any, VectorCache | None]:
        """The `oprag.Embedder`, and the cache of its vectors."""

    def opened(self, prompt: Prompt) -> Step | None:  # noqa: ARG002
        """Open a stream of the model's reply; None (the default) if it is not streamed."""
        return None

    def collected(self) -> Collected:
        """What collects a streamed reply."""
        raise NotImplementedError

    def retrieve(self, question: str) -> Steps[Context]:
        """Retrieve the context of a question, once."""
        if question not in self.found:
            self.found[question] = yield from self.find(question)
        return self.found[question]

    def complete(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model, and return its reply or its error."""
        if self.known and prompt in self.known:
            return self.known[prompt]
        return (yield from completed(lambda: self.call(prompt)))

    def stream(self, prompt: Prompt, pieces: Pieces) -> Steps[Completion]:
        """Stream the model's reply, emit its pieces, and return the reply or its error."""
        collected: Collected | None = None
        started = time.perf_counter()
        try:
            if (opened := self.opened(prompt)) is None:
                return (yield from self.complete(prompt))
            collected = self.collected()
            yield from pieces.read(opened, collected.add)
            reply = collected.completion()
        except Exception as error:  # noqa: BLE001 - as in `completed`
            reply = Completion(error=error, usage=None if collected is None else collected.usage)
        return replace(reply, seconds=time.perf_counter() - started)

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        """Return one vector per question, and one per text."""
        # Imports NumPy.
        from oprag.embedding.vectors import embedded_together

        return embedded_together(*self.embedding(), questions, texts)

    def read(self, source: str) -> Steps[str]:
        """Read the full text of a source."""
        text: str = yield Step(lambda: read_with(self.reader, source))
        return text


def completed(call: Callable[[], Steps[Completion]]) -> Steps[Completion]:
    """Call a model, and return its reply or its error, with the time that it took."""
    started = time.perf_counter()
    try:
        reply = yield from call()
    except Exception as error:  # noqa: BLE001 - clients raise all kinds of errors, which are recorded
        reply = Completion(error=error)
    return replace(reply, seconds=time.perf_counter() - started)


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
