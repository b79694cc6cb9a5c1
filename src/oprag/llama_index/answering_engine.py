"""What a query engine is made of; `oprag.llama_index.query_engine` is its public side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

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
from oprag.llama_index.backend import LlamaIndexBackend
from oprag.llama_index.embedder import as_embedder
from oprag.llama_index.messages import as_template, history_of, shown_template, window_of
from oprag.llama_index.near_misses import ENGINE
from oprag.llama_index.neighbors import refuse_filter
from oprag.llama_index.postprocessor import OrderPreservingPostprocessor
from oprag.llama_index.response import Responding
from oprag.llama_index.retriever import OrderPreservingRetriever
from oprag.llama_index.vectors import IndexFields
from oprag.masking import describe
from oprag.method_fields import READ_SOURCE, MethodFields
from oprag.methods.options import MethodOptions
from oprag.methods.prompts import STEPS, as_prompts
from oprag.methods.registry import check_needs
from oprag.methods.sources import ReadSource, SourceReader, as_reader
from oprag.methods.task import Task
from oprag.option_fields import given_options
from oprag.options import ContextOptions, check_bool
from oprag.steps import Limit
from oprag.vector_fields import common_cache

__all__ = ["AnsweringEngine"]


class AnsweringEngine(MethodFields, IndexFields, BaseQueryEngine):
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

    def _check(self) -> None:
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
        for postprocessor in self.node_postprocessors:
            if not isinstance(postprocessor, BaseNodePostprocessor):
                raise OptionError(
                    f"node_postprocessors must be LlamaIndex node postprocessors, got {describe(postprocessor)}",
                    postprocessor,
                )
            postprocessor.callback_manager = self.callback_manager
        check_bool("streaming", self.streaming)
        if (ours := self._ours) is not None:
            # The engine's own model serves its methods; one cache serves both.
            parts = [name for name in ("read_neighbors", "index") if getattr(self, name) is not None]
            theirs = [*given_options(self), *parts]
            if theirs:
                raise OptionError(
                    "the retriever is an OrderPreservingRetriever with options of its own; set "
                    f"{', '.join(theirs)} there",
                    theirs,
                )
            ours._sources(ours.context_options, common_cache(self, ours))  # noqa: SLF001
        super()._check()
        if self.embed_model is not None and self._is_given_a_cache:
            self.cache_for(as_embedder(self.embed_model))
        refuse_filter("read_source", self.read_source)
        reader = as_reader(self.read_source)
        self._options = self._changed(reader)
        self._reader = reader

    @property
    def _ours(self) -> OrderPreservingRetriever | None:
        return self.retriever if isinstance(self.retriever, OrderPreservingRetriever) else None

    @property
    def _searched(self) -> BaseRetriever:
        return self.retriever

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
        return self._stitched_options if (ours := self._ours) is None else ours.context_options

    def _backend(self, options: MethodOptions) -> LlamaIndexBackend:
        """What one question takes."""
        # An OrderPreservingRetriever would hand on its nodes in order, and their ranks would be lost.
        ours = self._ours
        cache = self.vector_cache if ours is None else common_cache(self, ours)
        context_options = options.numbered(self._assembly_now())
        return LlamaIndexBackend(
            self.llm,
            self.retriever if ours is None else ours.retriever,
            self.node_postprocessors,
            context_options,
            (ours or self)._sources(context_options, cache),  # noqa: SLF001
            cache,
            self._used_model(),
            self._reader,
            options.prompts,
        )

    def _used_model(self) -> Any:
        """The embedding model of the methods: the engine's, else that of its retriever."""
        ours = self._ours
        return self._model() if ours is None or self.embed_model is not None else ours._model()  # noqa: SLF001

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
        ours = self._ours or self
        return Responding(stitch=ours.stitch, annotate=ours.annotate, more=more)
