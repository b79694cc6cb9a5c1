"""Convert nodes to chunks, build their context, and convert chunks and passages to nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    TextNode,
)

from oprag.chunk import Chunk, Passage, RankedList, chunk_to_dict, finite, first_of
from oprag.context import Context
from oprag.errors import ChunkError
from oprag.pipeline.context_report import METADATA_KEY, common_metadata, passage_to_dict, span_of
from oprag.pipeline.render import SHOWN_SEPARATOR
from oprag.stores.llama_index_chunks import chunk_of
from oprag.stores.llama_index_nodes import united, with_metadata

__all__ = ["annotated", "chunk_of", "chunks_of", "nodes_of", "shown_nodes"]


def chunks_of(nodes: Any) -> list[Chunk]:
    """Convert nodes, best first, to chunks; the rank of each is its index.

    Args:
        nodes: An iterable of `NodeWithScore`, as returned by a retriever.

    Raises:
        ChunkError: An item is not a `NodeWithScore`.
    """
    if not isinstance(nodes, Iterable):
        raise ChunkError(f"expected a list of NodeWithScore objects, got {type(nodes).__name__}", nodes)
    chunks: list[Chunk] = []
    for rank, scored in enumerate(nodes):
        if not isinstance(scored, NodeWithScore):
            raise ChunkError(f"expected NodeWithScore objects, got {type(scored).__name__} at index {rank}", scored)
        chunks.append(chunk_of(scored.node, rank, score=finite(scored.score), origin=scored))
    return chunks


def shown_nodes(passage: Passage, *, stitched: bool) -> str:
    """Render a passage as LlamaIndex's synthesizers do."""
    return SHOWN_SEPARATOR.join(
        scored.get_content(MetadataMode.LLM) for scored in _nodes_of(passage, stitched=stitched)
    )


def nodes_of(context: Context, *, annotate: bool, stitch: bool | None = None) -> list[NodeWithScore]:
    """The nodes of a context, in order; without stitching and annotation, the original objects."""
    if context.options.stitch if stitch is None else stitch:
        nodes: list[NodeWithScore] = []
        chunks: list[Chunk] = []
        for passage in context.passages:
            of_passage = _nodes_of(passage, stitched=True)
            nodes += of_passage
            each = len(of_passage) == len(passage.chunks)
            chunks += passage.chunks if each else [first_of(passage)]
        return RankedList(nodes, chunks)
    given = (annotated(chunk) if annotate else chunk.origin for chunk in context.kept)
    return RankedList(given, context.kept)


def _nodes_of(passage: Passage, *, stitched: bool) -> list[NodeWithScore]:
    """One node for a passage, or its original nodes if some are images or tables, which cannot be joined with text."""
    nodes: list[NodeWithScore] = [chunk.origin for chunk in passage.chunks]
    if not stitched or not all(_is_text(scored.node) for scored in nodes):
        return nodes
    return [_passage_node(passage)]


def _is_text(node: BaseNode) -> bool:
    """Whether a node is nothing but text; documents are nodes where an index was made without a splitter."""
    media = ("image_resource", "audio_resource", "video_resource")
    return type(node) in (TextNode, Node, Document) and not any(getattr(node, name, None) for name in media)


def annotated(chunk: Chunk, **more: Any) -> NodeWithScore:
    """The node of a chunk with its rank and position, and more, in the metadata."""
    scored: NodeWithScore = chunk.origin
    about = {METADATA_KEY: {**chunk_to_dict(chunk), **more}}
    return scored.model_copy(update={"node": with_metadata(scored.node, about)})


def _passage_node(passage: Passage) -> NodeWithScore:
    """Create one node for a passage, with the common metadata of its chunks and their best score."""
    nodes: list[TextNode] = [chunk.origin.node for chunk in passage.chunks]
    first = nodes[0]
    scores = [chunk.score for chunk in passage.chunks if chunk.score is not None]
    span = span_of(passage)
    source = first.relationships.get(NodeRelationship.SOURCE)
    node = TextNode(
        text=passage.text,
        metadata=common_metadata(passage.chunks),
        excluded_embed_metadata_keys=united(node.excluded_embed_metadata_keys for node in nodes),
        excluded_llm_metadata_keys=united(node.excluded_llm_metadata_keys for node in nodes),
        metadata_template=first.metadata_template,
        metadata_separator=first.metadata_separator,
        text_template=first.text_template,
        relationships={} if source is None else {NodeRelationship.SOURCE: source},
        start_char_idx=span and span.start,
        end_char_idx=span and span.end,
        # Not a random id, so that identical queries return identical responses.
        id_="+".join(chunk.id or str(chunk.rank) for chunk in passage.chunks),
    )
    about = with_metadata(node, {METADATA_KEY: passage_to_dict(passage)})
    return NodeWithScore(node=about, score=max(scores, default=None))
