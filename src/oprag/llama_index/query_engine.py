"""A query engine that answers with any method from nodes in the order of their source."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Self

from llama_index.core import Settings
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation.events.synthesis import SynthesizeEndEvent, SynthesizeStartEvent
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.postprocessor import LongContextReorder
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel, Field, PrivateAttr, SkipValidation, StrictBool, model_validator

from oprag._internal.masking import describe
from oprag._internal.sync_async import Items, Limit, Step, Steps, iterate_async, iterate_sync, run_async, run_sync
from oprag.adapters.fields import PUBLIC_CONFIG, MethodFields, given_options
from oprag.adapters.name_hints import LLAMA_INDEX
from oprag.context import Context
from oprag.errors import OptionError
from oprag.llama_index.backend import LlamaIndexBackend, as_template, history_of, shown_template, window_of
from oprag.llama_index.nodes import nodes_of
from oprag.llama_index.postprocessor import OrderPreservingPostprocessor
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.llama_index.vectors import IndexFields, refuse_reordered
from oprag.methods.answer import Answer
from oprag.methods.method_answers import MethodAnswers, check_methods
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import STEPS, as_prompts
from oprag.methods.registry import check_needs
from oprag.methods.run import Retrieve, Shown, answering, drive, drive_each
from oprag.methods.task import Task
from oprag.options import NO_SEARCH, ContextOptions, refuse_options
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["OrderPreservingQueryEngine"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingQueryEngine(MethodFields, IndexFields, BaseQueryEngine):
    """Answers queries from retrieved nodes in the order of their source, with any of the methods.

    Use it wherever a LlamaIndex query engine is expected: in a tool, a router or a chat engine. Options can be
    assigned, and are validated as at construction.

    Args:
        llm: The model; `Settings.llm` by default.
        retriever: Any retriever. Set the options of an `OrderPreservingRetriever` on the retriever, not here.
        node_postprocessors: Postprocessors to apply before nodes are put in order, such as rerankers and cutoffs.
        embed_model: An embedding model or an `oprag.Embedder`, for thresholds, `reciprocal` and `rank_by="cosine"`; by
            default that of the retriever or its index, else `Settings.embed_model` if you set it.
        vector_cache: Cache of computed vectors; 256 MiB in memory by default. That of an `OrderPreservingRetriever` is
            set there, and also used here.
        read_source: As in `OrderPreservingPostprocessor`, and for `long_context` and `self_route`.
        streaming: Whether `query` returns a streaming response.
        callback_manager: LlamaIndex's callbacks.
        method: The method: stuff, map_reduce, refine, map_rerank, step_down, reciprocal, long_context, self_route, or
            a registered one.
        annotate: See `OrderPreservingPostprocessor`.
        index: For thresholds and neighbors: the index of the nodes, as in `OrderPreservingRetriever`.
        read_neighbors: For `neighbors`: an index, a docstore, or a function that takes a node and a number, as in
            `OrderPreservingRetriever`.
        store_order: As in `OrderPreservingRetriever`.
        **options: The options of `oprag.methods.MethodOptions` and of `oprag.ContextOptions`.

    Raises:
        ValidationError: An option is unknown, invalid, or missing for the method (pydantic's error, which is a
            ValueError).
    """

    model_config = PUBLIC_CONFIG

    _name_hints: ClassVar = LLAMA_INDEX

    llm: SkipValidation[LLM] = Field(
        default_factory=lambda: Settings.llm, description="Any LlamaIndex LLM; Settings.llm by default.", repr=False
    )
    retriever: SkipValidation[BaseRetriever] = Field(
        description="Any LlamaIndex retriever; an OrderPreservingRetriever keeps its own options."
    )
    node_postprocessors: SkipValidation[Sequence[BaseNodePostprocessor]] = Field(
        default=(), description="Postprocessors to apply before nodes are put in order, such as rerankers and cutoffs."
    )
    streaming: StrictBool = Field(default=False, description="Return a streaming response from query.")
    callback_manager: SkipValidation[CallbackManager] = Field(
        default_factory=lambda: Settings.callback_manager, description="LlamaIndex's callbacks.", exclude=True
    )
    _options: MethodOptions = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _none_is_the_default(cls, values: Any) -> Any:
        defaults = ("llm", "callback_manager", "node_postprocessors")
        return {name: value for name, value in dict(values).items() if value is not None or name not in defaults}

    def _check(self) -> None:
        for name, value, kind in (("llm", self.llm, LLM), ("retriever", self.retriever, BaseRetriever)):
            if not isinstance(value, kind):
                hint = '; pass a model, such as OpenAI(model="...")' if kind is LLM and isinstance(value, str) else ""
                got = f"{type(value).__name__}{hint}"
                raise OptionError(f"{name} must be a LlamaIndex {kind.__name__}, got {got}", value)
        for postprocessor in self.node_postprocessors:
            if isinstance(postprocessor, OrderPreservingPostprocessor | LongContextReorder):
                name = type(postprocessor).__name__
                instead = 'pass order="edges"' if isinstance(postprocessor, LongContextReorder) else "pass its options"
                raise OptionError(
                    f"the engine itself puts the nodes in order; remove {name} from node_postprocessors, and {instead} "
                    "to the engine",
                    self.node_postprocessors,
                )
            if not isinstance(postprocessor, BaseNodePostprocessor):
                raise OptionError(
                    f"node_postprocessors must be LlamaIndex node postprocessors, got {describe(postprocessor)}",
                    postprocessor,
                )
        if self._searching is self:
            refuse_reordered(self.retriever)
        else:
            refuse_options(self.retriever, given_options(self))
        super()._check()
        self._options = self._checked_options()
        for postprocessor in self.node_postprocessors:
            postprocessor.callback_manager = self.callback_manager

    def _checked_options(self, **changes: Any) -> MethodOptions:
        """The options of the method, with changes; rejects a method whose requirements are missing."""
        options = self._method_options(prompts=as_prompts(self.prompts, partial(as_template, llm=self.llm)), **changes)
        check_needs(
            options,
            embeddings=self._model() is not None,
            read_source=self._reader is not None,
            text=not isinstance(self.llm, StructuredLLM),
            embedder_option="embed_model",
        )
        options.numbered(self._searching._stitching_options)  # noqa: SLF001
        return options

    @property
    def _searching(self) -> OrderPreservingRetriever | OrderPreservingQueryEngine:
        """What has the options of the search: an `OrderPreservingRetriever`, which may change them later, or this."""
        return self.retriever if isinstance(self.retriever, OrderPreservingRetriever) else self

    def _model(self) -> Any:
        searching = self._searching
        return super()._model() if searching is self or self.embed_model is not None else searching._model()  # noqa: SLF001

    @classmethod
    def from_args(cls, retriever: BaseRetriever, llm: LLM | None = None, **options: Any) -> Self:
        """Create an engine for code that was written for `RetrieverQueryEngine.from_args`.

        Args:
            retriever: Any retriever.
            llm: The model; `Settings.llm` by default.
            **options: The options of this class. Options of LlamaIndex that it does not have, such as `response_mode`,
                are rejected with the option to use instead.

        Raises:
            ValidationError: An option is unknown, invalid, or missing for the method.
        """
        return cls(retriever=retriever, llm=llm, **options)

    # LlamaIndex's interface.

    @dispatcher.span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return run_sync(self._responded(query_bundle))

    @dispatcher.span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await run_async(self._responded(query_bundle))

    @dispatcher.span
    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve the nodes for a query, in the order of the context."""
        return run_sync(self._retrieved(query_bundle))

    @dispatcher.span
    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Async version of `retrieve`."""
        return await run_async(self._retrieved(query_bundle))

    @dispatcher.span
    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Answer from nodes that were already retrieved; none of them is dropped.

        Args:
            query_bundle: The query.
            nodes: The nodes, as returned by `retrieve`. With `order="source"`, they are put in source order; with any
                other order, their order is not changed.
            additional_source_nodes: Nodes to add to the response's `source_nodes`.
        """
        return run_sync(self._responded(query_bundle, nodes, additional_source_nodes or ()))

    @dispatcher.span
    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Async version of `synthesize`."""
        return await run_async(self._responded(query_bundle, nodes, additional_source_nodes or ()))

    def _get_prompts(self) -> PromptDictType:
        return {name: shown_template(getattr(self._options.prompts, name)) for name in STEPS}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self.prompts = as_prompts(prompts, partial(as_template, llm=self.llm), self._options.prompts)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    # Answers with their contexts, model calls and token usage.

    @dispatcher.span
    def answer(self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()) -> Answer:
        """Answer a question, and return the answer with its contexts, model calls and token usage.

        Args:
            question: The question.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: The conversation so far, as LlamaIndex's chat messages.

        Raises:
            QueryError: The question is empty or not a string.
            ModelError: A model call failed, and `on_error="raise"` or the answer depends on it.
        """
        steps = self._answered(question, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return run_sync(steps)

    @dispatcher.span
    async def aanswer(self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()) -> Answer:
        """Async version of `answer`."""
        steps = self._answered(question, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return await run_async(steps)

    def stream_answer(
        self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()
    ) -> Iterator[str | Answer]:
        """Streaming version of `answer`: yields the pieces of the text, and finally the `Answer`."""
        steps = self._answered(question, choices, chat_history, streaming=True)
        with self.callback_manager.as_trace("query"):
            yield from (shown for shown in iterate_sync(steps) if shown and not isinstance(shown, Context))

    async def astream_answer(
        self, question: str, *, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()
    ) -> AsyncIterator[str | Answer]:
        """Async version of `stream_answer`."""
        steps = self._answered(question, choices, chat_history, streaming=True)
        with self.callback_manager.as_trace("query"):
            async with aclosing(iterate_async(steps)) as all_shown:  # type: ignore[type-var]
                async for shown in all_shown:
                    if shown and not isinstance(shown, Context):
                        yield shown

    @dispatcher.span
    def answer_with(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
    ) -> MethodAnswers:
        """Answer a question with several methods and a single retrieval.

        In a conversation, the follow-up is rewritten as a standalone question once, for all methods.

        Args:
            question: The question.
            methods: The names of the methods.
            choices: The answers to choose from, for a multiple-choice question.
            chat_history: The conversation so far, as LlamaIndex's chat messages.

        Returns:
            The answers, displayed as a table.

        Raises:
            OptionError: A method is unknown, or its requirements are missing; raised before any model call.
            ModelError: A model call failed, and `on_error="raise"` or the answer depends on it.
        """
        steps = self._compared(question, methods, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return run_sync(steps)

    @dispatcher.span
    async def aanswer_with(
        self,
        question: str,
        methods: Sequence[str],
        *,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
    ) -> MethodAnswers:
        """Async version of `answer_with`."""
        steps = self._compared(question, methods, choices, chat_history)
        with self.callback_manager.as_trace("query"):
            return await run_async(steps)

    # One question.

    def _begun(
        self, question: str, options: MethodOptions, choices: Sequence[str] = (), chat_history: Sequence[Any] = ()
    ) -> tuple[Task, LlamaIndexBackend]:
        """The task for a question, and the backend that answers it."""
        searching = self._searching
        context_options = searching._stitching_options  # noqa: SLF001
        window = window_of(self.llm, context_options.count_tokens)
        history = history_of(chat_history)
        task = Task(question, options, context_options, choices, history, window=window)  # type: ignore[arg-type]
        # An OrderPreservingRetriever would return its nodes in source order, so the one that it wraps is asked.
        search = partial(
            searching._found,  # noqa: SLF001
            options=task.context_options,
            postprocessors=self.node_postprocessors,
        )
        limit, cache = Limit(options.max_concurrency), searching.vector_cache
        backend = LlamaIndexBackend(
            self.llm, search, cache, self._model, options.prompts, limit=limit, reader=self._reader
        )
        return task, backend

    def _answered(
        self, question: str, choices: Sequence[str], chat_history: Sequence[Any], *, streaming: bool = False
    ) -> Steps[Answer]:
        return drive(*self._begun(question, self._options, choices, chat_history), streaming=streaming)

    def _responded(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore] | None = None,
        more: Sequence[NodeWithScore] = (),
    ) -> Steps[RESPONSE_TYPE]:
        """Answer a query from the given nodes, or else from newly retrieved ones."""
        query = _bundle(query)
        if nodes is not None:
            task, backend = self._begun(query.query_str, self._options)
            context = yield from self._as_given(nodes, task.context_options)
            return (yield from self._synthesized(query, task, backend, context, more))
        with self.callback_manager.event(CBEventType.QUERY, {EventPayload.QUERY_STR: query.query_str}) as event:
            task, backend = self._begun(query.query_str, self._options)
            context = yield from backend.find(query)
            response = yield from self._synthesized(query, task, backend, context, more)
            event.on_end({EventPayload.RESPONSE: response})
        return response

    def _synthesized(
        self,
        query: QueryBundle,
        task: Task,
        backend: LlamaIndexBackend,
        context: Context,
        more: Sequence[NodeWithScore],
    ) -> Steps[RESPONSE_TYPE]:
        """Answer a query after retrieval, with the events of a response synthesizer."""
        dispatcher.event(SynthesizeStartEvent(query=query))
        with self.callback_manager.event(CBEventType.SYNTHESIZE, {EventPayload.QUERY_STR: query.query_str}) as event:
            backend.found[query.query_str] = context
            steps = drive(task, backend, streaming=self.streaming)
            source_nodes = partial(self._source_nodes, more=more)
            response: RESPONSE_TYPE
            if self.streaming:

                async def iterated() -> AsyncIterator[Shown]:
                    return iterate_async(steps)

                all_shown = yield Step(lambda: iterate_sync(steps), iterated)
                response = yield from _streaming_response(all_shown, source_nodes)
            else:
                answer = yield from steps
                response = _response_of(answer, source_nodes(answer.contexts))
            event.on_end({EventPayload.RESPONSE: response})
        dispatcher.event(SynthesizeEndEvent(query=query, response=response))
        return response

    def _as_given(self, nodes: Sequence[NodeWithScore], options: ContextOptions) -> Steps[Context]:
        """Build the context of nodes that were selected; none is dropped, and the order of the sources is kept."""
        changes: dict[str, Any] = {**NO_SEARCH, "token_budget": None, "source_ranking": "best_first"}
        if options.order != "source":
            changes["order"] = "rank"
        options, searching = replace(options, **changes), self._searching
        # A plain list, since the order of the sources is that of the nodes, not of the ranks that they had.
        context = yield from searching._context([*nodes], None, options, searching._sources(options))  # noqa: SLF001
        # Without inputs, the context cannot be cut later: ordered nodes have no ranks, so the best are unknown.
        return replace(context, inputs=None)

    def _retrieved(self, query: str | QueryBundle) -> Steps[list[NodeWithScore]]:
        query = _bundle(query)
        task, backend = self._begun(query.query_str, self._options)
        context = yield from backend.find(query)
        # Fit the context to the model's window, as the method will.
        with closing(answering(task)) as requests:
            request = next(requests)
        return self._source_nodes(request.fitted([context]) if isinstance(request, Retrieve) else [context])

    def _source_nodes(self, contexts: Iterable[Context], more: Sequence[NodeWithScore] = ()) -> list[NodeWithScore]:
        """The nodes of the contexts in order, without duplicates, followed by additional ones."""
        searching, nodes = self._searching, dict[str, NodeWithScore]()
        for context in contexts:
            for scored in nodes_of(context, annotate=searching.annotate, stitch=searching.stitch):
                nodes.setdefault(scored.node.node_id, scored)
        return [*nodes.values(), *more]

    def _compared(
        self, question: str, methods: Sequence[str], choices: Sequence[str], chat_history: Sequence[Any]
    ) -> Steps[MethodAnswers]:
        check_methods(methods)
        compared = [self._checked_options(method=method) for method in methods]
        answers = yield from drive_each(self._begun(question, one, choices, chat_history) for one in compared)
        return MethodAnswers(question, tuple(answers))


def _bundle(query: str | QueryBundle) -> QueryBundle:
    return QueryBundle(query) if isinstance(query, str) else query


def _response_of(answer: Answer, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
    """The response for an answer: with an object, if the model returned one."""
    metadata = _metadata(nodes) | _about(answer)
    if isinstance(answer.parsed, BaseModel):
        return PydanticResponse(answer.parsed, source_nodes=nodes, metadata=metadata)
    return Response(answer.text, source_nodes=nodes, metadata=metadata)


def _streaming_response(
    all_shown: Iterator[Shown] | AsyncIterator[Shown], source_nodes: Callable[[list[Context]], list[NodeWithScore]]
) -> Steps[RESPONSE_TYPE]:
    """A streaming response, returned when retrieval is complete and the answer starts."""
    contexts: list[Context] = []
    items = Items(all_shown)
    while isinstance(first := (yield items.following), Context):
        contexts.append(first)
    nodes = source_nodes(contexts)
    metadata = _metadata(nodes)

    def text_of(shown: Shown) -> str:
        """The text in a value that the driver emits; the answer completes the metadata."""
        if not isinstance(shown, Answer):
            return shown if isinstance(shown, str) else ""
        metadata.update(_about(shown))
        return "" if shown.parsed is None else shown.text

    if isinstance(all_shown, AsyncIterator):

        async def texts() -> AsyncGenerator[str, None]:
            if text := text_of(first):
                yield text
            async for shown in all_shown:
                if text := text_of(shown):
                    yield text

        return AsyncStreamingResponse(texts(), source_nodes=nodes, metadata=metadata)
    pieces = (text for shown in chain([first], all_shown) if (text := text_of(shown)))
    return StreamingResponse(pieces, source_nodes=nodes, metadata=metadata)


def _metadata(nodes: list[NodeWithScore]) -> dict[str, Any]:
    """The metadata of the nodes, in the same format as LlamaIndex's own synthesizers."""
    return {scored.node.node_id: scored.node.metadata for scored in nodes}


def _about(answer: Answer) -> dict[str, Any]:
    about: dict[str, Any] = {
        "method": answer.method,
        "route": answer.route,
        "calls": len(answer.calls),
        "usage": answer.usage._asdict(),
        "notes": list(answer.notes),
    }
    if answer.cited:
        about["citations"] = [citation.to_dict() for citation in answer.citations]
    return {METADATA_KEY: about}
