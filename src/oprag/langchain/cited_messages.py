"""Messages whose text carries citations in the form of LangChain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.content import Citation as Annotation

from oprag.agents.cited import Cited
from oprag.methods.answer import Answer
from oprag.methods.citations import Citation
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["annotated", "cited_message", "without_annotations"]

M = TypeVar("M", bound=BaseMessage)

_VERSION = "output_version"
# LangChain's standard content; `content_blocks` returns it as it is, whatever the provider of the model.
_STANDARD = {_VERSION: "v1"}


def cited_message(answer: Answer | Cited) -> AIMessage:
    """The text of an answer as a message with LangChain's `Citation` annotations.

    Each annotation has the source as `title`, and as `url` if it is one; the place of the marker (`start_index`,
    `end_index`); and the quote or the passage (`cited_text`). The rest is in `extras["oprag"]`: number, source, page,
    section, span, and whether a quote is not in the passage (`misquoted`).

    Args:
        answer: The answer of a chain with `cite=True`, or what `WorkingContext.cited` returned.

    Returns:
        The message. Providers accept only annotations of their own: `lay_out_messages` removes these again.

    Example:
        >>> from oprag import Chunk, WorkingContext
        >>> working = WorkingContext()
        >>> _ = working.add([Chunk("The captain is Ada.", 0, "book.txt")])
        >>> (block,) = cited_message(working.cited("Ada [1].")).content_blocks
        >>> block["annotations"][0]["title"], block["annotations"][0]["cited_text"]
        ('book.txt', 'The captain is Ada.')
    """
    return annotated(AIMessage(answer.text), answer.citations)


def annotated(message: AIMessage, citations: Iterable[Citation]) -> AIMessage:
    """A copy of a message with these citations of its text; those that the provider attached are completed."""
    message = without_annotations(message)
    citations = list(citations)
    blocks: list[Any] = []
    start = 0
    for block in message.content_blocks:
        if block["type"] != "text":
            blocks.append(block)
            continue
        end = start + len(block["text"])
        own = [one for one in citations if start <= one.start < end]
        annotations = [_completed(one, own) for one in block.get("annotations", ())]
        annotations += [_annotation(one, start, end) for one in own]
        blocks.append({**block, "annotations": annotations} if annotations else block)
        start = end
    metadata = {**message.response_metadata, **_STANDARD}
    if isinstance(message.content, str):
        metadata[METADATA_KEY] = {_VERSION: message.response_metadata.get(_VERSION)}
    return message.model_copy(update={"content": blocks, "response_metadata": metadata})


def _completed(annotation: Any, citations: list[Citation]) -> Any:
    """The annotation of a provider with what we know of it; its citation is removed from the list."""
    for one in citations:
        title, text = (str(annotation.get(name)) for name in ("title", "cited_text"))
        if one.quote == text and title.startswith(f"[{one.number}]"):
            citations.remove(one)
            return {**annotation, "extras": {**(annotation.get("extras") or {}), METADATA_KEY: _about(one)}}
    return annotation


def _annotation(citation: Citation, start: int, end: int) -> Annotation:
    """A citation as an annotation of the block with this range of the text."""
    annotation: Annotation = {
        "type": "citation",
        "start_index": citation.start - start,
        "end_index": min(citation.end, end) - start,
        "cited_text": citation.cited_text,
        "extras": {METADATA_KEY: _about(citation)},
    }
    if citation.source:
        annotation["title"] = citation.source
        if citation.source.startswith(("https://", "http://")):
            annotation["url"] = citation.source
    return annotation


def _about(citation: Citation) -> dict[str, Any]:
    return {name: value for name, value in citation.to_dict().items() if name not in ("start", "end", "text")}


def without_annotations(message: M) -> M:
    """The message without what `annotated` added, for a model; the same object if it has none of it."""
    content = message.content
    if isinstance(content, list):
        content = [_without_annotations(block) for block in content]
    metadata = message.response_metadata
    if METADATA_KEY in metadata:
        # The content was a text.
        if isinstance(content, list):
            texts = (block for block in content if isinstance(block, dict) and block.get("type") == "text")
            content = "".join(block["text"] for block in texts)
        before = metadata[METADATA_KEY][_VERSION]
        metadata = {name: value for name, value in metadata.items() if name not in (METADATA_KEY, _VERSION)}
        metadata |= {} if before is None else {_VERSION: before}
    if metadata is message.response_metadata and content == message.content:
        return message
    return message.model_copy(update={"content": content, "response_metadata": metadata})


def _without_annotations(block: Any) -> Any:
    annotations = block.get("annotations") if isinstance(block, dict) else None
    if not isinstance(annotations, list):
        return block
    kept = [left for one in annotations if (left := _as_given(one)) is not None]
    rest = {name: value for name, value in block.items() if name != "annotations"}
    return rest | ({"annotations": kept} if kept or not annotations else {})


def _as_given(annotation: Any) -> Any:
    """An annotation as the provider gave it; None for one of ours."""
    extras = annotation.get("extras") if isinstance(annotation, dict) else None
    if not isinstance(extras, dict) or METADATA_KEY not in extras:
        return annotation
    extras = {name: value for name, value in extras.items() if name != METADATA_KEY}
    return {**annotation, "extras": extras} if extras else None
