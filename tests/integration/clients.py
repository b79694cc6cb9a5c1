"""Clients of the model server, made as users of LangChain and of LlamaIndex make them."""

from __future__ import annotations

from typing import Any

from tests.integration.model_server import ENDLESS, KEY, LONGEST_REPLY
from tests.integration.wire import Wire

PATIENCE = 120  # seconds; without a number LangChain's client waits for ever


def chat_openai(address: str, wire: Wire, *, endless: bool = False, **options: Any) -> Any:
    """LangChain's client; an endless one has the model go on where its reply would end."""
    from langchain_openai import ChatOpenAI

    if endless:
        options |= {"max_completion_tokens": ENDLESS, "extra_body": {"ignore_eos": True}}
    given = {"temperature": 0, "max_completion_tokens": LONGEST_REPLY, "stream_usage": True, "timeout": PATIENCE}
    return ChatOpenAI(
        base_url=f"{address}/v1",
        api_key=KEY,
        model="smollm2",
        http_client=wire.client,
        **given | options,
    )


def openai_like(address: str, wire: Wire, *, endless: bool = False, **options: Any) -> Any:
    """LlamaIndex's client; an endless one has the model go on where its reply would end."""
    from llama_index.llms.openai_like import OpenAILike

    extra: dict[str, Any] = {"stream_options": {"include_usage": True}}
    if endless:
        options |= {"max_tokens": ENDLESS}
        extra |= {"extra_body": {"ignore_eos": True}}
    return OpenAILike(
        api_base=f"{address}/v1",
        api_key=KEY,
        model="smollm2",
        is_chat_model=True,
        additional_kwargs=extra,
        http_client=wire.client,
        **{"temperature": 0, "max_tokens": LONGEST_REPLY, "timeout": PATIENCE} | options,
    )
