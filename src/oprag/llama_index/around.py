"""Reading the nodes around one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, RelatedNodeInfo
from llama_index.core.storage.docstore.types import BaseDocumentStore

from oprag.chunk import Chunk
from oprag.errors import OptionError
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
        return _of_function(_Linked(given))
    if not callable(given):
        raise OptionError(
            f"read_neighbors must be a docstore, or a function of a node and a number, got {type(given).__name__}",
            given,
        )
    return _of_function(given)


def _of_function(read: Callable[[BaseNode, int], Iterable[BaseNode]]) -> NeighborReader:
    def around(chunk: Chunk, number: int) -> list[Chunk]:
        return chunks_of([NodeWithScore(node=node) for node in read(chunk.origin.node, number)])

    return around


class _Linked:
    """Follows the PREVIOUS and NEXT links of nodes in a docstore."""

    def __init__(self, docstore: BaseDocumentStore) -> None:
        self._docstore = docstore

    def __call__(self, node: BaseNode, number: int) -> list[BaseNode]:
        before = list(self._follow(node, NodeRelationship.PREVIOUS, number))
        return [*reversed(before), *self._follow(node, NodeRelationship.NEXT, number)]

    def _follow(self, node: BaseNode, relation: NodeRelationship, number: int) -> Iterator[BaseNode]:
        source, seen = node.ref_doc_id, {node.node_id}
        for _ in range(number):
            related = node.relationships.get(relation)
            if not isinstance(related, RelatedNodeInfo) or related.node_id in seen:
                return
            found = self._docstore.get_document(related.node_id, raise_error=False)
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
