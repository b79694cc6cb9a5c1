"""A retriever that wraps any LlamaIndex retriever and returns nodes in the order of their source."""

from __future__ import annotations

from typing import Any, ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import Field, PrivateAttr, field_validator

from oprag._internal.sync_async import Steps, run_async, run_sync
from oprag.adapters.fields import PUBLIC_CONFIG
from oprag.adapters.name_hints import LLAMA_INDEX
from oprag.context import Context
from oprag.llama_index.nodes import nodes_of
from oprag.llama_index.vectors import IndexFields, refuse_reordered
from oprag.options import ContextOptions, check_question

__all__ = ["OrderPreservingRetriever"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingRetriever(IndexFields, BaseRetriever):
    """Returns the nodes of another retriever in the order of their source.

    Use it where a retriever is expected and postprocessors cannot be added; otherwise `OrderPreservingPostprocessor`
    does the same. Put fusion and rerankers inside.

    Args:
        retriever: Any LlamaIndex retriever; the rank of a node is its index in the list.
        annotate: See `OrderPreservingPostprocessor`.
        index: The index of the nodes, if it is not found in the wrapped retriever, as it is in LlamaIndex's own
            retrievers of an index and those that wrap or fuse them; see `OrderPreservingPostprocessor`.
        embed_model: For thresholds, if vectors must be computed: an embedding model or an `oprag.Embedder`; by default
            that of the wrapped retriever's index, else `Settings.embed_model` if you set it.
        vector_cache: Cache of computed vectors; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: an index, a docstore, or a function that takes a node and a number and returns
            the nodes around it; by default the store of the index, if `retriever` is a
            `VectorIndexRetriever`. The filters of such a retriever are applied to nodes of an index or a docstore, but
            not to the results of a function.
        read_source: See `OrderPreservingPostprocessor`.
        store_order: If the index is known: whether the insertion order of its store or docstore is used for sources
            whose order is unknown otherwise.
        callback_manager: LlamaIndex's callbacks.
        **options: The options of `oprag.ContextOptions`; `stitch` is off by default.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).
    """

    model_config = PUBLIC_CONFIG

    _name_hints: ClassVar = LLAMA_INDEX

    retriever: BaseRetriever = Field(
        description="Any LlamaIndex retriever; the rank of a node is its index in the list."
    )
    callback_manager: CallbackManager = Field(
        default_factory=CallbackManager, description="LlamaIndex's callbacks.", exclude=True
    )
    # State that BaseRetriever's constructor would set; this class is constructed by pydantic instead.
    _object_map: dict[str, Any] = PrivateAttr(default_factory=dict)
    _verbose: bool = PrivateAttr(default=False)

    @field_validator("callback_manager", mode="before")
    @classmethod
    def _none_is_the_default(cls, value: Any) -> Any:
        return CallbackManager() if value is None else value

    def _check(self) -> None:
        refuse_reordered(self.retriever)
        super()._check()

    @property
    def context_options(self) -> ContextOptions:
        """The options as `ContextOptions`, for contexts; always with `stitch=True`."""
        return self._stitching_options

    def get_context(self, query: str | QueryBundle) -> Context:
        """Retrieve the context for a question: passages, dropped chunks with reasons, token count and text.

        Args:
            query: The question; its text may be empty if the `QueryBundle` contains a vector or an image path.

        Raises:
            QueryError: The question is empty or not a string.
            BudgetError: None of the retrieved nodes fits `token_budget`.
            EmbeddingError: A threshold is set, and a vector is missing or unusable.
        """
        return run_sync(self._asked(query, self.context_options))

    async def aget_context(self, query: str | QueryBundle) -> Context:
        """Async version of `get_context`."""
        return await run_async(self._asked(query, self.context_options))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_sync(self._nodes(query_bundle))

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_async(self._nodes(query_bundle))

    def _nodes(self, query: QueryBundle) -> Steps[list[NodeWithScore]]:
        context = yield from self._asked(query, self._context_options, as_nodes=True)
        return nodes_of(context, annotate=self.annotate)

    def _asked(self, query: str | QueryBundle, options: ContextOptions, *, as_nodes: bool = False) -> Steps[Context]:
        bundle = query if isinstance(query, QueryBundle) else QueryBundle(query)
        if bundle.embedding is None and bundle.image_path is None:
            check_question(bundle.query_str)
        return self._found(bundle, options, as_nodes=as_nodes)

    def _handle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        # The wrapped retriever has already resolved its nodes; resolving them again would break the order.
        return nodes

    async def _ahandle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        return nodes

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"retriever": self.retriever}
