"""Lists LlamaIndex nodes by source, and adds metadata to stored nodes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from oprag._internal.masking import describe
from oprag.errors import OptionError
from oprag.stores.adapter import StoreAdapter, StoredChunk, chunks_with, refuse_unknown

__all__ = [
    "NODE_FIELD",
    "ByKey",
    "content_with",
    "docstore_rows",
    "listed_nodes",
    "nodes_in",
    "put_rows",
    "texts_in",
    "united",
    "with_metadata",
    "written_to_docstore",
]

ByKey = Mapping[str, Mapping[str, Any]]
"""Metadata by key of the chunk."""

NODE_FIELD = "_node_content"
"""The metadata key under which LlamaIndex stores the whole node as JSON in vector stores."""

_HIDDEN = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")


def with_metadata(node: Any, added: Mapping[str, Any]) -> Any:
    """Return a copy of a node with added metadata that is neither embedded nor shown to the model."""
    hidden = {name: united([getattr(node, name), [*added]]) for name in _HIDDEN}
    return node.model_copy(update={"metadata": {**node.metadata, **added}, **hidden})


def united(lists: Iterable[list[str]]) -> list[str]:
    """Concatenate lists of keys, without duplicates."""
    return list(dict.fromkeys(key for keys in lists for key in keys))


def listed_nodes(nodes: Iterable[Any], field: str = "", sources: Collection[str] = ()) -> Iterator[StoredChunk]:
    """Yield the nodes of some sources as stored chunks; all nodes if `field` is empty."""
    from llama_index.core.schema import MetadataMode

    texts = ((node, node.get_content(MetadataMode.NONE)) for node in nodes)
    rows = (StoredChunk(node.node_id, text, node.metadata, node=node) for node, text in texts)
    return chunks_with(rows, field, sources)


def texts_in(docstore: Any, ids: Iterable[str]) -> dict[str, str]:
    """Return the texts of nodes in a docstore by id, without ids that are missing in it."""
    return {chunk.key: chunk.text for chunk in listed_nodes(docstore.get_nodes([*ids], raise_error=False))}


def content_with(flat: Mapping[str, Any], added: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the metadata of a stored node to update: the added keys, and the node's JSON, otherwise unchanged."""
    if NODE_FIELD not in flat:
        raise OptionError(
            f"the stored node {describe(key)} has no {NODE_FIELD}, as another tool wrote it, so nothing was written; "
            "add its documents to the store with LlamaIndex",
            key,
        )
    node = json.loads(flat[NODE_FIELD])
    hidden = {name: united([node[name], [*added]]) for name in _HIDDEN}
    content = {**node, "metadata": {**node["metadata"], **added}, **hidden}
    return {**added, NODE_FIELD: json.dumps(content, ensure_ascii=False)}


def written_to_docstore(adapter: StoreAdapter, stored: ByKey, added: ByKey) -> dict[str, dict[str, Any]]:
    """Update the docstore first, so that a rerun finds what is left in the store; return the metadata for the store."""
    refuse_unknown(adapter, added, stored)
    rows = docstore_rows(adapter.docstore, added)
    changes = {key: content_with(stored[key], more, key) for key, more in added.items()}
    put_rows(adapter.docstore, rows)
    return changes


def nodes_in(docstore: Any) -> list[Any]:
    """Return the nodes of a docstore, without the documents that an ingestion pipeline stores next to them."""
    from llama_index.core.schema import Document

    listed = list(docstore.docs.values())
    return [node for node in listed if not isinstance(node, Document)] or listed


def docstore_rows(docstore: Any, added: ByKey) -> dict[str, Any]:
    """Return the nodes in a docstore with added metadata, serialized as it stores them, by id."""
    nodes = [] if docstore is None else docstore.get_nodes([*added], raise_error=False)
    if not nodes:
        return {}
    from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
    from llama_index.core.storage.docstore.utils import doc_to_json

    if not isinstance(docstore, KVDocumentStore):
        raise OptionError(f"oprag cannot write metadata to a {type(docstore).__name__}", docstore)
    return {node.node_id: doc_to_json(with_metadata(node, added[node.node_id])) for node in nodes}


def put_rows(docstore: Any, rows: Mapping[str, Any]) -> None:
    """Write rows past the docstore's own method, which would update the hashes that decide what to re-embed."""
    if rows:
        collection, size = docstore._node_collection, docstore._batch_size  # noqa: SLF001
        docstore._kvstore.put_all([*rows.items()], collection=collection, batch_size=size)  # noqa: SLF001
