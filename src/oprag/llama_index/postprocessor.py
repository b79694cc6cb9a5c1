"""The source order as a node postprocessor."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from oprag._internal.sync_async import Steps, run_async, run_sync
from oprag._internal.tokens import approximate_tokens
from oprag._internal.warn import warn
from oprag.adapters.fields import OPTIONS, PUBLIC_CONFIG
from oprag.adapters.name_hints import LLAMA_INDEX_POSTPROCESSOR
from oprag.context import Context
from oprag.errors import RetrievalWarning, SerializationWarning
from oprag.llama_index.nodes import nodes_of
from oprag.llama_index.vectors import IndexFields
from oprag.options import ContextOptions
from oprag.pipeline.select import warn_about_few

__all__ = ["OrderPreservingPostprocessor"]

dispatcher = get_dispatcher(__name__)

_LEFT_OUT = "left_out"
_MIN_SCORES = 8  # fewer different ones can be in any order by chance


class OrderPreservingPostprocessor(IndexFields, BaseNodePostprocessor):
    """Puts retrieved nodes in the order of their source.

    A node's rank is its index in the given list, so put this after rerankers and cutoffs, as the last postprocessor.
    The token budget counts the text that LlamaIndex's synthesizers show of each node, including its metadata.

    Args:
        annotate: Return copies of the nodes with rank, score, position and span under the metadata key "oprag", which
            is neither embedded nor shown to the model.
        index: The index of the nodes, of any kind. Its store or docstore tells the order of nodes whose metadata do
            not, such as those of a `HierarchicalNodeParser`. For thresholds, vectors are read from its store, and
            missing ones are computed with its embedding model.
        embed_model: An embedding model or an `oprag.Embedder`; by default that of the index, else
            `Settings.embed_model` if you set it.
        vector_cache: Cache of computed vectors; 256 MiB in memory by default.
        read_neighbors: For `neighbors`: an index, a docstore, or a function that takes a node and a number and returns
            the nodes around it. The filter of the search is not applied to neighbors, because a postprocessor does not
            receive it.
        read_source: Where to read the full text of a source: a folder of text, Markdown and PDF files, a mapping of
            source names to texts, or a function that takes the name. Chunks without a position in their metadata are
            searched in the text of their source, which is read once.
        store_order: With `index`: whether the insertion order of its store or docstore is used for sources whose order
            is unknown otherwise.
        **options: The options of `oprag.ContextOptions`. `stitch` is off by default: the original nodes are returned.
            With `stitch=True`, one node per passage is returned.

    Raises:
        ValidationError: An option is unknown or invalid (pydantic's error, which is a ValueError).

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> def node(text, row, score):
        ...     metadata = {"file_name": "abc", "row": row}
        ...     return NodeWithScore(node=TextNode(text=text, metadata=metadata), score=score)
        >>> nodes = [node("ten", 10, 0.9), node("two", 2, 0.8), node("nine", "9", 0.7)]
        >>> [scored.text for scored in OrderPreservingPostprocessor().postprocess_nodes(nodes)]
        ['two', 'nine', 'ten']
    """

    model_config = PUBLIC_CONFIG

    _name_hints: ClassVar = LLAMA_INDEX_POSTPROCESSOR

    @classmethod
    def class_name(cls) -> str:
        """The class name for serialization."""
        return "OrderPreservingPostprocessor"

    def get_context(self, nodes: list[NodeWithScore], query: str | QueryBundle | None = None) -> Context:
        """Build the context of these nodes: passages, dropped chunks with reasons, token count and text.

        The text is always stitched, regardless of `stitch`.

        Args:
            nodes: The nodes, best first.
            query: The query, for `similarity_threshold`.

        Raises:
            ChunkError: An item is not a `NodeWithScore`.
            BudgetError: None of the given nodes fits `token_budget`.
            EmbeddingError: A threshold is set, and a vector is missing or unusable.
        """
        bundle = QueryBundle(query) if isinstance(query, str) else query
        return run_sync(self._checked(nodes, bundle, self._stitching_options))

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
        context = yield from self._checked(nodes, query, self._context_options, as_nodes=True)
        return nodes_of(context, annotate=self.annotate)

    def _checked(
        self, nodes: list[NodeWithScore], query: QueryBundle | None, options: ContextOptions, *, as_nodes: bool = False
    ) -> Steps[Context]:
        """Build the context of nodes, and warn if their index is not their rank."""
        context = yield from self._context(nodes, query, options, self._sources(options), as_nodes=as_nodes)
        warn_about_few(nodes, options.k)
        cut = any(drop.reason in ("k", "max_candidates", "token_budget") for drop in context.dropped)
        if cut and context.inputs is not None and _best_at_ends([chunk.score for chunk in context.inputs.chunks]):
            warn(
                "the best nodes are at both ends of the list, as LongContextReorder puts them, so the index of a node "
                'is not its rank, and the wrong nodes were dropped; remove that step, and use order="edges" for this '
                "order",
                RetrievalWarning,
                cause="best nodes at both ends",
            )
        return context

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The options as JSON values; functions and objects are omitted, and listed under "left_out"."""
        names = self._not_saved()
        kept = {name: value for name, value in super().to_dict(**kwargs).items() if name not in names}
        return kept | ({_LEFT_OUT: names} if names else {})

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Create a postprocessor from the result of `to_dict`; pass the omitted options as keywords.

        Raises:
            ValidationError: An option is unknown or invalid.
        """
        options = {**data, **kwargs}
        options.pop("class_name", None)
        if missing := [name for name in options.pop(_LEFT_OUT, []) if name not in kwargs]:
            warnings.warn(
                "these options are functions or objects, which are not saved, so their defaults are used: "
                f"{', '.join(missing)}; pass them to from_dict as keywords",
                SerializationWarning,
                stacklevel=2,
            )
        # JSON has no tuples.
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in options.items()})

    def _not_saved(self) -> list[str]:
        """The names of set options that JSON cannot represent: functions and objects."""
        values = [(name, getattr(self, name)) for name in OPTIONS]
        functions = [name for name, value in values if callable(value) and value is not approximate_tokens]
        parts = ("index", "embed_model", "read_neighbors", "read_source")
        given = [name for name in parts if getattr(self, name) is not None]
        return [*functions, *given, *(["vector_cache"] if self.vector_cache.path is not None else [])]

    def __reduce__(self) -> tuple[Any, ...]:
        # LlamaIndex would delete options that cannot be pickled, also from this object; now pickle raises its error.
        options = {name: value for name, value in self if name != "callback_manager"}
        return partial(type(self), **options), ()


def _best_at_ends(scores: Sequence[float | None]) -> bool:
    """Whether scores are in the order of LlamaIndex's `LongContextReorder`."""
    known = [score for score in scores if score is not None]
    best_first = sorted(known, reverse=True)
    edges = [*best_first[::2], *reversed(best_first[1::2])]
    return len(set(known)) >= _MIN_SCORES and known != best_first and known in (edges, edges[::-1])
