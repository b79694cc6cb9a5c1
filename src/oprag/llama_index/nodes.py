"""Nodes as chunks, and chunks and passages as nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)

from oprag.chunk import Chunk, Span
from oprag.context import Context, chunk_to_dict
from oprag.errors import ChunkError
from oprag.report import METADATA_KEY, common_metadata, passage_to_dict
from oprag.stitch import Passage

__all__ = ["chunk_of", "chunks_of", "nodes_of", "prompt_header", "with_metadata"]


def chunks_of(nodes: Iterable[NodeWithScore]) -> list[Chunk]:
    """Nodes, best first, as chunks; their ranks are their places in the list.

    Raises:
        ChunkError: Something is no `NodeWithScore`.
    """
    chunks: list[Chunk] = []
    for rank, scored in enumerate(nodes):
        if not isinstance(scored, NodeWithScore):
            raise ChunkError(f"expected NodeWithScore objects, got {type(scored).__name__} at place {rank}", scored)
        chunks.append(chunk_of(scored.node, rank, score=scored.score, origin=scored))
    return chunks


def chunk_of(node: BaseNode, rank: int, *, score: float | None = None, origin: Any = None) -> Chunk:
    """A node as a chunk."""
    relations = node.relationships
    span = None
    # The offsets of a hierarchical leaf count from its parent, wherever its document begins.
    if NodeRelationship.PARENT not in relations:
        start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
        if start is not None and end is not None:
            span = Span(start, end)
    return Chunk(
        text=node.text if isinstance(node, TextNode) else node.get_content(MetadataMode.NONE),
        rank=rank,
        metadata=node.metadata,
        score=score,
        id=node.node_id,
        document_id=_related(relations.get(NodeRelationship.SOURCE)),
        previous_id=_related(relations.get(NodeRelationship.PREVIOUS)),
        next_id=_related(relations.get(NodeRelationship.NEXT)),
        span=span,
        origin=origin,
    )


def _related(related: Any) -> str | None:
    return related.node_id if isinstance(related, RelatedNodeInfo) else None


def prompt_header(passage: Passage) -> str:
    """What LlamaIndex's synthesizers write around the text of a node: its metadata, by the node's own templates.

    It is counted against a token budget, since the model will read it.
    """
    node: BaseNode = passage.chunks[0].origin.node
    shown = node.get_content(MetadataMode.LLM)
    if not passage.text:
        return shown
    above, _, below = shown.rpartition(passage.text)
    return above.removesuffix("\n") + below


def nodes_of(context: Context, *, annotate: bool) -> list[NodeWithScore]:
    """The nodes of a context, in order.

    Without stitching and annotation these are the nodes that were given, the same objects.
    """
    if context.assembly.stitch:
        return [_passage_node(passage) for passage in context.passages]
    if annotate:
        return [_annotated(chunk) for chunk in context.kept]
    return [chunk.origin for chunk in context.kept]


def _annotated(chunk: Chunk) -> NodeWithScore:
    scored: NodeWithScore = chunk.origin
    return NodeWithScore(node=with_metadata(scored.node, {METADATA_KEY: chunk_to_dict(chunk)}), score=scored.score)


def _passage_node(passage: Passage) -> NodeWithScore:
    """One node for a passage, with what its chunks have in common and the best of their scores."""
    first: BaseNode = passage.chunks[0].origin.node
    scores = [chunk.score for chunk in passage.chunks if chunk.score is not None]
    span = passage.spans[0] if len(passage.spans) == 1 else None
    source = first.relationships.get(NodeRelationship.SOURCE)
    node = TextNode(
        text=passage.text,
        metadata=common_metadata(passage.chunks),
        excluded_embed_metadata_keys=list(first.excluded_embed_metadata_keys),
        excluded_llm_metadata_keys=list(first.excluded_llm_metadata_keys),
        relationships={} if source is None else {NodeRelationship.SOURCE: source},
        start_char_idx=span and span.start,
        end_char_idx=span and span.end,
        # Random ids would make equal answers differ.
        id_="+".join(chunk.id or str(chunk.rank) for chunk in passage.chunks),
    )
    return NodeWithScore(
        node=with_metadata(node, {METADATA_KEY: passage_to_dict(passage)}), score=max(scores) if scores else None
    )


def with_metadata(node: BaseNode, added: dict[str, Any]) -> BaseNode:
    """A copy of a node with more metadata, which is neither embedded nor shown to the model."""
    return node.model_copy(
        update={
            "metadata": {**node.metadata, **added},
            "excluded_embed_metadata_keys": _with(node.excluded_embed_metadata_keys, added),
            "excluded_llm_metadata_keys": _with(node.excluded_llm_metadata_keys, added),
        }
    )


def _with(keys: list[str], added: dict[str, Any]) -> list[str]:
    return [*keys, *(key for key in added if key not in keys)]
