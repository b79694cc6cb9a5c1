"""The model of `benchmarks.langchain_model` for LlamaIndex."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from pydantic import PrivateAttr

__all__ = ["FakeLLM"]

_REPLY = "An answer of the model."


class FakeLLM(CustomLLM):
    """Returns the same reply to every prompt after `seconds`; async without a thread."""

    seconds: float = 0.0
    calls: int = 0
    peak: int = 0
    _running: int = PrivateAttr(0)
    _lock: Any = PrivateAttr(default_factory=Lock)

    @property
    def metadata(self) -> LLMMetadata:
        """The metadata of a chat model with a large context window."""
        return LLMMetadata(is_chat_model=True, context_window=1_000_000, num_output=256, model_name="fake")

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

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:  # noqa: ARG002
        """The reply."""
        with self._counted():
            if self.seconds:
                time.sleep(self.seconds)
            return _response()

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:  # noqa: ARG002
        """The reply, async."""
        with self._counted():
            if self.seconds:
                await asyncio.sleep(self.seconds)
            return _response()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Not used: this is a chat model."""
        raise NotImplementedError

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Not used: this is a chat model."""
        raise NotImplementedError


def _response() -> ChatResponse:
    return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=_REPLY))
