"""The model of the LangChain examples: yours, or a stand-in that needs no key."""

import os
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
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
    """Copies a sentence from what it is given; with a tool it first asks that, and once more in other words."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        """The model with tools."""
        return self.bind(tools=list(tools), **options)

    def _generate(self, messages: list[BaseMessage], *_: Any, tools: Sequence[Any] = (), **__: Any) -> ChatResult:
        asked = next(message.text for message in reversed(messages) if isinstance(message, HumanMessage))
        searches = sum(isinstance(message, ToolMessage) for message in messages)
        if tools and searches < 2:
            query = " ".join(re.findall(r"\w{5,}", asked)) if searches else asked
            calls: list[Any] = [{"name": tools[0].name, "args": {"query": query}, "id": str(searches)}]
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])
        prompt = "\n\n".join(message.text for message in messages)
        reply = reply_to(prompt, asked)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply + _marker(prompt, reply)))])


def _marker(prompt: str, reply: str) -> str:
    """The number of the passage that a sentence was copied from, where passages have numbers."""
    _, *passages = re.split(r"^\[(\d+)\] ", prompt, flags=re.MULTILINE)
    for number, passage in zip(passages[::2], passages[1::2], strict=True):
        if reply in " ".join(passage.split()):
            return f" [{number}]"
    return ""
