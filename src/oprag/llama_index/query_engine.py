"""A query engine that answers with any method, from nodes in the order of their source."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import ConfigDict

from oprag.context import Context, build_context
from oprag.llama_index.backend import LlamaIndexBackend
from oprag.llama_index.full_answers import FullAnswers
from oprag.llama_index.nodes import chunks_of
from oprag.methods.answering import answering
from oprag.methods.driver import drive
from oprag.methods.effects import Retrieve
from oprag.methods.task import Task
from oprag.options import NO_LIMITS
from oprag.steps import Step, Steps, iterate_async, iterate_sync, run_async, run_sync

__all__ = ["OrderPreservingQueryEngine"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingQueryEngine(FullAnswers):
    """Answers queries from retrieved nodes in the order of their source, with any of the methods.

    It stands wherever a LlamaIndex query engine can: in a tool, a router, a chat engine.

    Args:
        llm: The model; that of `Settings` by default.
        retriever: Any retriever. The options of an `OrderPreservingRetriever` are its own.
        node_postprocessors: What nodes go through before they are put in order, such as rerankers and cutoffs.
        embed_model: An embedding model or an `oprag.Embedder`, for thresholds, `reciprocal` and `rank_by="cosine"`; by
            default that of the retriever or its index, else `Settings.embed_model` if you set it.
        vector_cache: Where vectors that were made are kept, those of the retriever too; that of an
            `OrderPreservingRetriever` by default, else 256 MiB in memory.
        read_source: Gives the whole text of a source, for `long_context` and `self_route`: a folder, a mapping of
            source names to texts, or a function of the name. Only sources that were retrieved are read.
        streaming: Whether `query` gives a response that is still being written.
        callback_manager: LlamaIndex's callbacks.
        method: The method: stuff, map_reduce, refine, map_rerank, step_down, reciprocal, long_context, self_route, or
            a registered one.
        **options: The options of `oprag.methods.MethodOptions` and of `oprag.ContextOptions`.

    Raises:
        ValidationError: An option is unknown, invalid, or missing for the method (pydantic's error, which is a
            ValueError).
    """

    model_config = ConfigDict(defer_build=False)

    @dispatcher.span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return run_sync(self._responded(query_bundle))

    @dispatcher.span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await run_async(self._responded(query_bundle))

    @dispatcher.span
    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The nodes for a query, in the order of the context."""
        query_bundle = _bundle(query_bundle)
        backend = self._backend(self._options)
        return self._responding().nodes_of(self._fitted(query_bundle, backend, run_sync(backend.find(query_bundle))))

    @dispatcher.span
    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """As `retrieve`, async."""
        query_bundle = _bundle(query_bundle)
        backend = self._backend(self._options)
        return self._responding().nodes_of(
            self._fitted(query_bundle, backend, await run_async(backend.find(query_bundle)))
        )

    @dispatcher.span
    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Answer from nodes that were retrieved before; none of them is cut.

        Args:
            query_bundle: The query.
            nodes: The nodes, as `retrieve` gave them; `order="source"` puts them in order, any other order leaves them.
            additional_source_nodes: Further nodes for the response's `source_nodes`.
        """
        query_bundle = _bundle(query_bundle)
        backend = self._backend(self._options)
        task = self._task(query_bundle.query_str, self._options, backend)
        context = _as_given(nodes, backend)
        return run_sync(self._synthesized(query_bundle, task, context, backend, additional_source_nodes or ()))

    @dispatcher.span
    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """As `synthesize`, async."""
        query_bundle = _bundle(query_bundle)
        backend = self._backend(self._options)
        task = self._task(query_bundle.query_str, self._options, backend)
        context = _as_given(nodes, backend)
        return await run_async(self._synthesized(query_bundle, task, context, backend, additional_source_nodes or ()))

    def _responded(self, query: QueryBundle) -> Steps[RESPONSE_TYPE]:
        """The response to a query, with the events of a query engine."""
        with self.callback_manager.event(CBEventType.QUERY, {EventPayload.QUERY_STR: query.query_str}) as event:
            backend = self._backend(self._options)
            task = self._task(query.query_str, self._options, backend)
            context = yield from backend.find(query)
            response = yield from self._synthesized(query, task, context, backend)
            event.on_end({EventPayload.RESPONSE: response})
        return response

    def _fitted(self, query: QueryBundle, backend: LlamaIndexBackend, context: Context) -> list[Context]:
        """The context as the method will ask for it: no longer than the model's window allows."""
        requests = answering(self._task(query.query_str, self._options, backend))
        with closing(requests):
            request = next(requests)
        return request.fitted([context]) if isinstance(request, Retrieve) else [context]

    def _synthesized(
        self,
        query: QueryBundle,
        task: Task,
        context: Context,
        backend: LlamaIndexBackend,
        more: Sequence[NodeWithScore] = (),
    ) -> Steps[RESPONSE_TYPE]:
        """The part of a query after its retrieval, with the events of a response synthesizer."""
        dispatcher.event(SynthesizeStartEvent(query=query))
        with self.callback_manager.event(CBEventType.SYNTHESIZE, {EventPayload.QUERY_STR: query.query_str}) as event:
            backend.found[query.query_str] = context
            steps = drive(
                answering(task), backend, self._limit(), streaming=self.streaming, stop_early=self._stop_early
            )
            responding = self._responding(more)
            response: RESPONSE_TYPE
            if self.streaming:
                response = yield Step(
                    lambda: responding.streamed(iterate_sync(steps)),
                    lambda: responding.astreamed(iterate_async(steps)),
                )
            else:
                response = responding.whole((yield from steps))
            event.on_end({EventPayload.RESPONSE: response})
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response


def _as_given(nodes: list[NodeWithScore], backend: LlamaIndexBackend) -> Context:
    """The context of nodes that were chosen and put in order before: nothing is cut, and no order applied twice.

    In source order each source keeps its place among the others; what is in any other order stays as it is.
    """
    changes: dict[str, Any] = {**NO_LIMITS, "source_ranking": "best_first"}
    if backend.context_options.order != "source":
        changes["order"] = "rank"
    # Without what it was made of, nothing is cut later either: a list in order does not say which nodes are best.
    return replace(build_context(chunks_of(nodes), replace(backend.context_options, **changes)), inputs=None)


def _bundle(query: str | QueryBundle) -> QueryBundle:
    return QueryBundle(query) if isinstance(query, str) else query
