"""Adds up the offsets of nodes of several levels, each of which is relative to the node's parent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from llama_index.core.schema import BaseNode, MetadataMode, TextNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from oprag.chunk import Chunk, Span, changed

__all__ = ["with_absolute_spans"]

_MAX_LEVELS = 10  # parent links may form a cycle


def with_absolute_spans(chunks: Sequence[Chunk], docstores: Collection[BaseDocumentStore]) -> list[Chunk]:
    """The chunks, with the offsets in their document of those that have a parent.

    The texts of the parents must confirm the offsets. A chunk has no span if one of its ancestors is missing.

    Args:
        chunks: Chunks of nodes, with the nodes as their `origin`.
        docstores: The docstores with the parents.
    """
    done = list(chunks)
    for docstore in docstores:
        left = {index: chunk for index, chunk in enumerate(done) if chunk.parent_id is not None and chunk.span is None}
        if left:
            ancestors = _ancestors({chunk.parent_id for chunk in left.values() if chunk.parent_id}, docstore)
            for index, chunk in left.items():
                done[index] = _with_span(chunk, ancestors)
    return done


def _ancestors(ids: Collection[str], docstore: BaseDocumentStore) -> dict[str, BaseNode]:
    """The nodes with these ids and their ancestors, by one request for each level."""
    found: dict[str, BaseNode] = {}
    for _ in range(_MAX_LEVELS):
        if not ids:
            break
        nodes = {node.node_id: node for node in docstore.get_nodes(list(ids), raise_error=False)}
        found |= nodes
        parents = {node.parent_node.node_id for node in nodes.values() if node.parent_node is not None}
        ids = parents.difference(found)
    return found


def _with_span(chunk: Chunk, ancestors: Mapping[str, BaseNode]) -> Chunk:
    """Add the offsets in the document, and the id of the document, to a chunk."""
    node, start, text = chunk.origin.node, 0, chunk.text
    for _ in range(_MAX_LEVELS):
        at = getattr(node, "start_char_idx", None)
        if at is None or at < 0:
            break
        start += at
        if node.parent_node is None:
            return changed(chunk, span=Span(start, start + len(chunk.text)), document_id=node.ref_doc_id)
        node = ancestors.get(node.parent_node.node_id)
        if node is None:
            break
        if isinstance(node, TextNode) and not node.text.startswith(text, at):
            break
        text = node.text if isinstance(node, TextNode) else node.get_content(MetadataMode.NONE)
    return chunk
