"""Converts LlamaIndex nodes to chunks."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from oprag.chunk import Chunk, Span
from oprag.stores.adapter import StoredChunk

__all__ = ["chunk_of", "node_of_row"]


def chunk_of(node: BaseNode, rank: int, *, score: float | None = None, origin: Any = None) -> Chunk:
    """Convert a node to a chunk."""
    parent_id, children = _related(node, NodeRelationship.PARENT), node.relationships.get(NodeRelationship.CHILD)
    span = None
    # Offsets of a node with a parent are relative to the parent. A missing end offset (-1) means the end of the text.
    if parent_id is None:
        start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
        if start is not None:
            span = Span(start, end if end is not None else -1)
    return Chunk(
        text=node.text if isinstance(node, TextNode) else node.get_content(MetadataMode.NONE),
        rank=rank,
        metadata=node.metadata,
        score=score,
        id=node.node_id,
        document_id=_related(node, NodeRelationship.SOURCE),
        previous_id=_related(node, NodeRelationship.PREVIOUS),
        next_id=_related(node, NodeRelationship.NEXT),
        parent_id=parent_id,
        child_ids=tuple(child.node_id for child in children) if isinstance(children, list) else (),
        span=span,
        origin=origin,
    )


def _related(node: BaseNode, relation: NodeRelationship) -> str | None:
    related = node.relationships.get(relation)
    return related.node_id if isinstance(related, RelatedNodeInfo) else None


def node_of_row(row: StoredChunk) -> BaseNode:
    """Return the node of a row; some stores contain the node, others its fields in the metadata."""
    return metadata_dict_to_node(dict(row.metadata), row.text) if row.node is None else row.node
