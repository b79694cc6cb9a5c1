"""Backend of the method driver: LangChain's models, retrievers and embeddings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import AddableDict

from oprag.context import Context
from oprag.files.source_reader import SourceReader, read_with
from oprag.langchain.embedder import as_embedder
from oprag.langchain.messages import completion_of, finish_reason_of, prompt_value, usage_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.methods.run import Pieces, Vectors
from oprag.options import ContextOptions
from oprag.steps import Step, Steps, run_sync

__all__ = ["LangChainBackend", "complete"]


@dataclass
class LangChainBackend:
    """The components that answer one question, and the config of the run.

    Attributes:
        llm: The model.
        retriever: The retriever.
        context_options: The options of contexts.
        embeddings: LangChain's `Embeddings` or an `oprag.Embedder`, if available.
        reader: Reads the full text of sources, if available.
        config: The config of the chain's run; all calls are child runs of it.
        filter: The filter of every search for this question.
        found: Cache of contexts by question.
        known: Cache of replies by prompt.
    """

    llm: Runnable[Any, Any]
    retriever: OrderPreservingRetriever
    context_options: ContextOptions
    embeddings: Any
    reader: SourceReader | None
    config: RunnableConfig
    filter: Any = None
    found: dict[str, Context] = field(default_factory=dict)
    known: dict[Prompt, Completion] = field(default_factory=dict)

    def retrieve(self, question: str) -> Steps[Context]:
        """Retrieve the context of a question."""
        if question not in self.found:
            given: Any = {"filter": self.filter, "context_options": self.context_options, "config": self.config}
            self.found[question] = yield Step(
                lambda: self.retriever.get_context(question, **given),
                lambda: self.retriever.aget_context(question, **given),
            )
        return self.found[question]

    def complete(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model, and return its reply or its error."""
        if self.known and prompt in self.known:
            return self.known[prompt]
        return (yield from _completed(self.llm, prompt, self.config))

    def stream(self, prompt: Prompt, pieces: Pieces) -> Steps[Completion]:
        """Stream the model's reply, emit its pieces, and return the reply or its error."""
        collected = _Collected()
        try:
            given, config = prompt_value(prompt), self.config | {"run_name": prompt.step}

            async def opened() -> Any:
                return self.llm.astream(given, config)

            yield from pieces.read(Step(lambda: self.llm.stream(given, config), opened), collected.add)
            return collected.completion()
        except Exception as error:  # noqa: BLE001
            return collected.completion(error)

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        """Return one vector per question, and one per text."""
        from oprag.embedding.vectors import embedded_together

        embedder, cache = as_embedder(self.embeddings), self.retriever.vector_cache
        usable = cache.path is None or getattr(embedder, "persistent", True)
        return embedded_together(embedder, cache if usable else None, questions, texts)

    def read(self, source: str) -> Steps[str]:
        """Read the full text of a source."""
        text: str = yield Step(lambda: read_with(self.reader, source))
        return text


def complete(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig | None = None) -> Completion:
    """Call a model, and return its reply or its error."""
    return run_sync(_completed(llm, prompt, config or {}))


def _completed(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig) -> Steps[Completion]:
    """Call a model, and return its reply or its error."""
    started = time.perf_counter()
    try:
        given, config = prompt_value(prompt), config | {"run_name": prompt.step}
        reply = yield Step(lambda: llm.invoke(given, config), lambda: llm.ainvoke(given, config))
        return completion_of(reply, time.perf_counter() - started)
    except Exception as error:  # noqa: BLE001 - clients raise all kinds of errors, which are recorded
        return Completion(error=error, seconds=time.perf_counter() - started)


class _Collected:
    """Collects the chunks of a streamed reply."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._texts: list[str] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._object: Any = None
        self._items: list[str] | None = []

    def add(self, chunk: Any) -> str:
        """Add a chunk, and return its text."""
        if isinstance(chunk, BaseMessage):
            # `usage_metadata` is streamed as increments. Adding messages would sum them too, but in quadratic time.
            usage = usage_of(chunk)
            if usage is not None:
                incremental = bool(getattr(chunk, "usage_metadata", None))
                self._usage = self._usage.plus(usage) if self._usage is not None and incremental else usage
            self._finish_reason = finish_reason_of(chunk) or self._finish_reason
            text = str(chunk.text)
        elif isinstance(chunk, str):
            text = str(chunk)
        else:
            # Structured output is streamed as growing versions of one object, or as increments: `AddableDict`, or the
            # items of a list of strings.
            self._items = [*self._items, *chunk] if self._items is not None and _is_item(chunk) else None
            incremental = isinstance(chunk, AddableDict) and isinstance(self._object, AddableDict)
            self._object = self._object + chunk if incremental else chunk
            return ""
        self._texts.append(text)
        return text

    def completion(self, error: Exception | None = None) -> Completion:
        """The whole reply, or the error with the usage so far."""
        seconds = time.perf_counter() - self._started
        if error is not None:
            return Completion(error=error, seconds=seconds, usage=self._usage)
        if self._object is not None:
            return completion_of(self._items or self._object, seconds)
        return Completion("".join(self._texts), usage=self._usage, seconds=seconds, finish_reason=self._finish_reason)


def _is_item(chunk: Any) -> bool:
    return isinstance(chunk, list) and len(chunk) == 1 and isinstance(chunk[0], str) and bool(chunk[0])
