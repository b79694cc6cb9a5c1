"""The responses of a query engine, whole and streamed, with the metadata of LlamaIndex's synthesizers and ours."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from itertools import chain
from typing import Any

from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import NodeWithScore
from pydantic import BaseModel

from oprag.context import Context
from oprag.methods.answer import Answer
from oprag.methods.run import Shown
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["AnswerPieces", "response_of", "streaming_response", "streaming_response_async"]

_SourceNodes = Callable[[list[Context]], list[NodeWithScore]]


def response_of(answer: Answer, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
    """The response for an answer: with an object, if the model returned one."""
    metadata = _metadata(nodes) | _about(answer)
    if isinstance(answer.parsed, BaseModel):
        return PydanticResponse(answer.parsed, source_nodes=nodes, metadata=metadata)
    return Response(answer.text, source_nodes=nodes, metadata=metadata)


def streaming_response(all_shown: Iterator[Shown], source_nodes: _SourceNodes) -> StreamingResponse:
    """A streaming response, returned when retrieval is complete and the answer starts."""
    contexts: list[Context] = []
    for first in all_shown:
        if not isinstance(first, Context):
            break
        contexts.append(first)
    nodes = source_nodes(contexts)
    pieces = AnswerPieces(_metadata(nodes))
    texts = (text for shown in chain([first], all_shown) for text in pieces.texts(shown))
    return StreamingResponse(texts, source_nodes=nodes, metadata=pieces.metadata)


async def streaming_response_async(
    all_shown: AsyncIterator[Shown], source_nodes: _SourceNodes
) -> AsyncStreamingResponse:
    """Async version of `streaming_response`."""
    contexts: list[Context] = []
    async for first in all_shown:
        if not isinstance(first, Context):
            break
        contexts.append(first)
    nodes = source_nodes(contexts)
    pieces = AnswerPieces(_metadata(nodes))

    async def texts() -> AsyncGenerator[str, None]:
        for text in pieces.texts(first):
            yield text
        async for shown in all_shown:
            for text in pieces.texts(shown):
                yield text

    return AsyncStreamingResponse(texts(), source_nodes=nodes, metadata=pieces.metadata)


class AnswerPieces:
    """The pieces of the text of an answer; a single piece if the answer was not streamed."""

    def __init__(self, metadata: dict[str, Any] | None = None) -> None:
        self.metadata = {} if metadata is None else metadata
        self._streamed = False

    def texts(self, shown: Shown) -> list[str]:
        """The pieces in a value that the driver emits; the last one completes the metadata."""
        text = shown if isinstance(shown, str) else ""
        if isinstance(shown, Answer):
            self.metadata.update(_about(shown))
            return [] if self._streamed else [shown.text]
        self._streamed = self._streamed or bool(text)
        return [text] if text else []

    def with_answer(self, shown: Shown) -> list[str | Answer]:
        """The pieces, and then the answer; an answer with an object has no text in pieces."""
        if not isinstance(shown, Answer):
            return [*self.texts(shown)]
        return [*(self.texts(shown) if shown.parsed is None else ()), shown]


def _metadata(nodes: list[NodeWithScore]) -> dict[str, Any]:
    """The metadata of the nodes, in the same format as LlamaIndex's own synthesizers."""
    return {scored.node.node_id: scored.node.metadata for scored in nodes}


def _about(answer: Answer) -> dict[str, Any]:
    about: dict[str, Any] = {
        "method": answer.method,
        "route": answer.route,
        "calls": len(answer.calls),
        "usage": answer.usage._asdict(),
        "notes": list(answer.notes),
    }
    if answer.cited:
        about["citations"] = [citation.to_dict() for citation in answer.citations]
    return {METADATA_KEY: about}
