"""The responses of a query engine, whole and streamed, with the metadata of LlamaIndex's synthesizers and ours."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
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


def response_of(answer: Answer, nodes: list[NodeWithScore]) -> RESPONSE_TYPE:
    """The response for an answer: with an object, if the model returned one."""
    metadata = _metadata(nodes) | _about(answer)
    if isinstance(answer.parsed, BaseModel):
        return PydanticResponse(answer.parsed, source_nodes=nodes, metadata=metadata)
    return Response(answer.text, source_nodes=nodes, metadata=metadata)


def streaming_response(
    shown: Iterator[Shown], source_nodes: Callable[[list[Context]], list[NodeWithScore]]
) -> StreamingResponse:
    """A streaming response, returned when retrieval is complete and the answer starts."""
    contexts: list[Context] = []
    for first in shown:
        if not isinstance(first, Context):
            break
        contexts.append(first)
    nodes = source_nodes(contexts)
    metadata = _metadata(nodes)

    def pieces() -> Generator[str, None, None]:
        pieces_of = AnswerPieces(metadata)
        yield from pieces_of.take(first)
        for one in shown:
            yield from pieces_of.take(one)

    return StreamingResponse(pieces(), source_nodes=nodes, metadata=metadata)


async def streaming_response_async(
    shown: AsyncIterator[Shown], source_nodes: Callable[[list[Context]], list[NodeWithScore]]
) -> AsyncStreamingResponse:
    """Async version of `streaming_response`."""
    contexts: list[Context] = []
    async for first in shown:
        if not isinstance(first, Context):
            break
        contexts.append(first)
    nodes = source_nodes(contexts)
    metadata = _metadata(nodes)

    async def pieces() -> AsyncGenerator[str, None]:
        pieces_of = AnswerPieces(metadata)
        for piece in pieces_of.take(first):
            yield piece
        async for one in shown:
            for piece in pieces_of.take(one):
                yield piece

    return AsyncStreamingResponse(pieces(), source_nodes=nodes, metadata=metadata)


class AnswerPieces:
    """The pieces of the text of an answer; a single piece if the answer was not streamed."""

    def __init__(self, metadata: dict[str, Any] | None = None) -> None:
        self._metadata = {} if metadata is None else metadata
        self._streamed = False

    def take(self, shown: Shown) -> Iterator[str]:
        """The pieces in a value that the driver emits."""
        if isinstance(shown, str):
            if shown:
                self._streamed = True
                yield shown
        elif isinstance(shown, Answer):
            self._metadata.update(_about(shown))
            if not self._streamed:
                yield shown.text

    def with_answer(self, shown: Shown) -> Iterator[str | Answer]:
        """The pieces, and then the answer; an answer with an object has no text in pieces."""
        if not isinstance(shown, Answer):
            yield from self.take(shown)
            return
        if shown.parsed is None:
            yield from self.take(shown)
        yield shown


def _metadata(nodes: Sequence[NodeWithScore]) -> dict[str, Any]:
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
