"""LlamaIndex's responses, made of what a driver shows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator, Sequence
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
from oprag.context_report import METADATA_KEY
from oprag.llama_index.nodes import nodes_of
from oprag.methods.answer import Answer
from oprag.methods.driver import Shown

__all__ = ["Responding"]


class Responding:
    """Makes the response to one query.

    Args:
        stitch: Whether source nodes are whole passages.
        annotate: Whether they are copies that say how they were placed.
        more: Further source nodes.
    """

    def __init__(self, *, stitch: bool, annotate: bool, more: Sequence[NodeWithScore] = ()) -> None:
        self._stitch = stitch
        self._annotate = annotate
        self._more = more

    def nodes_of(self, contexts: Iterable[Context]) -> list[NodeWithScore]:
        """The nodes of the contexts in order, each once, and further ones."""
        nodes: dict[str, NodeWithScore] = {}
        for context in contexts:
            for scored in nodes_of(context, annotate=self._annotate, stitch=self._stitch):
                nodes.setdefault(scored.node.node_id, scored)
        return [*nodes.values(), *self._more]

    def whole(self, answer: Answer) -> RESPONSE_TYPE:
        """A response that is complete."""
        nodes = self.nodes_of(answer.contexts)
        metadata = _metadata(nodes) | _about(answer)
        if isinstance(answer.parsed, BaseModel):
            return PydanticResponse(answer.parsed, source_nodes=nodes, metadata=metadata)
        return Response(answer.text, source_nodes=nodes, metadata=metadata)

    def streamed(self, shown: Iterator[Shown]) -> StreamingResponse:
        """A response that is still being written, or about to be; all retrieval is done by now."""
        contexts: list[Context] = []
        first = next(one for one in shown if not _collected(one, contexts))
        nodes = self.nodes_of(contexts)
        metadata = _metadata(nodes)

        def pieces() -> Generator[str, None, None]:
            pieces_of = _Pieces(metadata)
            yield from pieces_of.take(first)
            for one in shown:
                yield from pieces_of.take(one)

        return StreamingResponse(pieces(), source_nodes=nodes, metadata=metadata)

    async def astreamed(self, shown: AsyncIterator[Shown]) -> AsyncStreamingResponse:
        """As `streamed`, async."""
        contexts: list[Context] = []
        first: Any = None
        async for one in shown:
            if not _collected(one, contexts):
                first = one
                break
        nodes = self.nodes_of(contexts)
        metadata = _metadata(nodes)

        async def pieces() -> AsyncGenerator[str, None]:
            pieces_of = _Pieces(metadata)
            for piece in pieces_of.take(first):
                yield piece
            async for one in shown:
                for piece in pieces_of.take(one):
                    yield piece

        return AsyncStreamingResponse(pieces(), source_nodes=nodes, metadata=metadata)


class _Pieces:
    """The pieces of an answer; all of it at once where it was not written in pieces."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        self._metadata = metadata
        self._streamed = False

    def take(self, shown: Shown) -> Iterator[str]:
        if isinstance(shown, str):
            if shown:
                self._streamed = True
                yield shown
        elif isinstance(shown, Answer):
            self._metadata.update(_about(shown))
            if not self._streamed:
                yield shown.text


def _collected(shown: Shown, contexts: list[Context]) -> bool:
    """Put a context where it belongs."""
    if not isinstance(shown, Context):
        return False
    contexts.append(shown)
    return True


def _metadata(nodes: Sequence[NodeWithScore]) -> dict[str, Any]:
    """As LlamaIndex's own synthesizers give it."""
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
