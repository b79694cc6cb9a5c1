"""The order as a node postprocessor."""

from __future__ import annotations

import pickle
from typing import Any, ClassVar, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel, ConfigDict

from oprag.assembly.select import warn_about_few
from oprag.context import Context
from oprag.llama_index.near_misses import POSTPROCESSOR
from oprag.llama_index.nodes import chunks_of, context_of, nodes_of
from oprag.llama_index.saving import LEFT_OUT, loaded, without_functions
from oprag.llama_index.vectors import IndexFields
from oprag.option_fields import callables
from oprag.options import ContextOptions
from oprag.steps import Steps, run_async, run_sync

__all__ = ["OrderPreservingPostprocessor"]

dispatcher = get_dispatcher(__name__)


class OrderPreservingPostprocessor(IndexFields, BaseNodePostprocessor):
    """Puts retrieved nodes into the order of their source.

    Ranks are the places in the given list, so it comes after rerankers and cutoffs, as the last postprocessor. A
    token budget counts what LlamaIndex's synthesizers show of a node, its metadata included.

    Args:
        annotate: Return copies of the nodes with rank, score, position and span under the metadata key "oprag", which
            is neither embedded nor shown to the model.
        index: For thresholds: the index that the nodes come from. Its store gives the vectors, and its embedding model
            makes those that are missing.
        embed_model: An embedding model or an `oprag.Embedder`; by default that of the index, else
            `Settings.embed_model` if you set it.
        vector_cache: Cache of computed vectors; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: an index, a docstore, or a function of a node and a number that returns the
            nodes around it. They are used whatever the filter of the search, which a postprocessor does not see.
        read_source: Where the texts of whole sources come from: a folder of text, Markdown and PDF files, a mapping of
            source names to texts, or a function of the name. Chunks whose metadata do not tell their order are looked
            for in the text of their source, which is read once.
        store_order: With `index`: whether the sequence in which its store received the nodes of a source is used where
            nothing else tells their order.
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
        extra="forbid",
        arbitrary_types_allowed=True,
        hide_input_in_errors=True,
        defer_build=False,
        validate_assignment=True,
    )

    _near_misses: ClassVar = POSTPROCESSOR

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
            ChunkError: Something is not a `NodeWithScore`.
            BudgetError: Nodes were given, and none fits `token_budget`.
            EmbeddingError: A threshold is set, and a vector cannot be had or cannot be used.
        """
        bundle = QueryBundle(query) if isinstance(query, str) else query
        return run_sync(self._context(nodes, bundle, self._stitched_options))

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
        context = yield from self._context(nodes, query, self._given_options, as_nodes=True)
        return nodes_of(context, annotate=self.annotate)

    def _context(
        self, nodes: list[NodeWithScore], query: QueryBundle | None, options: ContextOptions, *, as_nodes: bool = False
    ) -> Steps[Context]:
        chunks = chunks_of(nodes)
        if options.k is not None:
            warn_about_few(chunks, options.k)
        sources = self._sources(options) if self._needs_sources else None
        return (yield from context_of(chunks, query, options, sources, self._find_positions, as_nodes=as_nodes))

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The options as values that JSON can hold; functions and parts are left out, and named under "left_out"."""
        return without_functions(super().to_dict(**kwargs), self._not_saved())

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """A postprocessor from `to_dict`; what was left out there can be given as a keyword.

        Raises:
            ValidationError: An option is unknown or invalid.
        """
        return cls(**loaded(data, kwargs))

    def _not_saved(self) -> list[str]:
        """The functions and parts that were given, which JSON cannot hold."""
        parts = [
            name
            for name in ("index", "embed_model", "read_neighbors", "read_source")
            if getattr(self, name) is not None
        ]
        return [*callables(self), *parts, *(["vector_cache"] if self.vector_cache.path is not None else [])]

    def __getstate__(self) -> dict[str, Any]:
        # LlamaIndex deletes what cannot be pickled from the object itself, and says nothing when it is loaded.
        state = BaseModel.__getstate__(self)
        options = {name: value for name, value in state["__dict__"].items() if _can_be_pickled(value)}
        lost = [name for name in self._not_saved() if name not in options]
        return {**state, "__dict__": options | ({LEFT_OUT: lost} if lost else {}), "__pydantic_private__": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**loaded(state["__dict__"], {}))  # type: ignore[misc]


def _can_be_pickled(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:  # noqa: BLE001 - objects raise what they like
        return False
    return True
