"""A provider's package, as LangChain finds it: its models are functions of `benchmarks.recorded_material`."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from benchmarks import recorded_material


class ChatOllama(BaseChatModel):
    """A model that replies as the function of its name does."""

    model: str

    @property
    def _llm_type(self) -> str:
        return "ollama"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        reply = getattr(recorded_material, self.model)()("\n\n".join(message.text for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])
