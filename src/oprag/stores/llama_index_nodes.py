"""LlamaIndex's nodes as its stores have them: listed by their source, and changed without loading LlamaIndex."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.positions.insertion_order import StoredChunk
from oprag.positions.sources import ID_FIELDS, source_name

__all__ = [
    "NODE_FIELD",
    "content_with",
    "docstore_rows",
    "listed_nodes",
    "nodes_in",
    "put_rows",
    "source_in",
    "united",
    "with_metadata",
]

NODE_FIELD = "_node_content"
"""The metadata key under which LlamaIndex writes a whole node into other stores."""


def with_metadata(node: Any, added: Mapping[str, Any]) -> Any:
    """A copy of a node with more metadata, which is neither embedded nor shown to the model."""
    return node.model_copy(
        update={
            "metadata": {**node.metadata, **added},
            "excluded_embed_metadata_keys": united([node.excluded_embed_metadata_keys, [*added]]),
            "excluded_llm_metadata_keys": united([node.excluded_llm_metadata_keys, [*added]]),
        }
    )


def united(lists: Iterable[list[str]]) -> list[str]:
    """The keys of several lists, each once."""
    return list(dict.fromkeys(key for keys in lists for key in keys))


def source_in(chunk: StoredChunk, field: str) -> str | None:
    """The name of the source of a chunk by a metadata key; for a node, the id of its document by one of `ID_FIELDS`.

    LlamaIndex's stores keep that id under these keys, whatever metadata have the same name.
    """
    if chunk.node is not None and field in ID_FIELDS:
        return source_name(chunk.node.ref_doc_id)
    return source_name(chunk.metadata.get(field))


def listed_nodes(nodes: Iterable[Any], field: str, sources: Collection[str]) -> Iterator[StoredChunk]:
    """The nodes of some sources, or all of them without a field."""
    from llama_index.core.schema import MetadataMode

    for node in nodes:
        chunk = StoredChunk(node.node_id, node.get_content(MetadataMode.NONE), node.metadata, node=node)
        if not field or source_in(chunk, field) in sources:
            yield chunk


def content_with(flat: Mapping[str, Any], added: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The flat metadata that change where metadata are added to a node: the added ones, and the whole node.

    Everything else in the node stays as it was written, whatever version of LlamaIndex wrote it.
    """
    if NODE_FIELD not in flat:
        raise OptionError(
            f"the node {describe(key)} was written without {NODE_FIELD}, as by very old versions of LlamaIndex, so "
            "models would see the added metadata; nothing was written",
            key,
        )
    node = json.loads(flat[NODE_FIELD])
    node["metadata"] = {**node["metadata"], **added}
    for name in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
        node[name] = united([node[name], [*added]])
    return {**added, NODE_FIELD: json.dumps(node, ensure_ascii=False)}


def nodes_in(docstore: Any) -> list[Any]:
    """The nodes of a docstore, without the documents that an ingestion pipeline keeps beside them."""
    from llama_index.core.schema import Document

    listed = list(docstore.docs.values())
    return [node for node in listed if not isinstance(node, Document)] or listed


def docstore_rows(docstore: Any, added: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The nodes that a docstore has, with added metadata, as it stores them, by their ids."""
    nodes = [] if docstore is None else docstore.get_nodes([*added], raise_error=False)
    if not nodes:
        return {}
    from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
    from llama_index.core.storage.docstore.utils import doc_to_json

    if not isinstance(docstore, KVDocumentStore):
        raise OptionError(f"oprag cannot write metadata into a {type(docstore).__name__}", docstore)
    return {node.node_id: doc_to_json(with_metadata(node, added[node.node_id])) for node in nodes}


def put_rows(docstore: Any, rows: Mapping[str, Any]) -> None:
    """Write `docstore_rows`.

    The docstore's own method would set new hashes of the nodes as well. By these, a pipeline and `refresh_ref_docs`
    tell what has to be embedded again.
    """
    if rows:
        docstore._kvstore.put_all(  # noqa: SLF001
            [*rows.items()],
            collection=docstore._node_collection,  # noqa: SLF001
            batch_size=docstore._batch_size,  # noqa: SLF001
        )
