"""Replies from LangChain's cache, and incomplete usage: neither breaks a chain, and a cached reply costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableLambda, RunnableMap
from pydantic import Field

from oprag.methods import Usage
from tests.adapters.langchain.chain.conftest import Model, chain_of, full_chain
from tests.adapters.langchain.chain.test_usage import answered, streamed_or_not
from tests.adapters.scripted import QUESTION, both_sides, by_step


@both_sides
@pytest.mark.parametrize("counts", [True, False], ids=["counting", "silent"])
async def test_a_hit_costs_no_tokens(counts: bool, is_async: bool):
    chain = full_chain(Model(reply=by_step, counts=counts, cache=InMemoryCache()), "map_reduce")
    first = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    assert first.usage.input_tokens > 0
    assert first.usage.estimated is not counts
    again = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    assert again.text == first.text
    assert [call.usage for call in again.calls] == [Usage()] * len(first.calls)
    assert not again.usage.estimated
    assert "estimated" not in again.explain()


@both_sides
async def test_a_structured_reply_out_of_the_cache(is_async: bool):
    """With `include_raw` the message is inside the reply."""
    model = Model(counts=True, cache=InMemoryCache())
    chain = chain_of(RunnableMap(raw=model) | RunnableLambda(lambda given: {**given, "parsed": {"a": 1}}))
    assert chain.answer(QUESTION).usage == Usage(1_000, 7 * len("An answer."))
    again = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    assert (again.text, again.usage) == ('{"a": 1}', Usage())


class Reporting(Model):
    """Reports its usage in a form that is not the one of today's integrations."""

    usage: Any = None
    about: dict[str, Any] = Field(default_factory=dict)

    def _result(self, messages: list[BaseMessage], text: str) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reporting(AIMessage(text)))])

    def _chunks(self, messages: list[BaseMessage], text: str) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(content=text))
        yield ChatGenerationChunk(message=self._reporting(AIMessageChunk(content="")))

    def _reporting(self, message: Any) -> Any:
        # As LangChain's cache does it: without the check that a new message goes through.
        return message.model_copy(update={"usage_metadata": self.usage, "response_metadata": self.about})


@streamed_or_not
@both_sides
@pytest.mark.parametrize(
    "about",
    [
        {"token_usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}},
        {"usage": {"input_tokens": 11, "output_tokens": 5}},
    ],
)
async def test_figures_that_an_older_integration_left_in_the_metadata(
    about: dict[str, Any], is_async: bool, streaming: bool
):
    answer = await answered(chain_of(Reporting(about=about)), is_async=is_async, streaming=streaming)
    assert answer.usage == Usage(11, 5)
