"""Backend of the method driver: LlamaIndex's models, retrievers and embeddings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from oprag.assembly.select import warn_about_few
from oprag.context import Context
from oprag.embedding.cache import VectorCache
from oprag.files.source_reader import SourceReader, read_with
from oprag.llama_index.embedder import as_embedder
from oprag.llama_index.messages import sent, usage_of
from oprag.llama_index.nodes import chunks_of, context_of
from oprag.llama_index.vectors import FindPositions, NodeSources
from oprag.methods.model_calls import Completion, Prompt, Usage, part
from oprag.methods.prompts import OUR_PROMPTS, Prompts
from oprag.methods.run import Pieces, Vectors
from oprag.options import ContextOptions
from oprag.ranked_list import by_rank
from oprag.steps import Step, Steps, run_sync

__all__ = ["LlamaIndexBackend", "complete"]

# Names of the finish reason, by provider.
_REASONS = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason")


@dataclass
class LlamaIndexBackend:
    """The components that answer one question.

    Attributes:
        llm: The model.
        retriever: The retriever, which returns the best nodes first.
        postprocessors: Postprocessors to apply before the nodes are ordered.
        context_options: The options of contexts.
        sources: The sources of vectors and neighbors, if the options need them.
        cache: The vector cache.
        embed_model: Returns the embedding model or the `oprag.Embedder`.
        reader: Reads the full text of sources, if available.
        prompts: The prompt templates.
        find_positions: Adds positions to chunks without one in their metadata.
        found: Cache of contexts by question.
        known: Cache of replies by prompt.
    """

    llm: LLM
    retriever: BaseRetriever
    postprocessors: Sequence[BaseNodePostprocessor]
    context_options: ContextOptions
    sources: NodeSources | None
    cache: VectorCache
    embed_model: Callable[[], Any]
    reader: SourceReader | None
    prompts: Prompts
    find_positions: FindPositions
    found: dict[str, Context] = field(default_factory=dict)
    known: dict[Prompt, Completion] = field(default_factory=dict)

    def retrieve(self, question: str) -> Steps[Context]:
        """Retrieve the context of a question."""
        if question not in self.found:
            self.found[question] = yield from self.find(QueryBundle(question))
        return self.found[question]

    def find(self, query: QueryBundle) -> Steps[Context]:
        """Retrieve the context of a query."""
        bundle = query if self.sources is None else (yield from self.sources.with_vector(query))
        nodes = yield Step(lambda: self.retriever.retrieve(bundle), lambda: self.retriever.aretrieve(bundle))
        if self.context_options.k is not None:
            warn_about_few(nodes, self.context_options.k)
        for postprocessor in self.postprocessors:
            nodes = yield _processed(postprocessor, nodes, bundle)
        chunks = by_rank(chunks_of(nodes), nodes)
        return (yield from context_of(chunks, bundle, self.context_options, self.sources, self.find_positions))

    def complete(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model, and return its reply or its error."""
        if self.known and prompt in self.known:
            return self.known[prompt]
        return (yield from _completed(self.llm, prompt, self.prompts))

    def stream(self, prompt: Prompt, pieces: Pieces) -> Steps[Completion]:
        """Stream the model's reply, emit its pieces, starting with an empty one, and return the reply or its error."""
        llm = self.llm
        # Incomplete structured output cannot be parsed, so it is not streamed.
        if isinstance(llm, StructuredLLM) or llm.output_parser is not None:
            return (yield from self.complete(prompt))
        collected = _Collected()
        try:
            given = sent(llm, prompt, getattr(self.prompts, prompt.step, None))
            if isinstance(given, str):
                opened = Step(
                    lambda: llm.stream_complete(given, formatted=True),
                    lambda: llm.astream_complete(given, formatted=True),
                )
            else:
                opened = Step(lambda: llm.stream_chat(given), lambda: llm.astream_chat(given))
            yield from pieces.read(opened, collected.add)
            return collected.completion()
        except Exception as error:  # noqa: BLE001
            return collected.completion(error)

    def embed(self, questions: Sequence[str], texts: Sequence[str]) -> Steps[Vectors]:
        """Return one vector per question, and one per text."""
        from oprag.embedding.vectors import embedded_together

        embedder, cache = as_embedder(self.embed_model()), self.cache
        usable = cache.path is None or getattr(embedder, "persistent", True)
        return embedded_together(embedder, cache if usable else None, questions, texts)

    def read(self, source: str) -> Steps[str]:
        """Read the full text of a source."""
        text: str = yield Step(lambda: read_with(self.reader, source))
        return text


def complete(llm: LLM, prompt: Prompt, prompts: Prompts = OUR_PROMPTS) -> Completion:
    """Call a model, and return its reply or its error."""
    return run_sync(_completed(llm, prompt, prompts))


def _completed(llm: LLM, prompt: Prompt, prompts: Prompts) -> Steps[Completion]:
    """Call a model, and return its reply or its error."""
    started = time.perf_counter()
    try:
        given = sent(llm, prompt, getattr(prompts, prompt.step, None))
        if isinstance(given, str):
            reply = yield Step(
                lambda: llm.complete(given, formatted=True), lambda: llm.acomplete(given, formatted=True)
            )
        else:
            reply = yield Step(lambda: llm.chat(given), lambda: llm.achat(given))
        text = (reply.text if hasattr(reply, "text") else reply.message.content) or ""
        return Completion(
            llm._parse_output(text),  # noqa: SLF001 - as `predict` does
            reply.raw if isinstance(llm, StructuredLLM) else None,
            usage=usage_of(reply),
            seconds=time.perf_counter() - started,
            finish_reason=_finish_reason(reply),
        )
    except Exception as error:  # noqa: BLE001 - clients raise all kinds of errors, which are recorded
        return Completion(error=error, seconds=time.perf_counter() - started)


class _Collected:
    """Collects the chunks of a streamed reply."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._texts: list[str] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None

    def add(self, response: Any) -> str:
        """Add a chunk, and return its text."""
        self._usage = usage_of(response) or self._usage
        self._finish_reason = _finish_reason(response) or self._finish_reason
        text = response.delta or ""
        self._texts.append(text)
        return text

    def completion(self, error: Exception | None = None) -> Completion:
        """The whole reply, or the error with the usage so far."""
        seconds = time.perf_counter() - self._started
        if error is not None:
            return Completion(error=error, seconds=seconds, usage=self._usage)
        return Completion("".join(self._texts), usage=self._usage, seconds=seconds, finish_reason=self._finish_reason)


def _processed(postprocessor: BaseNodePostprocessor, nodes: list[NodeWithScore], query: QueryBundle) -> Step:
    return Step(
        lambda: postprocessor.postprocess_nodes(nodes, query_bundle=query),
        lambda: postprocessor.apostprocess_nodes(nodes, query_bundle=query),
    )


def _finish_reason(response: Any) -> str | None:
    """The finish reason, as reported by the provider; its location differs between integrations."""
    raw = getattr(response, "raw", None)
    choices = part(raw, "choices") or part(raw, "candidates") or [raw]
    parts = [choices[0], part(raw, "generation_info"), part(raw, "incomplete_details")]
    reasons = (part(holder, name) for holder in parts for name in (*_REASONS, "reason"))
    return next((reason for reason in reasons if isinstance(reason, str)), None)
