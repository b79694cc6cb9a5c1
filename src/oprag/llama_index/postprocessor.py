"""The order as a node postprocessor."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import ConfigDict, model_validator

from oprag.assembly.select import warn_about_few
from oprag.context import Context
from oprag.llama_index.compression import check_compression
from oprag.llama_index.embedder import as_embedder
from oprag.llama_index.index_fields import IndexFields
from oprag.llama_index.near_misses import POSTPROCESSOR
from oprag.llama_index.nodes import nodes_of, shown
from oprag.llama_index.saving import LEFT_OUT, loaded, without_functions
from oprag.option_fields import ContextFields, callables
from oprag.steps import Steps, run_async, run_sync

__all__ = ["OrderPreservingPostprocessor"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingPostprocessor(IndexFields, ContextFields, BaseNodePostprocessor):
    """Puts retrieved nodes into the order of their source.

    Ranks are the places in the given list, so it stands behind rerankers and cutoffs, as the last postprocessor. A
    token budget counts what LlamaIndex's synthesizers show of a node, its metadata included.

    Args:
        annotate: Give copies of the nodes with rank, score, position and span under the metadata key "oprag", which is
            neither embedded nor shown to the model.
        index: For thresholds: the index that the nodes come from. Its store gives the vectors, and its embedding model
            makes those that are missing.
        embed_model: An embedding model or an `oprag.Embedder`; by default that of the index, else
            `Settings.embed_model` if you set it.
        vector_cache: Where vectors that were made are kept; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: a docstore, or a function of a node and a number that returns the nodes around
            it. They are used whatever the filter of the search, which a postprocessor does not see.
        **options: The options of `oprag.ContextOptions`. `stitch` is off by default: the given nodes come back, the
            same objects. With `stitch=True` there is one node a passage.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> def node(text, page, score):
        ...     metadata = {"file_name": "abc", "page_label": page}
        ...     return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)
        >>> nodes = [node("ten", "10", 0.9), node("preface", "iv", 0.8), node("nine", "9", 0.7)]
        >>> [scored.text for scored in OrderPreservingPostprocessor().postprocess_nodes(nodes)]
        ['preface', 'nine', 'ten']
    """

    model_config = ConfigDict(
        extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=False
    )

    _near_misses: ClassVar = POSTPROCESSOR

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if self.embed_model is not None:
            as_embedder(self.embed_model)
        context_options = self._context_options()
        check_compression(self._compression_over(context_options), context_options)
        return self

    @classmethod
    def class_name(cls) -> str:
        """The name under which it is serialized."""
        return "OrderPreservingPostprocessor"

    def get_context(self, nodes: list[NodeWithScore], query: str | QueryBundle | None = None) -> Context:
        """The context that these nodes, best first, make: passages, what was dropped and why, tokens and text.

        The text is stitched, whatever `stitch` says about the nodes.

        Args:
            nodes: The nodes.
            query: What was asked, for `similarity_threshold`.

        Raises:
            ChunkError: Something is no `NodeWithScore`.
            BudgetError: Nodes were given, and not one fits `token_budget`.
            EmbeddingError: A threshold is set, and a vector cannot be had or cannot be used.
        """
        bundle = QueryBundle(query) if isinstance(query, str) else query
        context_options = self._context_options(stitch=True)
        context = run_sync(self._compression_over(context_options).context(nodes, bundle, context_options))
        _warn_about_few(context)
        return context

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run_sync(self._ordered(nodes, query_bundle))

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await run_async(self._ordered(nodes, query_bundle))

    def _ordered(self, nodes: list[NodeWithScore], query: QueryBundle | None) -> Steps[list[NodeWithScore]]:
        """What is done, sync or async."""
        context_options = self._context_options()
        context = yield from self._compression_over(context_options).context(
            nodes, query, context_options, shown(context_options)
        )
        _warn_about_few(context)
        return nodes_of(context, annotate=self.annotate)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The options as values that JSON can hold; functions and parts are left out, and named under "left_out"."""
        return without_functions(super().to_dict(**kwargs), [*callables(self), *self._left_out()])

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """A postprocessor from `to_dict`; what was left out there can be given as a keyword.

        Raises:
            ValidationError: An option is unknown or has a value that it cannot have.
        """
        return cls(**loaded(data, kwargs))

    def __getstate__(self) -> dict[str, Any]:
        functions, mine = callables(self), dict(self.__dict__)
        state = super().__getstate__()
        options = dict(state["__dict__"])
        # LlamaIndex deletes what cannot be pickled, from the object itself.
        self.__dict__.update(mine)
        lost = [name for name in functions if name not in options]
        return {**state, "__dict__": options | ({LEFT_OUT: lost} if lost else {})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "__dict__": loaded(state["__dict__"], {})})


def _warn_about_few(context: Context) -> None:
    warn_about_few(() if context.inputs is None else context.inputs.chunks, context.options.k)
