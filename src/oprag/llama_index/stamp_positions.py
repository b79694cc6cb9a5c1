"""Number nodes before indexing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TransformComponent
from pydantic import Field, SkipValidation, field_validator

from oprag.adapters.fields import HELP, PUBLIC_CONFIG, OptionFields
from oprag.errors import ChunkError
from oprag.options import SourceKey, check_key
from oprag.positions.stamp import given_source, stamps
from oprag.stores.llama_index_chunks import chunk_of
from oprag.stores.llama_index_nodes import with_metadata

__all__ = ["StampPositions"]


class StampPositions(OptionFields, TransformComponent):
    """Numbers the nodes of each source, so that their order is known in every store.

    Put it after the last node parser, in `IngestionPipeline(transformations=[...])` or
    `VectorStoreIndex.from_documents(..., transformations=[...])`. Numbers continue across the pages of a file. A parent
    from `HierarchicalNodeParser` is numbered before its children, so that nodes of several levels can be ordered
    together.

    Each call starts at 0, so nodes of one source that were stamped in several calls (pages inserted one by one,
    batches, `num_workers`) cannot be ordered by their numbers. `chunk_numbering`, a short hash of the texts that were
    numbered together, distinguishes them. If the page numbers of a source decrease, a warning is issued, and the nodes
    are numbered in the given order.

    Args:
        source: Name of the source, for nodes whose metadata contains none; it is stamped as `source`.
        source_key: See `oprag.ContextOptions.source_key`. With a function, the cache of a pipeline is never used for
            this step, since the function may have changed; the steps after it are cached as usual.

    Example:
        >>> from llama_index.core.schema import TextNode
        >>> nodes = StampPositions(source="book")([TextNode(text="one"), TextNode(text="two")])
        >>> [(node.metadata["source"], node.metadata["chunk_index"]) for node in nodes]
        [('book', 0), ('book', 1)]
    """

    model_config = PUBLIC_CONFIG

    source: SkipValidation[str | os.PathLike[str] | None] = Field(
        default=None, description="Name of the source, for nodes whose metadata contains none; it is stamped as source."
    )
    source_key: SkipValidation[SourceKey | None] = Field(default=None, description=HELP["source_key"])

    @field_validator("source", mode="before")
    @classmethod
    def _check_source(cls, source: Any) -> str | None:
        return given_source(source)

    @field_validator("source_key", mode="before")
    @classmethod
    def _check_source_key(cls, given: Any) -> Any:
        # JSON has no tuples.
        key = tuple(given) if isinstance(given, list) else given
        check_key("source_key", key)
        return key

    @classmethod
    def class_name(cls) -> str:
        """The class name for serialization."""
        return "StampPositions"

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """The options as JSON values. A function is not saved: `from_dict` rejects what stands in its place."""
        data = super().to_dict(**kwargs)
        if callable(self.source_key):
            # The cache of a pipeline compares these values, so they must differ for each function.
            data["source_key"] = {"function": uuid4().hex}
        return data

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:  # noqa: ARG002
        """Copy the nodes, with `chunk_index` and `chunk_numbering` in their metadata, which models are not shown."""
        if not isinstance(nodes, Sequence):
            raise ChunkError(f"expected a list of nodes, got {type(nodes).__name__}", nodes)
        for index, node in enumerate(nodes):
            if not isinstance(node, BaseNode):
                raise ChunkError(f"expected LlamaIndex nodes, got {type(node).__name__} at index {index}", node)
        order = _parents_first(nodes)
        chunks = [chunk_of(nodes[index], rank) for rank, index in enumerate(order)]
        added = dict(zip(order, stamps(chunks, self.source, self.source_key), strict=True))
        return [with_metadata(node, added[index]) for index, node in enumerate(nodes)]


def _parents_first(nodes: Sequence[BaseNode]) -> list[int]:
    """The indexes of the nodes in reading order: each parent before its children, and these before the next parent."""
    indexes = {node.node_id: index for index, node in enumerate(nodes)}
    children: dict[int | None, list[int]] = {}
    for index, node in enumerate(nodes):
        parent = node.relationships.get(NodeRelationship.PARENT)
        parent_index = indexes.get(parent.node_id) if isinstance(parent, RelatedNodeInfo) else None
        children.setdefault(parent_index, []).append(index)
    order: list[int] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        index = waiting.pop()
        order.append(index)
        waiting += children.get(index, [])[::-1]
    # Nodes in a cycle are never reached; then keep the given order.
    return order if len(order) == len(nodes) else list(range(len(nodes)))
