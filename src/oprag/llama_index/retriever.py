"""A retriever around any LlamaIndex retriever that gives its nodes in the order of their source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import ConfigDict, Field, PrivateAttr, field_validator, model_validator

from oprag.assembly.render import Show
from oprag.assembly.select import warn_about_few
from oprag.context import Context
from oprag.errors import OptionError
from oprag.llama_index.compression import Compression, check_compression
from oprag.llama_index.embedder import as_embedder
from oprag.llama_index.index_fields import IndexFields
from oprag.llama_index.near_misses import RETRIEVER
from oprag.llama_index.nodes import nodes_of, shown
from oprag.option_fields import ContextFields
from oprag.options import ContextOptions, everything_kept
from oprag.question import check_question, check_questions
from oprag.steps import Step, Steps, run_async, run_sync

if TYPE_CHECKING:
    from oprag.assembly.threshold_report import ThresholdReport

__all__ = ["OrderPreservingRetriever"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingRetriever(IndexFields, ContextFields, BaseRetriever):
    """Gives the nodes of another retriever in the order of their source.

    For places that take a retriever and no postprocessors; elsewhere `OrderPreservingPostprocessor` does the same.
    Fusion and rerankers belong inside.

    Args:
        retriever: Any LlamaIndex retriever; what it gives is ranked by its place in the list.
        annotate: See `OrderPreservingPostprocessor`.
        index: For thresholds and neighbours: the index that the nodes come from, where the wrapped retriever is not one
            of an index itself; see `OrderPreservingPostprocessor`.
        embed_model: For the thresholds, where vectors have to be made: an embedding model or an `oprag.Embedder`; by
            default that of the wrapped retriever's index, else `Settings.embed_model` if you set it.
        vector_cache: Where vectors that were made are kept; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: a docstore, or a function of a node and a number that returns the nodes around
            it; by default the docstore of the index, if `retriever` is a `VectorIndexRetriever` without
            `vector_store_kwargs`. Nodes of a docstore pass the filters of such a retriever; those of a function are
            used whatever the filters.
        callback_manager: LlamaIndex's callbacks.
        **options: The options of `oprag.ContextOptions`; `stitch` is off by default.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).
    """

    model_config = ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=False
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

    @model_validator(mode="after")
    def _check_what_is_wrapped(self) -> Self:
        if isinstance(self.retriever, OrderPreservingRetriever):
            raise OptionError(
                "the wrapped retriever already is an OrderPreservingRetriever: in an ordered list the place of a "
                "node no longer says how good it is; set its own options instead",
                self.retriever,
            )
        if self.embed_model is not None:
            as_embedder(self.embed_model)
        context_options = self._context_options()
        check_compression(self.compression, context_options)
        return self

    @property
    def context_options(self) -> ContextOptions:
        """The options as `ContextOptions`, for the context: its text is stitched, whatever `stitch` says."""
        return self._context_options(stitch=True)

    def get_context(self, query: str | QueryBundle) -> Context:
        """The context for a question: passages, what was dropped and why, tokens and text.

        Raises:
            QueryError: The question is empty or no string.
            BudgetError: Nodes were found, and not one fits `token_budget`.
        """
        return run_sync(self._context(_checked(query), self.context_options))

    async def aget_context(self, query: str | QueryBundle) -> Context:
        """As `get_context`, async."""
        return await run_async(self._context(_checked(query), self.context_options))

    def threshold_report(self, questions: Sequence[str]) -> ThresholdReport:
        """Which cosines the nodes have that are found for these questions, and which thresholds follow from that.

        Args:
            questions: Questions as users ask them; some tens of them say enough.

        Returns:
            The report, a table when it is printed.

        Raises:
            QueryError: A question is empty or no string, or none of them finds anything.
            EmbeddingError: There is nothing that makes vectors.
        """
        from oprag.assembly.threshold_report import report_thresholds

        context_options = everything_kept(self.context_options)
        contexts = [run_sync(self._context(_checked(one), context_options)) for one in check_questions(questions)]
        return report_thresholds(contexts, self._compression(context_options).sources.name)

    async def athreshold_report(self, questions: Sequence[str]) -> ThresholdReport:
        """As `threshold_report`, async."""
        from oprag.assembly.threshold_report import report_thresholds

        context_options = everything_kept(self.context_options)
        contexts = [
            await run_async(self._context(_checked(one), context_options)) for one in check_questions(questions)
        ]
        return report_thresholds(contexts, self._compression(context_options).sources.name)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        context_options = self._context_options()
        context = run_sync(self._context(_checked(query_bundle), context_options, shown(context_options)))
        return nodes_of(context, annotate=self.annotate)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        context_options = self._context_options()
        context = await run_async(self._context(_checked(query_bundle), context_options, shown(context_options)))
        return nodes_of(context, annotate=self.annotate)

    def _context(self, query: QueryBundle, context_options: ContextOptions, show: Show | None = None) -> Steps[Context]:
        """What is done for a question, sync or async."""
        compression, inner = self._compression(context_options), self.retriever
        asked = yield from compression.prepared(query, inner, context_options)
        nodes = yield Step(lambda: inner.retrieve(asked), lambda: inner.aretrieve(asked))
        warn_about_few(nodes, context_options.k)
        return (yield from compression.context(nodes, asked, context_options, show))

    @property
    def compression(self) -> Compression:
        """Where the vectors and the neighbours of nodes come from."""
        return self._compression(self._context_options())

    def _compression(self, context_options: ContextOptions) -> Compression:
        return self._compression_over(context_options, self.retriever)

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


def _checked(query: str | QueryBundle) -> QueryBundle:
    """The query as a bundle; one with a vector or a picture needs no words."""
    bundle = query if isinstance(query, QueryBundle) else QueryBundle(query)
    if bundle.embedding is None and bundle.image_path is None:
        check_question(bundle.query_str)
    return bundle
