"""Reading the nodes around one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore

from oprag.chunk import Chunk
from oprag.errors import ChunkError, OptionError
from oprag.llama_index.nodes import chunks_of
from oprag.neighbors import NeighborReader

__all__ = ["neighbor_reader"]


def neighbor_reader(given: Any) -> NeighborReader | None:
    """What reads the nodes around one, None where there is nothing to read from.

    Args:
        given: A docstore, a function of a node and a number, or None.

    Raises:
        OptionError: It is something else.
    """
    if given is None:
        return None
    if isinstance(given, BaseDocumentStore):
        return _OfFunction(_Linked(given))
    if not callable(given) or inspect.iscoroutinefunction(given):
        raise OptionError(
            "read_neighbors must be a docstore, or a function of a node and a number (not an async one), got "
            f"{type(given).__name__}",
            given,
        )
    return _OfFunction(given)


@dataclass(frozen=True)
class _OfFunction:
    """Reads through a function of nodes."""

    read: Callable[[BaseNode, int], Any]

    def __call__(self, chunk: Chunk, number: int) -> list[Chunk]:
        around = self.read(chunk.origin.node, number)
        if isinstance(around, str) or not isinstance(around, Iterable):
            raise ChunkError(
                f"read_neighbors must give a list of nodes, got {type(around).__name__} for a chunk ({chunk.label()})",
                around,
            )
        return chunks_of([NodeWithScore(node=one) if isinstance(one, BaseNode) else one for one in around])


class _Linked:
    """Follows the PREVIOUS and NEXT links of nodes in a docstore."""

    def __init__(self, docstore: BaseDocumentStore) -> None:
        self._docstore = docstore

    def __call__(self, node: BaseNode, number: int) -> list[BaseNode]:
        before = list(self._follow(node, NodeRelationship.PREVIOUS, number))
        # As it was indexed: a postprocessor may have put its window in place of a sentence.
        itself = self._docstore.get_document(node.node_id, raise_error=False)
        after = self._follow(node, NodeRelationship.NEXT, number)
        return [*reversed(before), *([] if itself is None else [itself]), *after]

    def _follow(self, node: BaseNode, relation: NodeRelationship, number: int) -> Iterator[BaseNode]:
        source, seen = node.ref_doc_id, {node.node_id}
        for _ in range(number):
            related = node.relationships.get(relation)
            if not isinstance(related, RelatedNodeInfo) or related.node_id in seen:
                return
            found = self._docstore.get_document(related.node_id, raise_error=False)
            if found is None and self._docstore.document_exists(node.node_id):
                # It was deleted, or filtered before it came into the index.
                return
            if found is None:
                raise OptionError(
                    f"the docstore has no node {related.node_id!r}, which the node {node.node_id!r} names as its "
                    f"{relation.name.lower()} one; an index over a store that keeps texts fills its docstore only with "
                    "store_nodes_override=True",
                    related.node_id,
                )
            # Some splitters link the last node of a document with the first of another.
            if found.ref_doc_id != source:
                return
            seen.add(found.node_id)
            node = found
            yield node
