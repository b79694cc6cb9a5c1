"""What methods ask for, done with LangChain's models, retrievers and embeddings."""

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
from oprag.methods.driver import Pieces, Vectors
from oprag.methods.model_calls import Completion, Prompt, Usage
from oprag.options import ContextOptions
from oprag.steps import Step, Steps, run_sync

__all__ = ["LangChainBackend", "complete"]


@dataclass
class LangChainBackend:
    """What answering one question takes, and the run that its calls belong to.

    Attributes:
        llm: The model.
        retriever: The retriever.
        context_options: How contexts are made.
        embeddings: LangChain's `Embeddings` or an `oprag.Embedder`, if there are any.
        reader: Reads whole sources, if they can be read.
        config: The config of the chain's run, which the calls belong to.
        filter: The filter of every search for this question.
        found: Contexts by their question, which are not searched for again.
        known: Replies by their prompt, which are not asked for again.
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
        """The context of a question."""
        if question not in self.found:
            given: Any = {"filter": self.filter, "context_options": self.context_options, "config": self.config}
            self.found[question] = yield Step(
                lambda: self.retriever.get_context(question, **given),
                lambda: self.retriever.aget_context(question, **given),
            )
        return self.found[question]

    def complete(self, prompt: Prompt) -> Steps[Completion]:
        """The model's reply, or its error."""
        if self.known and prompt in self.known:
            return self.known[prompt]
        return (yield from _completed(self.llm, prompt, self.config))

    def stream(self, prompt: Prompt, pieces: Pieces) -> Steps[Completion]:
        """The model's reply, or its error; emits its pieces."""
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
        """A vector for each question, and one for each text."""
        from oprag.embedding.vectors import embedded_together

        embedder, cache = as_embedder(self.embeddings), self.retriever.vector_cache
        usable = cache.path is None or getattr(embedder, "lasting", True)
        return embedded_together(embedder, cache if usable else None, questions, texts)

    def read(self, source: str) -> Steps[str]:
        """The whole text of a source."""
        text: str = yield Step(lambda: read_with(self.reader, source))
        return text


def complete(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig | None = None) -> Completion:
    """The reply of a model, or its error."""
    return run_sync(_completed(llm, prompt, config or {}))


def _completed(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig) -> Steps[Completion]:
    """The reply of a model, or its error."""
    started = time.perf_counter()
    try:
        given, config = prompt_value(prompt), config | {"run_name": prompt.step}
        reply = yield Step(lambda: llm.invoke(given, config), lambda: llm.ainvoke(given, config))
        return completion_of(reply, time.perf_counter() - started)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is recorded
        return Completion(error=error, seconds=time.perf_counter() - started)


class _Collected:
    """The chunks of a streamed reply, put together."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._texts: list[str] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._object: Any = None
        self._items: list[str] | None = []

    def add(self, chunk: Any) -> str:
        """The text of one more chunk."""
        if isinstance(chunk, BaseMessage):
            # `usage_metadata` comes in parts that add up. Adding messages would do it too, in quadratic time.
            usage = usage_of(chunk)
            if usage is not None:
                in_parts = bool(getattr(chunk, "usage_metadata", None))
                self._usage = self._usage.plus(usage) if self._usage is not None and in_parts else usage
            self._finish_reason = finish_reason_of(chunk) or self._finish_reason
            text = str(chunk.text)
        elif isinstance(chunk, str):
            text = str(chunk)
        else:
            # Structured output comes as ever larger parts of one object, or in parts that add up: dicts that say so,
            # and the items of a list of texts.
            self._items = [*self._items, *chunk] if self._items is not None and _is_item(chunk) else None
            adds_up = isinstance(chunk, AddableDict) and isinstance(self._object, AddableDict)
            self._object = self._object + chunk if adds_up else chunk
            return ""
        self._texts.append(text)
        return text

    def completion(self, error: Exception | None = None) -> Completion:
        """All of it."""
        seconds = time.perf_counter() - self._started
        if error is not None:
            return Completion(error=error, seconds=seconds, usage=self._usage)
        if self._object is not None:
            return completion_of(self._items or self._object, seconds)
        return Completion("".join(self._texts), usage=self._usage, seconds=seconds, finish_reason=self._finish_reason)


def _is_item(chunk: Any) -> bool:
    return isinstance(chunk, list) and len(chunk) == 1 and isinstance(chunk[0], str) and bool(chunk[0])
