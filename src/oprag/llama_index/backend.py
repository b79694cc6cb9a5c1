"""Backend of the method driver: LlamaIndex's models, retrievers and embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.schema import QueryBundle

from oprag._internal.sync_async import Step, Steps, run_sync
from oprag.context import Context
from oprag.embedding.vector_cache import VectorCache
from oprag.llama_index.embeddings import as_embedder
from oprag.llama_index.messages import sent, usage_of
from oprag.methods.answer import Completion, part
from oprag.methods.prompts import OUR_PROMPTS, Prompt, Prompts
from oprag.methods.run import Backend, Collected, completed

__all__ = ["LlamaIndexBackend", "complete"]

# Names of the finish reason, by provider.
_REASONS = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason")


@dataclass
class LlamaIndexBackend(Backend):
    """LlamaIndex's components.

    Attributes:
        llm: The model.
        search: Searches for a query, and builds its context.
        cache: The vector cache.
        embed_model: Returns the embedding model or the `oprag.Embedder`.
        prompts: The prompt templates.
    """

    llm: LLM
    search: Callable[[QueryBundle], Steps[Context]]
    cache: VectorCache
    embed_model: Callable[[], Any]
    prompts: Prompts

    def find(self, question: str | QueryBundle) -> Steps[Context]:
        """Search for a question, and build its context."""
        return self.search(QueryBundle(question) if isinstance(question, str) else question)

    def call(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model."""
        return _called(self.llm, prompt, self.prompts)

    def opened(self, prompt: Prompt) -> tuple[Step, Collected] | None:
        """Open a stream of the model's reply; None for structured output, which cannot be parsed in pieces."""
        llm = self.llm
        if isinstance(llm, StructuredLLM) or llm.output_parser is not None:
            return None
        given = sent(llm, prompt, getattr(self.prompts, prompt.step, None))
        if isinstance(given, str):
            step = Step(
                lambda: llm.stream_complete(given, formatted=True), lambda: llm.astream_complete(given, formatted=True)
            )
        else:
            step = Step(lambda: llm.stream_chat(given), lambda: llm.astream_chat(given))
        return step, _CollectedResponses()

    def embedding(self) -> tuple[Any, VectorCache]:
        """The embedder, and the cache of its vectors."""
        return as_embedder(self.embed_model()), self.cache


def complete(llm: LLM, prompt: Prompt, prompts: Prompts = OUR_PROMPTS) -> Completion:
    """Call a model, and return its reply or its error."""
    return run_sync(completed(_called(llm, prompt, prompts)))


def _called(llm: LLM, prompt: Prompt, prompts: Prompts) -> Steps[Completion]:
    given = sent(llm, prompt, getattr(prompts, prompt.step, None))
    if isinstance(given, str):
        reply = yield Step(lambda: llm.complete(given, formatted=True), lambda: llm.acomplete(given, formatted=True))
    else:
        reply = yield Step(lambda: llm.chat(given), lambda: llm.achat(given))
    text = (reply.text if hasattr(reply, "text") else reply.message.content) or ""
    return Completion(
        llm._parse_output(text),  # noqa: SLF001 - as `predict` does
        reply.raw if isinstance(llm, StructuredLLM) else None,
        usage=usage_of(reply),
        finish_reason=_finish_reason(reply),
    )


class _CollectedResponses(Collected):
    """The responses of a stream."""

    def add(self, chunk: Any) -> str:
        """Add a response, and return its text."""
        self.usage = usage_of(chunk) or self.usage
        self.finish_reason = _finish_reason(chunk) or self.finish_reason
        self.texts.append(chunk.delta or "")
        return self.texts[-1]


def _finish_reason(response: Any) -> str | None:
    """The finish reason, as reported by the provider; its location differs between integrations."""
    raw = getattr(response, "raw", None)
    choices = part(raw, "choices") or part(raw, "candidates") or [raw]
    parts = [choices[0], part(raw, "generation_info"), part(raw, "incomplete_details")]
    reasons = (part(holder, name) for holder in parts for name in (*_REASONS, "reason"))
    return next((reason for reason in reasons if isinstance(reason, str)), None)
