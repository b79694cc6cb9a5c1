"""A stand-in for a model that calls tools, so that the agent example needs no key. It understands nothing."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

from parts.stand_in import reply_to

__all__ = ["SearchingStandIn"]


class SearchingStandIn(CustomLLM, FunctionCallingLLM):
    """Searches for each of its questions, one after another, and then copies a sentence of what it read."""

    questions: list[str]

    @property
    def metadata(self) -> LLMMetadata:
        """What is known about the model."""
        return LLMMetadata(model_name="stand-in", is_chat_model=True, is_function_calling_model=True)

    def chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        """A search, or the answer."""
        results = [message.content or "" for message in messages if message.role == MessageRole.TOOL]
        if len(results) < len(self.questions):
            call = {"id": f"search-{len(results)}", "query": self.questions[len(results)]}
            return ChatResponse(message=ChatMessage(role="assistant", content="", additional_kwargs={"calls": [call]}))
        text = reply_to("\n\n".join(results), self.questions[0])
        return ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        """As `chat`."""
        return self.chat(messages)

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponseAsyncGen:
        """As `chat`, in one piece."""

        async def pieces() -> ChatResponseAsyncGen:
            yield self.chat(messages)

        return pieces()

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002
        """Reply to a text."""
        return CompletionResponse(text=reply_to(prompt, prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:  # noqa: ARG002, FBT001, FBT002
        """Reply to a text, in one piece."""
        yield CompletionResponse(text=reply_to(prompt, prompt), delta=reply_to(prompt, prompt))

    def get_tool_calls_from_response(
        self,
        response: ChatResponse,
        error_on_no_tool_call: bool = True,  # noqa: ARG002, FBT001, FBT002
        **_: Any,
    ) -> list[ToolSelection]:
        """The searches that a reply asks for."""
        calls = response.message.additional_kwargs.get("calls", [])
        return [
            ToolSelection(tool_id=call["id"], tool_name="search", tool_kwargs={"query": call["query"]})
            for call in calls
        ]

    def _prepare_chat_with_tools(  # type: ignore[override]
        self,
        tools: Any,  # noqa: ARG002
        user_msg: Any = None,
        chat_history: Any = None,
        **_: Any,
    ) -> dict[str, Any]:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}
