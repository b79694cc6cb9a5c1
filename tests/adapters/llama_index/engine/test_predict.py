"""The engine sends what `llm.predict` sends: with all settings of a model that LlamaIndex applies to its prompts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate, PromptTemplate
from llama_index.core.types import BaseOutputParser
from pydantic import BaseModel

from oprag.errors import ModelError
from tests.adapters.llama_index.conftest import ListRetriever
from tests.adapters.llama_index.engine.conftest import (
    Model,
    both_models,
    engine_of,
    every_method,
    every_way,
    full_engine,
    run,
)
from tests.adapters.llama_index.engine.test_prompts import ONE, TEMPLATES, as_the_built_in_engine
from tests.adapters.scripted import QUESTION


class Shouting(BaseOutputParser):
    """Asks for a form, and changes what comes."""

    def format(self, query: str) -> str:
        return f"{query}\nReply in small letters."

    def parse(self, output: str) -> str:
        return output.upper()


class Strict(BaseOutputParser):
    def parse(self, output: str) -> Any:
        raise ValueError(f"not of the form: {output}")


def bracketed(prompt: str) -> str:
    return f"[INST]{prompt}[/INST]"


def lined(messages: Any) -> str:
    return "".join(f"<|{message.role.value}|>{message.content}" for message in messages)


SETTINGS: list[dict[str, Any]] = [
    {"system_prompt": "Answer in German."},
    {"query_wrapper_prompt": PromptTemplate("<s>{query_str}</s>")},
    {"system_prompt": "Answer in German.", "query_wrapper_prompt": PromptTemplate("<s>{query_str}</s>")},
    {"completion_to_prompt": bracketed},
    {"messages_to_prompt": lined},
    {"output_parser": Shouting()},
    {
        "system_prompt": "Answer in German.",
        "query_wrapper_prompt": PromptTemplate("<s>{query_str}</s>"),
        "completion_to_prompt": bracketed,
        "messages_to_prompt": lined,
        "output_parser": Shouting(),
    },
]
every_setting = pytest.mark.parametrize("settings", SETTINGS, ids="+".join)


def by_word(prompt: str) -> str:
    """A reply that goes by the step alone, whatever was written around the prompt."""
    step = re.search(r"\b(?:ANSWER|REFINE|MAP|COLLAPSE|REDUCE|RERANK|VARIANTS|AGGREGATE|ROUTE)\b", prompt)
    assert step is not None
    replies = {
        "RERANK": "Reranked.\nConfidence: 50",
        "VARIANTS": "Who was it?\nWhere was it?",
        "ROUTE": "Unanswerable.",
    }
    return replies.get(step[0], f"{step[0].capitalize()}, it said.")


def calls_of(model: Model) -> list[list[tuple[str, Any]]]:
    return [[(message.role.value, message.content) for message in call] for call in model.calls]


@both_models
@every_way
@every_method
async def test_every_call_of_every_method_is_that_of_predict(method: str, way: str, chats: bool):
    settings: dict[str, Any] = {"chats": chats, **SETTINGS[-1]}
    # What the parser makes of one reply is in the next prompt.
    plain = Model(reply=lambda prompt: by_word(prompt).upper())
    model, expected = Model(reply=by_word, **settings), Model(reply=by_word, **settings)
    await run(full_engine(plain, method, max_concurrency=1), "query")
    await run(full_engine(model, method, max_concurrency=1), way)
    for text in plain.read:
        expected.predict(PromptTemplate("{text}"), text=text)
    assert len(model.calls) == len(plain.calls)
    assert calls_of(model) == calls_of(expected)


@every_setting
@both_models
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: type(template).__name__)
def test_a_template_is_sent_as_the_built_in_engine_sends_it(
    template: BasePromptTemplate, chats: bool, settings: dict[str, Any]
):
    model = Model(chats=chats, **settings)
    engine_of(model, retriever=ListRetriever(ONE), prompts={"answer": template}).query(QUESTION)
    assert calls_of(model)[-1] == as_the_built_in_engine(template, chats=chats, **settings)


@every_way
async def test_a_reply_that_the_parser_refuses_is_a_failed_call(way: str):
    with pytest.raises(ModelError, match="'answer' failed: ValueError: not of the form: it sank"):
        await run(engine_of(Model(reply=lambda prompt: "it sank", output_parser=Strict())), way)


@every_way
@both_models
@pytest.mark.parametrize(
    "template",
    [
        PromptTemplate("C: {context_str} Q: {query_str}", output_parser=Shouting()),
        ChatPromptTemplate.from_messages([("user", "C: {context_str} Q: {query_str}")], output_parser=Shouting()),
    ],
    ids=["plain", "chat"],
)
async def test_a_parser_of_a_prompt_adds_to_the_prompt(template: Any, chats: bool, way: str):
    """Its `parse` is the business of who made the prompt: `predict` leaves the reply as it is."""
    model, expected = (Model(chats=chats, reply=lambda prompt: "it sank") for _ in range(2))
    engine = engine_of(model, retriever=ListRetriever(ONE), prompts={"answer": template})
    text, _ = await run(engine, way)
    assert text == expected.predict(template, context_str="Part 0 of voyage.", query_str=QUESTION) == "it sank"
    assert calls_of(model) == calls_of(expected)


class Verdict(BaseModel):
    name: str


@every_way
@both_models
async def test_a_model_that_gives_objects_keeps_its_system_prompt(way: str, chats: bool):
    given: dict[str, Any] = {"chats": chats, "system_prompt": "Be brief.", "reply": lambda prompt: '{"name": "Ahab"}'}
    model, expected = Model(**given), Model(**given)
    template = PromptTemplate("C: {context_str} Q: {query_str}")
    engine = engine_of(model.as_structured_llm(Verdict), retriever=ListRetriever(ONE), prompts={"answer": template})
    await run(engine, way)
    wanted = expected.as_structured_llm(Verdict)
    wanted.predict(template, context_str="Part 0 of voyage.", query_str=QUESTION)
    assert calls_of(model) == calls_of(expected)
    assert not chats or "Be brief." in model.read[0]
