"""Tokens: the model's own figures where it gives them, an estimate that says so where it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from oprag.errors import ModelWarning
from oprag.methods import Answer, Usage
from tests.adapters.langchain.chain.conftest import Model, chain_of
from tests.adapters.scripted import QUESTION, both_sides, by_step


async def answered(chain: Any, *, is_async: bool, streaming: bool = False) -> Answer:
    answer: Answer
    if not streaming:
        answer = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
        return answer
    pieces = [one async for one in chain.astream_answer(QUESTION)] if is_async else list(chain.stream_answer(QUESTION))
    answer = pieces[-1]
    return answer


streamed_or_not = pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])


@both_sides
@streamed_or_not
async def test_the_models_own_figures(is_async: bool, streaming: bool):
    """Also when they come in two parts at the end of a stream."""
    model = Model(reply=by_step, counts=True)
    answer = await answered(chain_of(model, method="map_reduce"), is_async=is_async, streaming=streaming)
    for call in answer.calls:
        assert call.usage == Usage(1_000 * len(call.prompt.messages), 7 * len(call.reply))
    assert answer.usage == Usage(5_000, 7 * sum(len(call.reply) for call in answer.calls))
    assert not answer.usage.estimated
    assert "estimated" not in answer.explain()
    assert "~" not in str(chain_of(model).answer_with(QUESTION, ["stuff"])).split("\n", 1)[1]


@both_sides
@streamed_or_not
async def test_an_estimate_is_marked(is_async: bool, streaming: bool):
    chain = chain_of(Model(), count_tokens=lambda text: len(text.split()))
    answer = await answered(chain, is_async=is_async, streaming=streaming)
    (call,) = answer.calls
    assert call.usage == Usage(len(call.prompt.text.split()), 2, estimated=True)
    assert answer.usage.estimated
    assert "estimated" in answer.explain()
    assert answer.to_dict()["usage"]["estimated"] is True
    assert "~2" in str(chain.answer_with(QUESTION, ["stuff"]))


class Caching(Model):
    """Says how much of the prompt it had read before."""

    def _generate(self, messages: Any, *rest: Any, **kwargs: Any) -> ChatResult:
        usage = UsageMetadata(
            input_tokens=100, output_tokens=5, total_tokens=105, input_token_details={"cache_read": 60}
        )
        message = AIMessage("An answer.", usage_metadata=usage, response_metadata={"finish_reason": "length"})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: Any, *rest: Any, **kwargs: Any) -> Any:
        first = UsageMetadata(
            input_tokens=100, output_tokens=0, total_tokens=100, input_token_details={"cache_read": 60}
        )
        yield ChatGenerationChunk(message=AIMessageChunk(content="An", usage_metadata=first))
        last = UsageMetadata(input_tokens=0, output_tokens=5, total_tokens=5)
        chunk = AIMessageChunk(content=" answer.", usage_metadata=last, response_metadata={"finish_reason": "length"})
        yield ChatGenerationChunk(message=chunk)


@streamed_or_not
async def test_cached_tokens_and_the_reason_to_stop(streaming: bool):
    answer = await answered(chain_of(Caching()), is_async=False, streaming=streaming)
    assert answer.usage == Usage(100, 5, 60)
    assert answer.calls[0].completion.finish_reason == "length"
    assert any("cut short" in note for note in answer.notes)


@pytest.mark.parametrize(
    "about",
    [
        {"finish_reason": "length"},  # OpenAI, Ollama's chat completions, llama.cpp
        {"finish_reason": "MAX_TOKENS"},  # Gemini, Cohere
        {"finish_reason": "model_length"},  # Mistral
        {"stop_reason": "max_tokens"},  # Anthropic
        {"stopReason": "max_tokens"},  # Bedrock's Converse
        {"done_reason": "length"},  # Ollama
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},  # OpenAI's Responses
    ],
    ids=str,
)
@streamed_or_not
async def test_every_providers_word_for_a_reply_that_was_cut_short(about: dict[str, Any], streaming: bool):
    class Cut(Model):
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage("An an", response_metadata=about))])

        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            yield ChatGenerationChunk(message=AIMessageChunk(content="An"))
            yield ChatGenerationChunk(message=AIMessageChunk(content=" an", response_metadata=about))

    answer = await answered(chain_of(Cut()), is_async=False, streaming=streaming)
    assert [note for note in answer.notes if "cut short" in note]


def test_a_key_in_the_error_of_a_call_is_not_told():
    said = "401 Incorrect API key provided: sk-proj-0123456789abcdefXY"
    model = Model(reply=by_step, error=lambda number: PermissionError(said) if number == 1 else None)
    with pytest.warns(ModelWarning) as warned:
        answer = chain_of(model, method="map_reduce", on_error="skip").answer(QUESTION)
    told = [str(warned[0].message), answer.explain(), json.dumps(answer.to_dict())]
    assert not any("0123456789" in one for one in told)
    assert all("PermissionError: 401 Incorrect API key provided: ***" in one for one in told)
    assert str(answer.failed_calls[0].error) == said
