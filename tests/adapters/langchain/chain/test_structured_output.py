"""Models that give objects: the answer is the object, whichever way the chain is called."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import BaseModel

from tests.adapters.langchain.chain.conftest import Model, chain_of, every_way, run
from tests.adapters.langchain.conftest import numbers_of
from tests.adapters.scripted import QUESTION, both_sides


class Verdict(BaseModel):
    """What happened."""

    place: str
    year: int


FOUND = Verdict(place="Åland {harbour}", year=1872)


class Structured(Model):
    """Calls the tool that `with_structured_output` binds, and with streaming, in several pieces."""

    arguments: str = FOUND.model_dump_json()
    calls_tool: bool = True

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind()

    def _generate(self, messages: Any, *rest: Any, **kwargs: Any) -> ChatResult:
        super()._generate(messages, *rest, **kwargs)
        return self._as_call(messages)

    async def _agenerate(self, messages: Any, *rest: Any, **kwargs: Any) -> ChatResult:
        await super()._agenerate(messages, *rest, **kwargs)
        return self._as_call(messages)

    def _as_call(self, messages: Any) -> ChatResult:
        calls: Any = [{"name": "Verdict", "args": json.loads(self.arguments), "id": "1", "type": "tool_call"}]
        message = AIMessage(
            "", tool_calls=calls if self.calls_tool else [], usage_metadata=self._usage(messages, "abc")
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _pieces(self, messages: Any) -> Iterator[ChatGenerationChunk]:
        half = len(self.arguments) // 2
        for number, arguments in enumerate((self.arguments[:half], self.arguments[half:])):
            piece: Any = {
                "name": None if number else "Verdict",
                "args": arguments,
                "id": None if number else "1",
                "index": 0,
                "type": "tool_call_chunk",
            }
            usage = self._usage(messages, "abc") if number else None
            chunk = AIMessageChunk(
                content="", tool_call_chunks=[piece] if self.calls_tool else [], usage_metadata=usage
            )
            yield ChatGenerationChunk(message=chunk)

    def _stream(self, messages: Any, *rest: Any, **kwargs: Any) -> Iterator[Any]:
        self.calls.append(messages)
        yield from self._pieces(messages)

    async def _astream(self, messages: Any, *rest: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self.calls.append(messages)
        for piece in self._pieces(messages):
            yield piece


@every_way
@pytest.mark.parametrize("method", ["stuff", "refine", "map_reduce"])
async def test_the_answer_is_the_object(way: str, method: str):
    chain = chain_of(Structured().with_structured_output(Verdict), count=2, method=method)
    result = await run(chain, way, QUESTION)
    assert result["answer"] == FOUND
    assert isinstance(result["answer"], Verdict)
    assert numbers_of(result["context"]) == [0, 1]


@both_sides
async def test_an_answer_holds_text_and_object(is_async: bool):
    chain = chain_of(Structured().with_structured_output(Verdict), count=2, method="map_reduce")
    answer = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    assert answer.parsed == FOUND
    assert json.loads(answer.text) == FOUND.model_dump()
    assert answer.usage.estimated
    answer.to_dict()
    assert "1872" in answer.explain()


@every_way
async def test_no_object_is_no_answer(way: str):
    """The model did not call the tool, so the parser gives None."""
    chain = chain_of(Structured(calls_tool=False).with_structured_output(Verdict), count=1)
    assert (await run(chain, way, QUESTION))["answer"] in {None, ""}


# Streamed, LangChain's parsers pass over an object that is not whole yet, and one that never will be too.
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "batch", "abatch"])
async def test_an_object_that_does_not_validate_names_the_call(way: str):
    from oprag.errors import ModelError

    chain = chain_of(Structured(arguments='{"place": 5}').with_structured_output(Verdict), count=1)
    with pytest.raises(ModelError, match="answer"):
        await run(chain, way, QUESTION)
