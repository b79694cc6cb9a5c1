"""Nodes as chunks, and chunks and passages as nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from llama_index.core.schema import (
    BaseNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)

from oprag.assembly.render import SHOWN_SEPARATOR, Show
from oprag.assembly.stitch import Passage
from oprag.chunk import Chunk, Span, chunk_to_dict
from oprag.context import Context
from oprag.context_report import METADATA_KEY, common_metadata, passage_to_dict
from oprag.errors import ChunkError
from oprag.options import ContextOptions

__all__ = ["chunk_of", "chunks_of", "nodes_of", "prompted", "shown", "with_metadata"]

_SOURCE, _PREVIOUS, _NEXT, _PARENT, _CHILD = (
    relation.value
    for relation in (
        NodeRelationship.SOURCE,
        NodeRelationship.PREVIOUS,
        NodeRelationship.NEXT,
        NodeRelationship.PARENT,
        NodeRelationship.CHILD,
    )
)


def chunks_of(nodes: Any) -> list[Chunk]:
    """Nodes, best first, as chunks; their ranks are their places in the list.

    Args:
        nodes: An iterable of `NodeWithScore`, as a retriever gave it.

    Raises:
        ChunkError: Something is no `NodeWithScore`.
    """
    if not isinstance(nodes, Iterable):
        raise ChunkError(f"expected a list of NodeWithScore objects, got {type(nodes).__name__}", nodes)
    chunks: list[Chunk] = []
    for rank, scored in enumerate(nodes):
        if not isinstance(scored, NodeWithScore):
            raise ChunkError(f"expected NodeWithScore objects, got {type(scored).__name__} at place {rank}", scored)
        chunks.append(chunk_of(scored.node, rank, score=scored.score, origin=scored))
    return chunks


def chunk_of(node: BaseNode, rank: int, *, score: float | None = None, origin: Any = None) -> Chunk:
    """A node as a chunk."""
    # By value: an enum of LlamaIndex hashes in Python, four times a node.
    links = {relation.value: related for relation, related in node.relationships.items()}
    children = related if isinstance(related := links.get(_CHILD), list) else ()
    span = None
    # The offsets of a hierarchical leaf count from its parent, wherever its document begins. An end that is missing is
    # that of the text.
    if _PARENT not in links:
        start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
        if start is not None:
            span = Span(start, end if end is not None else -1)
    return Chunk(
        text=node.text if isinstance(node, TextNode) else node.get_content(MetadataMode.NONE),
        rank=rank,
        metadata=node.metadata,
        score=score,
        id=node.node_id,
        document_id=_related(links.get(_SOURCE)),
        previous_id=_related(links.get(_PREVIOUS)),
        next_id=_related(links.get(_NEXT)),
        parent_id=_related(links.get(_PARENT)),
        child_ids=tuple(child.node_id for child in children),
        span=span,
        origin=origin,
    )


def _related(related: Any) -> str | None:
    return related.node_id if isinstance(related, RelatedNodeInfo) else None


def prompted(passage: Passage, *, stitched: bool) -> str:
    """What LlamaIndex's synthesizers write for a passage: text and metadata, by the templates of its nodes.

    A token budget counts this, since the model will read it.
    """
    return SHOWN_SEPARATOR.join(
        scored.get_content(MetadataMode.LLM) for scored in _nodes_of(passage, stitched=stitched)
    )


def shown(context_options: ContextOptions) -> Show | None:
    """What a token budget counts; None where there is no budget."""
    return None if context_options.token_budget is None else partial(prompted, stitched=context_options.stitch)


def nodes_of(context: Context, *, annotate: bool, stitch: bool | None = None) -> list[NodeWithScore]:
    """The nodes of a context, in order.

    Without stitching and annotation these are the nodes that were given, the same objects.

    Args:
        context: The context.
        annotate: Whether to give copies that say how they were placed.
        stitch: Whether to give one node a passage; as the context was made by default.
    """
    stitched = context.options.stitch if stitch is None else stitch
    if annotate and not stitched:
        return [_annotated(chunk) for chunk in context.kept]
    return [scored for passage in context.passages for scored in _nodes_of(passage, stitched=stitched)]


def _nodes_of(passage: Passage, *, stitched: bool) -> list[NodeWithScore]:
    """One node for a passage, or those that were given: a picture or a table cannot be joined with a text."""
    given: list[NodeWithScore] = [chunk.origin for chunk in passage.chunks]
    if not stitched or any(type(scored.node) is not TextNode for scored in given):
        return given
    return [_passage_node(passage)]


def _annotated(chunk: Chunk) -> NodeWithScore:
    scored: NodeWithScore = chunk.origin
    return NodeWithScore(node=with_metadata(scored.node, {METADATA_KEY: chunk_to_dict(chunk)}), score=scored.score)


def _passage_node(passage: Passage) -> NodeWithScore:
    """One node for a passage, with what its chunks have in common and the best of their scores."""
    nodes: list[TextNode] = [chunk.origin.node for chunk in passage.chunks]
    first = nodes[0]
    scores = [chunk.score for chunk in passage.chunks if chunk.score is not None]
    comparable = [score for score in scores if not math.isnan(score)]
    span = passage.spans[0] if len(passage.spans) == 1 else None
    source = first.relationships.get(NodeRelationship.SOURCE)
    node = TextNode(
        text=passage.text,
        metadata=common_metadata(passage.chunks),
        excluded_embed_metadata_keys=_united(node.excluded_embed_metadata_keys for node in nodes),
        excluded_llm_metadata_keys=_united(node.excluded_llm_metadata_keys for node in nodes),
        metadata_template=first.metadata_template,
        metadata_separator=first.metadata_separator,
        text_template=first.text_template,
        relationships={} if source is None else {NodeRelationship.SOURCE: source},
        start_char_idx=span and span.start,
        end_char_idx=span and span.end,
        # Random ids would make equal answers differ.
        id_="+".join(chunk.id or str(chunk.rank) for chunk in passage.chunks),
    )
    about = with_metadata(node, {METADATA_KEY: passage_to_dict(passage)})
    return NodeWithScore(node=about, score=max(comparable or scores[:1], default=None))


def _united(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(key for keys in lists for key in keys))


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
