"""What a query engine is made of; `oprag.llama_index.query_engine` is its public side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

from llama_index.core import Settings
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore
from pydantic import ConfigDict, Field, PrivateAttr, SkipValidation, model_validator

from oprag.errors import OptionError
from oprag.llama_index.around import refuse_filter
from oprag.llama_index.backend import LlamaIndexBackend
from oprag.llama_index.compression import Compression, check_compression
from oprag.llama_index.embedder import as_embedder
from oprag.llama_index.index_fields import IndexFields
from oprag.llama_index.messages import as_template, history_of, shown_template, window_of
from oprag.llama_index.near_misses import ENGINE
from oprag.llama_index.postprocessor import OrderPreservingPostprocessor
from oprag.llama_index.response import Responding
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.masking import describe
from oprag.method_fields import READ_SOURCE, MethodFields
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import STEPS, as_prompts
from oprag.methods.registry import check_needs
from oprag.methods.sources import ReadSource, SourceReader, as_reader
from oprag.methods.task import Task
from oprag.option_fields import ContextFields, given_options
from oprag.options import ContextOptions, check_bool
from oprag.steps import Limit
from oprag.vector_fields import common_cache

__all__ = ["AnsweringEngine"]


class AnsweringEngine(IndexFields, MethodFields, ContextFields, BaseQueryEngine):
    """The parts of a query engine, checked when it is made."""

    # An option that is changed later is checked, and has an effect, as one that is given.
    model_config = ConfigDict(
        extra="forbid",
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=True,
        validate_assignment=True,
    )

    _near_misses: ClassVar = ENGINE

    llm: SkipValidation[LLM] = Field(
        default_factory=lambda: Settings.llm, description="Any LlamaIndex LLM; Settings.llm by default.", repr=False
    )
    retriever: SkipValidation[BaseRetriever] = Field(
        description="Any LlamaIndex retriever; an OrderPreservingRetriever keeps its own options."
    )
    node_postprocessors: SkipValidation[Sequence[BaseNodePostprocessor]] = Field(
        default=(), description="Postprocessors to apply before nodes are put in order, such as rerankers and cutoffs."
    )
    read_source: SkipValidation[ReadSource | None] = Field(
        default=None, description=READ_SOURCE, exclude=True, repr=False
    )
    streaming: SkipValidation[bool] = Field(default=False, description="Return a streaming response from query.")
    callback_manager: SkipValidation[CallbackManager] = Field(
        default_factory=lambda: Settings.callback_manager, description="LlamaIndex's callbacks.", exclude=True
    )
    _options: MethodOptions = PrivateAttr()
    _reader: SourceReader | None = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _none_is_the_default(cls, values: Any) -> Any:
        defaults = ("llm", "callback_manager", "node_postprocessors")
        return {name: value for name, value in dict(values).items() if value is not None or name not in defaults}

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        for name, value, kind in (("llm", self.llm, LLM), ("retriever", self.retriever, BaseRetriever)):
            if not isinstance(value, kind):
                hint = '; pass a model, such as OpenAI(model="...")' if kind is LLM and isinstance(value, str) else ""
                got = f"{type(value).__name__}{hint}"
                raise OptionError(f"{name} must be a LlamaIndex {kind.__name__}, got {got}", value)
        if any(isinstance(one, OrderPreservingPostprocessor) for one in self.node_postprocessors):
            raise OptionError(
                "the engine puts the nodes in order itself; leave OrderPreservingPostprocessor out of "
                "node_postprocessors, and give its options to the engine",
                self.node_postprocessors,
            )
        if self.embed_model is not None:
            as_embedder(self.embed_model)
        for postprocessor in self.node_postprocessors:
            if not isinstance(postprocessor, BaseNodePostprocessor):
                raise OptionError(
                    f"node_postprocessors must be LlamaIndex node postprocessors, got {describe(postprocessor)}",
                    postprocessor,
                )
            postprocessor.callback_manager = self.callback_manager
        check_bool("streaming", self.streaming)
        if isinstance(self.retriever, OrderPreservingRetriever):
            # The engine's own model serves its methods; one cache serves both.
            parts = [name for name in ("read_neighbors", "index") if getattr(self, name) is not None]
            theirs = [*given_options(self), *parts]
            if theirs:
                raise OptionError(
                    "the retriever is an OrderPreservingRetriever with options of its own; set "
                    f"{', '.join(theirs)} there",
                    theirs,
                )
            self._compression()
        else:
            check_compression(self._compression(), self._context_options())
        if self.embed_model is not None and self._is_given_a_cache:
            self.cache_for(as_embedder(self.embed_model))
        refuse_filter("read_source", self.read_source)
        reader = as_reader(self.read_source)
        self._options = self._changed(reader)
        self._reader = reader
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        # A value that is refused must not stay, as pydantic has it where a check of the whole refuses it.
        before = self.__dict__.get(name)
        try:
            super().__setattr__(name, value)
        except ValueError:
            if name in type(self).model_fields:
                self.__dict__[name] = before
            raise

    def _changed(self, reader: SourceReader | None, **changes: Any) -> MethodOptions:
        """The options of the method, some of them changed, checked against what there is."""
        options = self._method_options(prompts=as_prompts(self.prompts, partial(as_template, llm=self.llm)), **changes)
        check_needs(
            options,
            embeddings=self._used_model() is not None,
            read_source=reader is not None,
            text=not isinstance(self.llm, StructuredLLM),
            embedder_option=self._embedder_option,
        )
        options.numbered(self._assembly_now())
        return options

    def _assembly_now(self) -> ContextOptions:
        """How contexts are made: an OrderPreservingRetriever has options of its own, which may change."""
        ours = isinstance(self.retriever, OrderPreservingRetriever)
        return self.retriever.context_options if ours else self._context_options(stitch=True)  # type: ignore[attr-defined]

    def _backend(self, options: MethodOptions) -> LlamaIndexBackend:
        """What one question takes."""
        # An OrderPreservingRetriever would hand on its nodes in order, and their ranks would be lost.
        given = self.retriever
        retriever = given.retriever if isinstance(given, OrderPreservingRetriever) else given
        context_options = options.numbered(self._assembly_now())
        return LlamaIndexBackend(
            self.llm,
            retriever,
            self.node_postprocessors,
            context_options,
            self._compression(),
            common_cache(self, given) if isinstance(given, OrderPreservingRetriever) else self.vector_cache,
            self._used_model(),
            self._reader,
            options.prompts,
        )

    def _compression(self) -> Compression:
        """Where vectors and neighbours come from: an OrderPreservingRetriever has its own, and shares a cache."""
        if isinstance(self.retriever, OrderPreservingRetriever):
            cache = common_cache(self, self.retriever)
            return self.retriever.model_copy(update={"vector_cache": cache}).compression
        return self._compression_over(self._context_options(), self.retriever)

    def _used_model(self) -> Any:
        """The embedding model of the methods: the engine's, else that of its retriever."""
        ours = isinstance(self.retriever, OrderPreservingRetriever)
        if ours and self.embed_model is None:
            return self.retriever.embed_model_over(self.retriever.retriever)  # type: ignore[attr-defined]
        return self.embed_model_over(self.retriever)

    def _get_prompts(self) -> PromptDictType:
        return {name: shown_template(getattr(self._options.prompts, name)) for name in STEPS}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self.prompts = as_prompts(prompts, partial(as_template, llm=self.llm), self._options.prompts)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    @property
    def _stop_early(self) -> bool:
        return self._options.on_error == "raise"

    def _limit(self) -> Limit:
        return Limit(self._options.max_concurrency)

    def _task(
        self,
        question: str,
        options: MethodOptions,
        backend: LlamaIndexBackend,
        choices: Sequence[str] = (),
        chat_history: Sequence[Any] = (),
    ) -> Task:
        """A question to answer.

        Raises:
            QueryError: The question is empty, or what belongs to it is not what it should be.
        """
        history = history_of(chat_history)
        window = window_of(self.llm, backend.context_options.count_tokens)
        return Task(question, options, backend.context_options, choices, history, window=window)  # type: ignore[arg-type]

    def _responding(self, more: Sequence[NodeWithScore] = ()) -> Responding:
        """What makes the response, with the nodes as the retriever or the engine is asked to give them."""
        ours = self.retriever if isinstance(self.retriever, OrderPreservingRetriever) else self
        return Responding(stitch=ours.stitch, annotate=ours.annotate, more=more)
