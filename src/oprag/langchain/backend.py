"""Backend of the method driver: LangChain's models, retrievers and embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import AddableDict

from oprag._internal.sync_async import Step, Steps, run_sync
from oprag.context import Context
from oprag.embedding.vector_cache import VectorCache
from oprag.langchain.embeddings import as_embedder
from oprag.langchain.messages import completion_of, finish_reason_of, prompt_value, usage_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.methods.answer import Completion
from oprag.methods.prompts import Prompt
from oprag.methods.run import Backend, Collected, completed
from oprag.options import ContextOptions

__all__ = ["LangChainBackend", "complete"]


@dataclass
class LangChainBackend(Backend):
    """LangChain's components.

    Attributes:
        llm: The model.
        retriever: The retriever.
        context_options: The options of contexts.
        embeddings: LangChain's `Embeddings` or an `oprag.Embedder`, if available.
        config: The config of the chain's run; all calls are child runs of it.
        filter: The filter of every search for this question.
    """

    llm: Runnable[Any, Any]
    retriever: OrderPreservingRetriever
    context_options: ContextOptions
    embeddings: Any
    config: RunnableConfig
    filter: Any = None

    def find(self, question: str) -> Steps[Context]:
        """Search for a question, and build its context."""
        callbacks = self.config.get("callbacks")
        if isinstance(callbacks, BaseCallbackManager) and not callbacks.handlers:
            # Nobody would see a run of the retriever.
            return (yield from self.retriever._found(question, self.context_options, self.config, self.filter))  # noqa: SLF001
        given: Any = {"filter": self.filter, "context_options": self.context_options, "config": self.config}
        context: Context = yield Step(
            lambda: self.retriever.get_context(question, **given),
            lambda: self.retriever.aget_context(question, **given),
        )
        return context

    def call(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model."""
        return _called(self.llm, prompt, self.config)

    def opened(self, prompt: Prompt) -> tuple[Step, Collected]:
        """Open a stream of the model's reply, and what collects it."""
        given, config = prompt_value(prompt), self.config | {"run_name": prompt.step}

        async def opened() -> Any:
            return self.llm.astream(given, config)

        return Step(lambda: self.llm.stream(given, config), opened), _CollectedChunks()

    def embedding(self) -> tuple[Any, VectorCache]:
        """The embedder, and the cache of its vectors."""
        return as_embedder(self.embeddings), self.retriever.vector_cache


def complete(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig | None = None) -> Completion:
    """Call a model, and return its reply or its error."""
    return run_sync(completed(_called(llm, prompt, config or {})))


def _called(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig) -> Steps[Completion]:
    given, config = prompt_value(prompt), config | {"run_name": prompt.step}
    return completion_of((yield Step(lambda: llm.invoke(given, config), lambda: llm.ainvoke(given, config))))


class _CollectedChunks(Collected):
    """Messages, texts, or parts of structured output."""

    def __init__(self) -> None:
        super().__init__()
        self._object: Any = None
        self._items: list[str] | None = []

    def add(self, chunk: Any) -> str:
        """Add a chunk, and return its text."""
        if isinstance(chunk, BaseMessage):
            # `usage_metadata` is streamed as increments. Adding messages would sum them too, but in quadratic time.
            usage = usage_of(chunk)
            if usage is not None:
                incremental = bool(getattr(chunk, "usage_metadata", None))
                self.usage = self.usage.plus(usage) if self.usage is not None and incremental else usage
            self.finish_reason = finish_reason_of(chunk) or self.finish_reason
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
        self.texts.append(text)
        return text

    def completion(self) -> Completion:
        """The whole reply."""
        return super().completion() if self._object is None else completion_of(self._items or self._object)


def _is_item(chunk: Any) -> bool:
    return isinstance(chunk, list) and len(chunk) == 1 and isinstance(chunk[0], str) and bool(chunk[0])
