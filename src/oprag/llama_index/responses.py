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

from oprag._internal.sync_async import Items, Steps
from oprag.context import Context
from oprag.methods.answer import Answer
from oprag.methods.run import Shown
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["response_of", "streaming_response"]


def response_of(answer: Answer, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
    """The response for an answer: with an object, if the model returned one."""
    metadata = _metadata(nodes) | _about(answer)
    if isinstance(answer.parsed, BaseModel):
        return PydanticResponse(answer.parsed, source_nodes=nodes, metadata=metadata)
    return Response(answer.text, source_nodes=nodes, metadata=metadata)


def streaming_response(
    all_shown: Iterator[Shown] | AsyncIterator[Shown], source_nodes: Callable[[list[Context]], list[NodeWithScore]]
) -> Steps[RESPONSE_TYPE]:
    """A streaming response, returned when retrieval is complete and the answer starts."""
    contexts: list[Context] = []
    items = Items(all_shown)
    while isinstance(first := (yield items.following), Context):
        contexts.append(first)
    nodes = source_nodes(contexts)
    metadata = _metadata(nodes)

    def text_of(shown: Shown) -> str:
        """The text in a value that the driver emits; the answer completes the metadata."""
        if not isinstance(shown, Answer):
            return shown if isinstance(shown, str) else ""
        metadata.update(_about(shown))
        return "" if shown.parsed is None else shown.text

    if isinstance(all_shown, AsyncIterator):

        async def texts() -> AsyncGenerator[str, None]:
            if text := text_of(first):
                yield text
            async for shown in all_shown:
                if text := text_of(shown):
                    yield text

        return AsyncStreamingResponse(texts(), source_nodes=nodes, metadata=metadata)
    pieces = (text for shown in chain([first], all_shown) if (text := text_of(shown)))
    return StreamingResponse(pieces, source_nodes=nodes, metadata=metadata)


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
