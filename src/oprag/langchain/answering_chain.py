"""What a chain is made of, and how it answers; `oprag.langchain.chain` is its public side."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from langchain_core.runnables import Runnable, RunnableConfig, RunnableSerializable
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, PrivateAttr, SkipValidation, model_validator

from oprag.errors import OptionError
from oprag.langchain.asking import Asked, ChainOutput, check_inputs, limit_of, merged, question_in, task_of
from oprag.langchain.backend import LangChainBackend
from oprag.langchain.embedder import as_embedder
from oprag.langchain.messages import as_template
from oprag.langchain.near_misses import CHAIN
from oprag.langchain.retriever import OrderPreservingRetriever, filter_of, with_store_defaults
from oprag.langchain.runs import as_run
from oprag.langchain.vectors import EmbeddingsFields
from oprag.langchain.wrapping import order_preserving, takes_all_inputs, with_inputs, without_retrievers
from oprag.method_fields import METHOD_OPTIONS, READ_SOURCE, MethodFields
from oprag.methods.answer import Answer
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import HELPERS, STEPS, as_prompts
from oprag.methods.registry import check_needs
from oprag.methods.sources import ReadSource, SourceReader, as_reader
from oprag.option_fields import OPTIONS, ContextFields, given_options
from oprag.options import OP_RAG_16K, check_text
from oprag.steps import iterate_async, iterate_sync, run_async, run_sync
from oprag.vector_fields import common_cache

__all__ = ["AnsweringChain", "Inputs", "once"]

Inputs = dict[str, Any] | str

Kept = list[Answer] | None

# As they are called here and in LangChain.
_OPTIONS = frozenset((*OPTIONS, *METHOD_OPTIONS, "search_kwargs", "search_type", "score_threshold", "top_k", "fetch_k"))
# What inputs and prompts of these names are taken for.
_TAKEN = ("chat_history", "filter", "answers", *HELPERS)


class AnsweringChain(EmbeddingsFields, MethodFields, ContextFields, RunnableSerializable[Inputs, dict[str, Any]]):
    """The parts of a chain, checked when it is made, and its work on one question."""

    # Frozen, since parts are checked and put together when the chain is made.
    model_config = ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True, frozen=True
    )

    _near_misses: ClassVar = CHAIN

    llm: SkipValidation[Runnable[Any, Any]] = Field(
        description="Any LangChain model, also one with retries, fallbacks or structured output."
    )
    retriever: SkipValidation[Any] = Field(
        description="Any retriever or vector store; wrapped in an OrderPreservingRetriever unless it is one."
    )
    read_source: SkipValidation[ReadSource | None] = Field(
        default=None, description=READ_SOURCE, exclude=True, repr=False
    )
    input_key: SkipValidation[str] = Field(default="input", description="Input key of the question.")
    output_key: SkipValidation[str] = Field(default="answer", description="Output key of the answer.")
    documents_key: SkipValidation[str | None] = Field(
        default="context", description="Output key of the documents; None leaves them out."
    )
    citations_key: SkipValidation[str | None] = Field(
        default="citations", description="Output key of the citations if cite=True; None leaves them out."
    )
    _retriever: OrderPreservingRetriever = PrivateAttr()
    _options: MethodOptions = PrivateAttr()
    _reader: SourceReader | None = PrivateAttr()

    # As values of the fields, so that what makes the chain again, as configurable fields do, hands them on.
    @model_validator(mode="before")
    @classmethod
    def _fill_in_store_defaults(cls, given: Any) -> Any:
        over_store = isinstance(given, dict) and isinstance(given.get("retriever"), VectorStore)
        return with_store_defaults(cls, given) if over_store else given

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if not isinstance(self.llm, Runnable):
            hint = '; pass init_chat_model("...")' if isinstance(self.llm, str) else ""
            raise OptionError(f"llm must be a LangChain model, got {type(self.llm).__name__}{hint}", self.llm)
        check_text("input_key", self.input_key)
        check_text("output_key", self.output_key)
        check_text("documents_key", self.documents_key, optional=True)
        check_text("citations_key", self.citations_key, optional=True)
        if not self.input_key or self.input_key in _TAKEN:
            raise OptionError(f"input_key cannot be {self.input_key!r}, which means something else", self.input_key)
        keys = (self.input_key, *self.output_keys)
        if len(set(keys)) < len(keys):
            raise OptionError("input_key, output_key, documents_key and citations_key must differ", self.output_key)
        self._reader = as_reader(self.read_source)
        given = given_options(self)
        if isinstance(self.retriever, VectorStore):
            # None as well: a retriever over a store has other defaults.
            given |= {name: getattr(self, name) for name in OP_RAG_16K}
        parts = {name: getattr(self, name) for name in ("embeddings", "vector_cache", "read_neighbors")}
        parts = {name: value for name, value in parts.items() if value is not None}
        self._retriever = order_preserving(self.retriever, given, parts)
        self._options = self._changed()
        retriever = self._searching()
        if retriever is not self._retriever:
            retriever._check_sources()  # noqa: SLF001
        if self.embeddings is not None and self._is_given_a_cache:
            self.cache_for(as_embedder(self.embeddings))
        return self

    @property
    def output_keys(self) -> list[str]:
        """The keys that the output has beside those of the input."""
        keys = (self.output_key, self.documents_key, self.citations_key if self.cite else None)
        return [key for key in keys if key is not None]

    def _searching(self) -> OrderPreservingRetriever:
        """The retriever with the cache of the chain, if that was given one."""
        cache = common_cache(self, self._retriever)
        same = cache is self._retriever.vector_cache
        return self._retriever if same else self._retriever.model_copy(update={"vector_cache": cache})

    def _invoke(self, given: Any, config: RunnableConfig, kept: Kept = None) -> dict[str, Any]:
        inputs = self._inputs(given)
        output = self._output(inputs)
        for shown in iterate_sync(self._asked(inputs, config).driven(streaming=False)):
            output.piece(shown)
        return output.whole(kept)

    async def _ainvoke(self, given: Any, config: RunnableConfig, kept: Kept = None) -> dict[str, Any]:
        inputs = self._inputs(given)
        output = self._output(inputs)
        async for shown in iterate_async(self._asked(inputs, config).driven(streaming=False)):
            output.piece(shown)
        return output.whole(kept)

    def _stream(self, given: Iterator[Any], config: RunnableConfig, kept: Kept = None) -> Iterator[dict[str, Any]]:
        inputs = self._inputs(merged(given))
        output = self._output(inputs)
        yield output.inputs()
        with closing(iterate_sync(self._asked(inputs, config).driven(streaming=True))) as all_shown:  # type: ignore[type-var]
            for shown in all_shown:
                if (piece := output.piece(shown)) is not None:
                    yield piece
        output.whole(kept)

    async def _astream(
        self, given: AsyncIterator[Any], config: RunnableConfig, kept: Kept = None
    ) -> AsyncIterator[dict[str, Any]]:
        inputs = self._inputs(merged([piece async for piece in given]))
        output = self._output(inputs)
        yield output.inputs()
        async with aclosing(iterate_async(self._asked(inputs, config).driven(streaming=True))) as all_shown:  # type: ignore[type-var]
            async for shown in all_shown:
                if (piece := output.piece(shown)) is not None:
                    yield piece
        output.whole(kept)

    def _streamed(
        self, given: Iterator[Any], config: RunnableConfig | None, kept: Kept = None
    ) -> Iterator[dict[str, Any]]:
        """The stream as a run."""
        return self._transform_stream_with_config(given, as_run(self._stream, kept=kept), config)

    async def _astreamed(
        self, given: AsyncIterator[Any], config: RunnableConfig | None, kept: Kept = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The stream as a run; who stops reading ends the model's stream as well, and not some time later."""
        run = self._atransform_stream_with_config(given, as_run(self._astream, kept=kept), config)
        async with aclosing(run) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                yield piece

    def _compare(
        self, given: Any, config: RunnableConfig, options: list[MethodOptions], kept: list[Answer]
    ) -> dict[str, Any]:
        for one in self._asked_together(self._inputs(given), config, options):
            run_sync(one.prepared())
            kept.append(run_sync(one.driven(streaming=False)))
        return {answer.method: answer.text for answer in kept}

    async def _acompare(
        self, given: Any, config: RunnableConfig, options: list[MethodOptions], kept: list[Answer]
    ) -> dict[str, Any]:
        for one in self._asked_together(self._inputs(given), config, options):
            await run_async(one.prepared())
            kept.append(await run_async(one.driven(streaming=False)))
        return {answer.method: answer.text for answer in kept}

    def _asked_together(
        self, inputs: dict[str, Any], config: RunnableConfig, options: list[MethodOptions]
    ) -> list[Asked]:
        """A question to several methods, which share what is found for it."""
        asked = [self._asked(inputs, config, one) for one in options]
        for one in asked:
            one.backend.found, one.backend.known = asked[0].backend.found, asked[0].backend.known
        return asked

    def _asked(self, inputs: dict[str, Any], config: RunnableConfig, options: MethodOptions | None = None) -> Asked:
        options = options or self._options
        retriever, wanted = self._searching(), inputs.get("filter")
        filter = partial(filter_of, retriever, wanted)
        if self._hands_on_all_inputs:
            filter = partial(inputs.get, "filter")
            # Such a chain deals with the conversation itself, and with a filter where it searches itself.
            wanted = None if without_retrievers(self.retriever) else wanted
            retriever = with_inputs(retriever, inputs, self.input_key)
            options = replace(options, condense=False)
        reader = None if self._reader is None else self._reader.filtered(filter)
        context_options = options.numbered(retriever.context_options)
        backend = LangChainBackend(self.llm, retriever, context_options, self.embeddings, reader, config, wanted)
        return Asked(task_of(inputs, self.input_key, options, backend), backend, limit_of(config, options))

    def _inputs(self, given: Any) -> dict[str, Any]:
        """What the chain was given, checked."""
        inputs = question_in(given, self.input_key)
        if len(inputs) > 1 and not self._hands_on_all_inputs:
            prompts = [getattr(self._options.prompts, step).fields for step in STEPS]
            check_inputs(inputs, frozenset((self.input_key, *self.output_keys)).union(*prompts), _OPTIONS)
        return inputs

    @property
    def _hands_on_all_inputs(self) -> bool:
        return self._retriever is not self.retriever and takes_all_inputs(self._retriever)

    def _output(self, inputs: dict[str, Any]) -> ChainOutput:
        retriever = self._retriever
        return ChainOutput(
            inputs,
            self.output_key,
            self.documents_key,
            self.citations_key if self.cite else None,
            stitch=retriever.stitch,
            annotate=retriever.annotate,
        )

    def _changed(self, **changes: Any) -> MethodOptions:
        """The options of the method, some of them changed, checked against what there is."""
        prompts = as_prompts(self.prompts, as_template)
        options = self._method_options(prompts=prompts, **changes)
        check_needs(options, embeddings=self.embeddings is not None, read_source=self._reader is not None)
        options.numbered(self._retriever.context_options)
        return options


async def once(given: Inputs) -> AsyncIterator[Inputs]:
    """An input in one piece."""
    yield given
