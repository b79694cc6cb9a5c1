"""The rich answer: what LlamaIndex says of usage, citations of nodes, and its conversations."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ImageBlock, MessageRole, TextBlock

from oprag.errors import QueryError
from oprag.methods import Usage
from oprag.methods.run import CUT_SHORT
from tests.adapters.llama_index.engine.conftest import (
    WAYS,
    Model,
    answered,
    both_models,
    engine_of,
    run,
)
from tests.adapters.scripted import QUESTION, both_sides, by_step


async def usage(engine: Any, way: str) -> Usage:
    """What a response, or a rich answer, says that it took."""
    if way == "answer":
        return engine.answer(QUESTION).usage  # type: ignore[no-any-return]
    _, response = await run(engine, way)
    return Usage(**response.metadata["oprag"]["usage"])


def stand_in(**values: Any) -> SimpleNamespace:
    """An object such as the clients of providers give."""
    return SimpleNamespace(**values)


RAW: list[tuple[Any, dict[str, Any], Usage]] = [
    ({"usage": {"prompt_tokens": 11, "completion_tokens": 7}}, {}, Usage(11, 7)),
    (stand_in(usage=stand_in(prompt_tokens=11, completion_tokens=7)), {}, Usage(11, 7)),
    (
        {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}},
        {},
        Usage(11, 7, 5),
    ),
    (
        stand_in(
            usage=stand_in(prompt_tokens=11, completion_tokens=7, prompt_tokens_details=stand_in(cached_tokens=5))
        ),
        {},
        Usage(11, 7, 5),
    ),
    ({"usage": {"input_tokens": 11, "output_tokens": 7}}, {}, Usage(11, 7)),
    (
        {
            "usage": stand_in(
                input_tokens=11, output_tokens=7, cache_read_input_tokens=90, cache_creation_input_tokens=9
            )
        },
        {},
        Usage(110, 7, 90),
    ),
    ({"usage_metadata": {"prompt_token_count": 11, "candidates_token_count": 7}}, {}, Usage(11, 7)),
    (
        {"usage_metadata": {"prompt_token_count": 11, "candidates_token_count": 7, "thoughts_token_count": 60}},
        {},
        Usage(11, 67),
    ),
    ({"prompt_eval_count": 11, "eval_count": 7}, {}, Usage(11, 7)),
    (None, {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}, Usage(11, 7)),
    ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, {}, Usage(0, 0)),
]


@pytest.mark.parametrize(("raw", "about", "expected"), RAW)
@pytest.mark.parametrize("way", ["answer", *WAYS])
async def test_usage_is_the_models_own(way: str, raw: Any, about: dict[str, Any], expected: Usage):
    assert await usage(engine_of(Model(raw=raw, about=about)), way) == expected
    assert await usage(engine_of(Model(raw=raw, about=about, chats=False)), way) == expected


@pytest.mark.parametrize("way", ["answer", *WAYS])
@pytest.mark.parametrize(
    "raw",
    [
        None,
        "text",
        {"usage": {"prompt_tokens": 11}},
        {"usage": {"prompt_tokens": "11", "completion_tokens": "7"}},
        stand_in(usage=3),
    ],
    ids=str,
)
async def test_usage_is_an_estimate_where_the_model_does_not_say(way: str, raw: Any):
    engine = engine_of(Model(raw=raw), count_tokens=lambda text: len(text.split()))
    assert await usage(engine, way) == Usage(4 * 4 + 1 + 1 + 5, 2, estimated=True)


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_one_chunk_of_a_stream_may_say_it_for_all(way: str):
    class First(Model):
        def _chat(self, text: str, delta: str | None = None) -> ChatResponse:
            response = super()._chat(text, delta)
            response.raw = self.raw if text == delta else {"choices": []}
            return response

    raw = {"usage": {"prompt_tokens": 11, "completion_tokens": 7}, "choices": [{"finish_reason": "length"}]}
    _, response = await run(engine_of(First(raw=raw)), way)
    about = response.metadata["oprag"]
    assert (about["usage"], about["notes"]) == (Usage(11, 7)._asdict(), [CUT_SHORT])


@both_models
@pytest.mark.parametrize("way", ["answer", "stream", "astream"])
async def test_a_reply_that_was_cut_short_is_noted(way: str, chats: bool):
    for raw in (
        {"choices": [{"finish_reason": "length"}]},
        stand_in(choices=[stand_in(finish_reason="length")]),
        {"stop_reason": "max_tokens"},
        stand_in(stop_reason="max_tokens"),
        {"done_reason": "length"},
    ):
        engine = engine_of(Model(chats=chats, raw=raw))
        if way == "answer":
            notes = engine.answer(QUESTION).notes
        else:
            _, response = await run(engine, way)
            notes = response.metadata["oprag"]["notes"]
        assert any("cut short" in note for note in notes), raw


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"chat_history": ["hello"]}, "chat messages, got str"),
        ({"chat_history": "hello"}, "chat messages, got str"),
        ({"chat_history": [("user", "hello")]}, "chat messages, got tuple"),
    ],
    ids=str,
)
@both_sides
async def test_what_is_no_conversation_is_refused(is_async: bool, given: dict[str, Any], message: str):
    model = Model()
    engine: Any = engine_of(model)
    with pytest.raises(QueryError, match=message):
        await answered(engine, is_async, **given)
    assert (model.calls, engine.retriever.questions) == ([], [])


def test_what_was_never_said_is_no_part_of_a_conversation():
    model = Model(reply=by_step)
    history = [
        ChatMessage(role=MessageRole.SYSTEM, content="Be kind."),
        ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text="Who is"), TextBlock(text="this?")]),
        ChatMessage(role=MessageRole.ASSISTANT, content=None, additional_kwargs={"tool_calls": [{"id": "1"}]}),
        ChatMessage(role=MessageRole.TOOL, content="A result."),
        ChatMessage(role=MessageRole.USER, blocks=[ImageBlock(url="https://example.org/a.png")]),
        ChatMessage(role=MessageRole.ASSISTANT, content="Ada."),
    ]
    engine_of(model).answer("And then?", chat_history=history)
    said = model.read[0]
    assert "Who is\nthis?" in said
    assert "Ada." in said
    assert "A result." not in said
    assert "example.org" not in said
