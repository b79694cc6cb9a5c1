"""Adds up the offsets of nodes of several levels, each of which is relative to the node's parent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from oprag.chunk import Chunk, Span, changed
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, adapter_of
from oprag.stores.llama_index_nodes import listed_nodes, nodes_in

__all__ = ["LevelsInDocstore", "with_absolute_spans"]

_MAX_LEVELS = 10  # parent links may form a cycle


def with_absolute_spans(chunks: Sequence[Chunk], docstores: Collection[BaseDocumentStore]) -> list[Chunk]:
    """The chunks, with the offsets in their document of those with a parent, where the parents' texts confirm them."""
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
    while ids:
        nodes = {node.node_id: node for node in docstore.get_nodes(list(ids), raise_error=False)}
        found |= nodes
        parents = {node.parent_node.node_id for node in nodes.values() if node.parent_node is not None}
        ids = parents.difference(found)
    return found


def _root_of(node: BaseNode, text: str, ancestors: Mapping[str, BaseNode]) -> tuple[BaseNode, int] | None:
    """The ancestor without a parent, and the offset of the node in its document; None if that is not known."""
    start = 0
    for _ in range(_MAX_LEVELS):
        at = getattr(node, "start_char_idx", None)
        if at is None or at < 0:
            return None
        start += at
        if node.parent_node is None:
            return node, start
        parent = ancestors.get(node.parent_node.node_id)
        if parent is None or (isinstance(parent, TextNode) and not parent.text.startswith(text, at)):
            return None
        node, text = parent, _text_of(parent)
    return None


def _with_span(chunk: Chunk, ancestors: Mapping[str, BaseNode]) -> Chunk:
    """Add the offsets in the document, and the id of the document, to a chunk."""
    node = chunk.origin.node if isinstance(chunk.origin, NodeWithScore) else chunk.origin
    found = _root_of(node, chunk.text, ancestors)
    if found is None:
        return chunk
    root, start = found
    return changed(chunk, span=Span(start, start + len(chunk.text)), document_id=root.ref_doc_id)


def _text_of(node: BaseNode) -> str:
    return node.text if isinstance(node, TextNode) else node.get_content(MetadataMode.NONE)


class LevelsInDocstore(StoreAdapter):
    """A docstore with nodes of several levels: its documents in sequence, and their nodes by offset."""

    in_insertion_order = True

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:  # noqa: ARG002
        """Return nothing: a docstore has no vectors."""
        return {}

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the nodes of several levels; None if the docstore has no sequence."""
        nodes = {node.node_id: node for node in nodes_in(self.store)}
        ids = self._sorted(nodes, nodes)
        return None if ids is None else listed_nodes((nodes[key] for key in ids), field, sources)

    def in_sequence(self, keys: Collection[str]) -> Sequence[str] | None:
        """Sort the ids of nodes that have parents or children; None if the docstore has no sequence."""
        return self._sorted(keys, _ancestors(keys, self.store))

    def _sorted(self, keys: Iterable[str], nodes: Mapping[str, BaseNode]) -> list[str] | None:
        among = {key: nodes[key] for key in keys if key in nodes}
        levels = {key: node for key, node in among.items() if node.parent_node or node.child_nodes}
        roots = {key: _root_of(node, _text_of(node), nodes) for key, node in levels.items()}
        docstore = adapter_of(self.store)
        rows = None if docstore is None else docstore.in_sequence({one[0].node_id for one in roots.values() if one})
        if rows is None:
            return None
        row_of = {key: row for row, key in enumerate(rows)}
        # A parent comes before the nodes inside it.
        places = {
            key: (row_of[one[0].node_id], one[1], -len(_text_of(levels[key]))) for key, one in roots.items() if one
        }
        return sorted(places, key=places.__getitem__)
