"""Models as providers' packages have them."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import Field, SecretStr

SECRET = "very-secret"


class Hosted(BaseChatModel):
    """The settings that chat models of LangChain have; its metadata count its calls."""

    model_name: str = Field(default="chat-3", alias="model")
    temperature: float | None = 0.7
    base_url: str | None = f"https://me:{SECRET}@host:8080/v1?api_key={SECRET}&version=2"
    api_key: SecretStr | None = SecretStr(SECRET)
    volcano_ak: str | None = None
    default_headers: dict[str, str] = Field(default={"Authorization": SECRET})
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    stop: list[str] | None = None
    max_retries: int | None = 0
    timeout: float | None = None
    client: Any = Field(default_factory=object)
    fails: bool = False

    @property
    def _llm_type(self) -> str:
        return "hosted"

    def _generate(self, messages: Any, stop: Any = None, *_: Any, **__: Any) -> ChatResult:
        self.metadata = {**(self.metadata or {}), "calls": (self.metadata or {}).get("calls", 0) + 1}
        if self.fails:
            raise ConnectionError(f"the line to {self.model_name} is down")
        reply = AIMessage(
            f"{len(messages)} messages, {stop}: {messages[-1].text}",
            usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
            response_metadata={"finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=reply)])

    @property
    def called(self) -> int:
        return int((self.metadata or {}).get("calls", 0))


class Completing(CustomLLM):
    """A model of LlamaIndex that completes texts."""

    model: str = "writer-1"
    temperature: float = 0.1
    window: int = 1_234

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self.window, model_name=self.model)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        usage = {"prompt_tokens": 4, "completion_tokens": 2}
        return CompletionResponse(text=f"completed: {prompt}", additional_kwargs=usage)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError


def repeat(prompt: str) -> str:
    return prompt
