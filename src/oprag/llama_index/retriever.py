"""A retriever around any LlamaIndex retriever that returns its nodes in the order of their source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from oprag.assembly.select import warn_about_few
from oprag.context import Context
from oprag.errors import OptionError
from oprag.llama_index.near_misses import RETRIEVER
from oprag.llama_index.nodes import chunks_of, context_of, nodes_of
from oprag.llama_index.vectors import IndexFields, NodeSources
from oprag.options import ContextOptions, check_question, check_questions, everything_kept
from oprag.steps import Step, Steps, run_async, run_sync

if TYPE_CHECKING:
    from oprag.assembly.threshold_report import ThresholdReport

__all__ = ["OrderPreservingRetriever"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingRetriever(IndexFields, BaseRetriever):
    """Returns the nodes of another retriever in the order of their source.

    For places that take a retriever and no postprocessors; elsewhere `OrderPreservingPostprocessor` does the same.
    Fusion and rerankers belong inside.

    Args:
        retriever: Any LlamaIndex retriever; its nodes are ranked by their place in the list.
        annotate: See `OrderPreservingPostprocessor`.
        index: For thresholds and neighbours: the index that the nodes come from, where the wrapped retriever is not one
            of an index itself; see `OrderPreservingPostprocessor`.
        embed_model: For the thresholds, where vectors have to be made: an embedding model or an `oprag.Embedder`; by
            default that of the wrapped retriever's index, else `Settings.embed_model` if you set it.
        vector_cache: Cache of computed vectors; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: an index, a docstore, or a function of a node and a number that returns the
            nodes around it; by default the docstore and the store of the index, if `retriever` is a
            `VectorIndexRetriever`. Nodes of an index or a docstore pass the filters of such a retriever; those of a
            function are used whatever the filters.
        read_source: See `OrderPreservingPostprocessor`.
        store_order: Around a `VectorIndexRetriever`, or with `index`: whether the sequence in which the store received
            the nodes of a source is used where nothing else tells their order.
        callback_manager: LlamaIndex's callbacks.
        **options: The options of `oprag.ContextOptions`; `stitch` is off by default.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).
    """

    model_config = ConfigDict(
        extra="forbid",
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=False,
        validate_assignment=True,
    )

    _near_misses: ClassVar = RETRIEVER

    retriever: BaseRetriever = Field(
        description="Any LlamaIndex retriever; its nodes are ranked by their place in the list."
    )
    callback_manager: CallbackManager = Field(
        default_factory=CallbackManager, description="LlamaIndex's callbacks.", exclude=True
    )
    # BaseRetriever's own state, which its constructor would set; this class is constructed by pydantic.
    _object_map: dict[str, Any] = PrivateAttr(default_factory=dict)
    _verbose: bool = PrivateAttr(default=False)

    @field_validator("callback_manager", mode="before")
    @classmethod
    def _none_is_the_default(cls, value: Any) -> Any:
        return CallbackManager() if value is None else value

    def _check(self) -> None:
        if isinstance(self.retriever, OrderPreservingRetriever):
            raise OptionError(
                "the wrapped retriever already is an OrderPreservingRetriever: in an ordered list the place of a "
                "node no longer says how good it is; set its own options instead",
                self.retriever,
            )
        super()._check()

    @property
    def _searched(self) -> BaseRetriever:
        return self.retriever

    @property
    def context_options(self) -> ContextOptions:
        """The options as `ContextOptions`, for the context: its text is stitched, whatever `stitch` says."""
        return self._stitched_options

    def get_context(self, query: str | QueryBundle) -> Context:
        """The context for a question: passages, what was dropped and why, tokens and text.

        Args:
            query: The question; one with a vector or a picture needs no words.

        Raises:
            QueryError: The question is empty or not a string.
            BudgetError: Nodes were found, and none fits `token_budget`.
            EmbeddingError: A threshold is set, and a vector cannot be had or cannot be used.
        """
        return run_sync(self._found(query, self.context_options))

    async def aget_context(self, query: str | QueryBundle) -> Context:
        """Async version of `get_context`."""
        return await run_async(self._found(query, self.context_options))

    def threshold_report(self, questions: Sequence[str]) -> ThresholdReport:
        """The cosine similarities of the nodes that are found for these questions, and the thresholds that follow.

        Args:
            questions: Questions as users ask them; a few tens are enough.

        Returns:
            The report; printed, it is a table.

        Raises:
            QueryError: A question is empty or not a string, or none finds anything.
            EmbeddingError: There is no embedding model.
        """
        return run_sync(self._thresholds(questions))

    async def athreshold_report(self, questions: Sequence[str]) -> ThresholdReport:
        """Async version of `threshold_report`."""
        return await run_async(self._thresholds(questions))

    def _thresholds(self, questions: Sequence[str]) -> Steps[ThresholdReport]:
        from oprag.assembly.threshold_report import report_thresholds

        options = everything_kept(self.context_options)
        sources = self._sources(options)
        contexts: list[Context] = []
        for question in check_questions(questions):
            contexts.append((yield from self._found(question, options, sources)))  # noqa: PERF401 - yields
        return report_thresholds(contexts, sources.vectors.name if sources else "")

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_sync(self._nodes(query_bundle))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_async(self._nodes(query_bundle))

    def _nodes(self, query: QueryBundle) -> Steps[list[NodeWithScore]]:
        context = yield from self._found(query, self._given_options, as_nodes=True)
        return nodes_of(context, annotate=self.annotate)

    def _found(
        self,
        query: str | QueryBundle,
        options: ContextOptions,
        sources: NodeSources | None = None,
        *,
        as_nodes: bool = False,
    ) -> Steps[Context]:
        """The context of what the wrapped retriever finds."""
        bundle = query if isinstance(query, QueryBundle) else QueryBundle(query)
        if bundle.embedding is None and bundle.image_path is None:
            check_question(bundle.query_str)
        inner = self.retriever
        if sources is None and self._needs_sources:
            sources = self._sources(options)
        if sources is not None:
            bundle = yield from sources.with_vector(bundle)
        nodes = yield Step(lambda: inner.retrieve(bundle), lambda: inner.aretrieve(bundle))
        chunks = chunks_of(nodes)
        if options.k is not None:
            warn_about_few(chunks, options.k)
        return (yield from context_of(chunks, bundle, options, sources, self._find_positions, as_nodes=as_nodes))

    def _handle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        # The wrapped retriever has resolved its nodes already; doing it again would put the new ones out of order.
        return nodes

    async def _ahandle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        return nodes

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"retriever": self.retriever}
