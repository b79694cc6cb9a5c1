"""The texts of nodes, for stores that keep vectors alone."""

from __future__ import annotations

from collections.abc import Sequence

from llama_index.core.schema import MetadataMode

from oprag.llama_index.stores.adapter import Searched

__all__ = ["texts_of"]


def texts_of(searched: Searched, ids: Sequence[str]) -> dict[str, str]:
    """The text of each node that the docstore knows."""
    nodes = searched.docstore.get_nodes(list(ids), raise_error=False)
    return {node.node_id: node.get_content(MetadataMode.NONE) for node in nodes}
