"""The model of the LangChain examples: yours, or a stand-in that needs no key."""

import os
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from parts.stand_in import reply_to

__all__ = ["chat_model"]


def chat_model() -> BaseChatModel:
    """The model that is named in OPRAG_EXAMPLE_MODEL, such as openai:gpt-5-mini; without that, a stand-in."""
    if name := os.environ.get("OPRAG_EXAMPLE_MODEL"):
        from langchain.chat_models import init_chat_model

        return init_chat_model(name)
    print("OPRAG_EXAMPLE_MODEL names no model, so a stand-in answers: it copies a sentence.\n")
    return StandIn()


class StandIn(BaseChatModel):
    """Copies a sentence from what it is given; with a tool it first asks that."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """The model with tools."""
        return self.bind(tools=list(tools), **options)

    def _generate(self, messages: list[BaseMessage], *_: Any, tools: Sequence[Any] = (), **__: Any) -> ChatResult:
        asked = next(message.text for message in reversed(messages) if isinstance(message, HumanMessage))
        if tools and isinstance(messages[-1], HumanMessage):
            calls: list[Any] = [{"name": tools[0].name, "args": {"query": asked}, "id": "1"}]
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])
        reply = reply_to("\n\n".join(message.text for message in messages), asked)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])
