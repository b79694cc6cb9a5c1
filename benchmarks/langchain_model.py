"""A LangChain chat model with a given latency that counts its calls and its concurrent calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

__all__ = ["PIECES", "FakeChatModel"]

PIECES = ("An ", "answer ", "of ", "the ", "model.")


class FakeChatModel(BaseChatModel):
    """Returns the same reply to every prompt, whole or streamed, after `seconds`; async without a thread."""

    seconds: float = 0.0
    calls: int = 0
    peak: int = 0
    _running: int = PrivateAttr(0)
    _lock: Any = PrivateAttr(default_factory=Lock)

    @property
    def _llm_type(self) -> str:
        return "fake"

    def get_token_ids(self, text: str) -> list[int]:
        """Return cheap ones; the default downloads a tokenizer."""
        return [0] * (len(text) // 4)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self.calls += 1
            self._running += 1
            self.peak = max(self.peak, self._running)
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:  # noqa: ARG002
        with self._counted():
            if self.seconds:
                time.sleep(self.seconds)
            return _reply()

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:  # noqa: ARG002
        with self._counted():
            if self.seconds:
                await asyncio.sleep(self.seconds)
            return _reply()

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:  # noqa: ARG002
        with self._counted():
            if self.seconds:
                time.sleep(self.seconds)
            for piece in PIECES:
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))

    async def _astream(
        self,
        messages: list[BaseMessage],  # noqa: ARG002
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        with self._counted():
            if self.seconds:
                await asyncio.sleep(self.seconds)
            for piece in PIECES:
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


def _reply() -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage(content="".join(PIECES)))])
