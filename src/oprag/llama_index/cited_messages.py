"""Search results and answers in the blocks by which LlamaIndex cites."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    CitableBlock,
    CitationBlock,
    ContentBlock,
    MessageRole,
    TextBlock,
)
from llama_index.core.base.response.schema import PydanticResponse, Response

from oprag.agents.cited import Cited
from oprag.agents.search_result_blocks import source_name
from oprag.methods.answer import Answer
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["blocks_of", "cited_message", "content_of"]


def cited_message(answer: Answer | Cited | Response | PydanticResponse) -> ChatMessage:
    """The text of an answer as a message, followed by a `CitationBlock` for each of its citations.

    Each block has the source (also as `title`), the quote or the passage (`cited_content`), and in
    `additional_location_info` the number, the place of the marker (`start_index`, `end_index`), and the page and span
    in the source (`page`, `span_start`, `span_end`) where they are known and numbers.

    Args:
        answer: The answer or response of an engine with `cite=True`, or what `WorkingContext.cited` returned. Of a
            streaming response, pass `get_response()`.

    Returns:
        The message. Most models accept only the text of it.
    """
    if isinstance(answer, Answer | Cited):
        text, citations = answer.text, [citation.to_dict() for citation in answer.citations]
    else:
        text = str(answer)
        citations = (answer.metadata or {}).get(METADATA_KEY, {}).get("citations", [])
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text=text), *map(_citation_block, citations)])


def _citation_block(citation: dict[str, Any]) -> CitationBlock:
    span = citation["span"] or {}
    location = {
        "number": citation["number"],
        "start_index": citation["start"],
        "end_index": citation["end"],
        "page": citation["page"],
        "span_start": span.get("start"),
        "span_end": span.get("end"),
    }
    whole = citation["quote"] is None or citation["misquoted"]
    return CitationBlock(
        cited_content=TextBlock(text=citation["text"] if whole else citation["quote"]),
        source=source_name(citation["source"]),
        title=source_name(citation["source"]),
        additional_location_info={name: value for name, value in location.items() if isinstance(value, int)},
    )


def blocks_of(content: str | list[dict[str, Any]]) -> list[ContentBlock]:
    """The result of a search as blocks."""
    if isinstance(content, str):
        return [TextBlock(text=content)]
    return [
        TextBlock(text=block["text"])
        if block["type"] == "text"
        else CitableBlock(
            title=block["title"],
            source=block["source"],
            content=[TextBlock(text=one["text"]) for one in block["content"]],
        )
        for block in content
    ]


def content_of(message: ChatMessage) -> Any:
    """The result of a search that a message contains, as `blocks_of` received it."""
    if not any(isinstance(block, CitableBlock) for block in message.blocks):
        return message.content
    return [
        {"type": "search_result", "title": block.title, "source": block.source, "content": block.content}
        if isinstance(block, CitableBlock)
        else getattr(block, "text", None)
        for block in message.blocks
    ]
