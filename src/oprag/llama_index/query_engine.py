"""A query engine that answers with any method, from nodes in the order of their source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import ConfigDict

from oprag.build import build_context
from oprag.context import Context
from oprag.llama_index.answering_engine import AnsweringEngine
from oprag.llama_index.backend import AsyncLlamaIndexBackend, LlamaIndexBackend, Parts
from oprag.llama_index.nodes import chunks_of
from oprag.methods.answer import Answer
from oprag.methods.answering import answering
from oprag.methods.comparison import Comparison
from oprag.methods.drive import Shown, adrive, drive
from oprag.methods.task import Task

__all__ = ["OrderPreservingQueryEngine"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingQueryEngine(AnsweringEngine):
    """Answers queries from retrieved nodes in the order of their source, with any of the methods.

    It stands wherever a LlamaIndex query engine can: in a tool, a router, a chat engine.

    Args:
        llm: The model; that of `Settings` by default.
        retriever: Any retriever. The options of an `OrderPreservingRetriever` are its own.
        node_postprocessors: What nodes go through before they are put in order, such as rerankers and cutoffs.
        embeddings: An embedding model or an `oprag.Embedder`, for `reciprocal` and `score="cosine"`.
        read_source: Gives the whole text of a source, for `long_context` and `self_route`: a folder, a mapping of
            source names to texts, or a function of the name. Only sources that were retrieved are read.
        streaming: Whether `query` gives a response that is still being written.
        callback_manager: LlamaIndex's callbacks.
        method: The method: stuff, map_reduce, refine, map_rerank, step_down, reciprocal, long_context, self_route, or
            a registered one.
        **options: The options of `oprag.methods.MethodOptions` and of `oprag.Assembly`.

    Raises:
        ValidationError: An option is unknown, has a value that it cannot have, or is missing for the method (pydantic's
            error, which is a ValueError).
    """

    # An option that is changed later is checked, and has an effect, as one that is given.
    model_config = ConfigDict(
        extra="forbid",
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=True,
        validate_assignment=True,
    )

    @dispatcher.span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self.callback_manager.event(CBEventType.QUERY, {EventPayload.QUERY_STR: query_bundle.query_str}) as event:
            backend = self._parts(LlamaIndexBackend, self._options)
            task = self._task(query_bundle.query_str, self._options, backend)
            response = self._respond(query_bundle, task, backend.find(query_bundle), backend)
            event.on_end({EventPayload.RESPONSE: response})
        return response

    @dispatcher.span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self.callback_manager.event(CBEventType.QUERY, {EventPayload.QUERY_STR: query_bundle.query_str}) as event:
            backend = self._parts(AsyncLlamaIndexBackend, self._options)
            task = self._task(query_bundle.query_str, self._options, backend)
            response = await self._arespond(query_bundle, task, await backend.find(query_bundle), backend)
            event.on_end({EventPayload.RESPONSE: response})
        return response

    @dispatcher.span
    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """The nodes for a query, in the order of the context."""
        context = self._parts(LlamaIndexBackend, self._options).find(_bundle(query_bundle))
        return self._responding().nodes_of([context])

    @dispatcher.span
    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """As `retrieve`, async."""
        context = await self._parts(AsyncLlamaIndexBackend, self._options).find(_bundle(query_bundle))
        return self._responding().nodes_of([context])

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
        backend = self._parts(LlamaIndexBackend, self._options)
        task = self._task(query_bundle.query_str, self._options, backend)
        return self._respond(query_bundle, task, _as_given(nodes, backend), backend, additional_source_nodes or ())

    @dispatcher.span
    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """As `synthesize`, async."""
        query_bundle = _bundle(query_bundle)
        backend = self._parts(AsyncLlamaIndexBackend, self._options)
        task = self._task(query_bundle.query_str, self._options, backend)
        context = _as_given(nodes, backend)
        return await self._arespond(query_bundle, task, context, backend, additional_source_nodes or ())

    @dispatcher.span
    def answer(self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()) -> Answer:
        """Answer a question, and tell everything that is known about the answer.

        Args:
            question: The question.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: What was said before, as LlamaIndex's chat messages.

        Raises:
            QueryError: The question is empty or no string.
            ModelError: A call failed, and `on_error="raise"`.
        """
        backend = self._parts(LlamaIndexBackend, self._options)
        task = self._task(question, self._options, backend, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return _answer_in(drive(answering(task), backend, self._limit(), stop_early=self._stop_early))

    @dispatcher.span
    async def aanswer(self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()) -> Answer:
        """As `answer`, async."""
        backend = self._parts(AsyncLlamaIndexBackend, self._options)
        task = self._task(question, self._options, backend, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            shown = adrive(answering(task), backend, self._limit(), stop_early=self._stop_early)
            return _answer_in([one async for one in shown])

    @dispatcher.span
    def compare(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
    ) -> Comparison:
        """Answer a question with several methods over one retrieval.

        Args:
            question: The question.
            methods: The names of the methods.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: What was said before, as LlamaIndex's chat messages.

        Returns:
            The answers; a table when it is printed or shown in a notebook.

        Raises:
            OptionError: A method is unknown or lacks what it needs; nothing has been spent then.
            ModelError: A call failed, and `on_error="raise"`.
        """
        tried = [self._changed(method=method) for method in methods]
        answers: list[Answer] = []
        found: dict[str, Context] = {}
        with self.callback_manager.as_trace("query"):
            for options in tried:
                backend = self._parts(LlamaIndexBackend, options)
                backend.found = found
                task = self._task(question, options, backend, choices, chat_history)
                # One retrieval for all, and before the clock runs.
                if not task.follows_up:
                    backend.retrieve(question)
                answers.append(_answer_in(drive(answering(task), backend, self._limit(), stop_early=self._stop_early)))
        return Comparison(question, tuple(answers))

    @dispatcher.span
    async def acompare(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
    ) -> Comparison:
        """As `compare`, async."""
        tried = [self._changed(method=method) for method in methods]
        answers: list[Answer] = []
        found: dict[str, Context] = {}
        with self.callback_manager.as_trace("query"):
            for options in tried:
                backend = self._parts(AsyncLlamaIndexBackend, options)
                backend.found = found
                task = self._task(question, options, backend, choices, chat_history)
                if not task.follows_up:
                    await backend.retrieve(question)
                shown = adrive(answering(task), backend, self._limit(), stop_early=self._stop_early)
                answers.append(_answer_in([one async for one in shown]))
        return Comparison(question, tuple(answers))

    def _respond(
        self,
        query: QueryBundle,
        task: Task,
        context: Context,
        backend: LlamaIndexBackend,
        more: Sequence[NodeWithScore] = (),
    ) -> RESPONSE_TYPE:
        """The part of a query behind its retrieval, with the events of a response synthesizer."""
        dispatcher.event(SynthesizeStartEvent(query=query))
        with self.callback_manager.event(CBEventType.SYNTHESIZE, {EventPayload.QUERY_STR: query.query_str}) as event:
            backend.found[query.query_str] = context
            shown = drive(
                answering(task), backend, self._limit(), streaming=self.streaming, stop_early=self._stop_early
            )
            responding = self._responding(more)
            response = responding.streamed(shown) if self.streaming else responding.whole(shown)
            event.on_end({EventPayload.RESPONSE: response})
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response

    async def _arespond(
        self,
        query: QueryBundle,
        task: Task,
        context: Context,
        backend: AsyncLlamaIndexBackend,
        more: Sequence[NodeWithScore] = (),
    ) -> RESPONSE_TYPE:
        dispatcher.event(SynthesizeStartEvent(query=query))
        with self.callback_manager.event(CBEventType.SYNTHESIZE, {EventPayload.QUERY_STR: query.query_str}) as event:
            backend.found[query.query_str] = context
            shown = adrive(
                answering(task), backend, self._limit(), streaming=self.streaming, stop_early=self._stop_early
            )
            responding = self._responding(more)
            if self.streaming:
                response: RESPONSE_TYPE = await responding.astreamed(shown)
            else:
                response = responding.whole([one async for one in shown])
            event.on_end({EventPayload.RESPONSE: response})
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response


def _as_given(nodes: list[NodeWithScore], backend: Parts) -> Context:
    """The context of nodes that were chosen and put in order before: nothing is cut, and no order applied twice.

    In source order each source keeps its place among the others; what is in any other order stays as it is.
    """
    changes: dict[str, Any] = {"k": None, "fetch_k": None, "token_budget": None, "source_order": "best"}
    if backend.assembly.order != "source":
        changes["order"] = "rank"
    return build_context(chunks_of(nodes), replace(backend.assembly, **changes))


def _answer_in(shown: Iterable[Shown]) -> Answer:
    (answer,) = (one for one in shown if isinstance(one, Answer))
    return answer


def _bundle(query: str | QueryBundle) -> QueryBundle:
    return QueryBundle(query) if isinstance(query, str) else query
