"""Converts LlamaIndex nodes to chunks."""

from __future__ import annotations

from typing import Any

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.utils import metadata_dict_to_node

from oprag.chunk import Chunk, Span
from oprag.stores.adapter import StoredChunk

__all__ = ["chunk_of", "node_of_row"]

_SOURCE = NodeRelationship.SOURCE
_PREVIOUS = NodeRelationship.PREVIOUS
_NEXT = NodeRelationship.NEXT
_PARENT = NodeRelationship.PARENT
_CHILD = NodeRelationship.CHILD


def chunk_of(node: BaseNode, rank: int, *, score: float | None = None, origin: Any = None) -> Chunk:
    """Convert a node to a chunk."""
    document_id = previous_id = next_id = parent_id = None
    child_ids: tuple[str, ...] = ()
    # Iterating is faster than lookups, because hashing LlamaIndex's enum runs Python code.
    for relation, related in node.relationships.items():
        if not isinstance(related, RelatedNodeInfo):
            if relation is _CHILD:
                child_ids = tuple(child.node_id for child in related)
        elif relation is _SOURCE:
            document_id = related.node_id
        elif relation is _PREVIOUS:
            previous_id = related.node_id
        elif relation is _NEXT:
            next_id = related.node_id
        elif relation is _PARENT:
            parent_id = related.node_id
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
        document_id=document_id,
        previous_id=previous_id,
        next_id=next_id,
        parent_id=parent_id,
        child_ids=child_ids,
        span=span,
        origin=origin,
    )


def node_of_row(row: StoredChunk) -> BaseNode:
    """Return the node of a row; some stores contain the node, others its fields in the metadata."""
    return metadata_dict_to_node(dict(row.metadata), row.text) if row.node is None else row.node
