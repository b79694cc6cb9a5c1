"""Where a query engine can stand: tools, agents, routers, sub-questions, retries, chat engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.callbacks import CallbackManager
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.indices.query.query_transform.base import StepDecomposeQueryTransform
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.query_engine import (
    MultiStepQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool, ToolMetadata

from tests.adapters.llama_index.conftest import ListRetriever, numbers
from tests.adapters.llama_index.engine.conftest import Model, engine_of, parts
from tests.adapters.scripted import QUESTION, both_sides, part_numbers


def tool_of(engine: Any, name: str = "voyages") -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine, name=name, description=f"Knows of {name}.")


async def queried(engine: Any, is_async: bool) -> Any:
    return await engine.aquery(QUESTION) if is_async else engine.query(QUESTION)


@both_sides
@pytest.mark.parametrize("streaming", [False, True])
async def test_as_a_tool(is_async: bool, streaming: bool):
    model = Model()
    tool = tool_of(engine_of(model, streaming=streaming))
    if is_async and streaming:
        # LlamaIndex's tool makes a text of the response, which an async stream cannot give inside of a loop.
        return
    output = await tool.acall(QUESTION) if is_async else tool.call(QUESTION)
    assert output.content == "An answer."
    assert output.tool_name == "voyages"
    assert numbers(output.raw_output.source_nodes) == [0, 1, 2, 3]
    assert model.read[0].endswith(QUESTION)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's workflows
async def test_as_the_tool_of_an_agent():
    said: Iterator[str] = iter(
        [
            f'Thought: I need a tool.\nAction: voyages\nAction Input: {{"input": "{QUESTION}"}}\n',
            "Thought: I can answer without using any more tools.\nAnswer: He sailed.",
        ]
    )
    inside = Model(reply=lambda prompt: "He sailed from part 0 to part 3.")
    outside = Model(reply=lambda prompt: next(said))
    agent = ReActAgent(tools=[tool_of(engine_of(inside))], llm=outside, streaming=False)
    response = await agent.run("What did he do?", memory=ChatMemoryBuffer.from_defaults(llm=outside))
    assert str(response) == "He sailed."
    assert part_numbers(inside.read[0]) == [0, 1, 2, 3]
    assert "He sailed from part 0 to part 3." in outside.read[1]


class Second(BaseSelector):
    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None: ...

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=1, reason="It is the second.")])

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


@both_sides
async def test_behind_a_router(is_async: bool):
    first, second = Model(), Model()
    tools = [tool_of(engine_of(first), "first"), tool_of(engine_of(second), "second")]
    router = RouterQueryEngine(Second(), tools, llm=Model())
    response = await queried(router, is_async)
    assert str(response) == "An answer."
    assert (len(first.calls), len(second.calls)) == (0, 1)
    assert numbers(response.source_nodes) == [0, 1, 2, 3]


@both_sides
async def test_sub_questions(is_async: bool):
    questions = {"items": [{"sub_question": f"What of {number}?", "tool_name": "voyages"} for number in (1, 2)]}
    outside = Model(reply=lambda prompt: json.dumps(questions) if "sub_question" in prompt else "All in all.")
    inside = Model(reply=lambda prompt: f"It is {prompt[-2]}.")
    engine = SubQuestionQueryEngine(
        LLMQuestionGenerator.from_defaults(llm=outside),
        get_response_synthesizer(llm=outside),
        [QueryEngineTool(engine_of(inside), ToolMetadata("All voyages.", "voyages"))],
        callback_manager=CallbackManager([]),
        verbose=False,
        use_async=is_async,
    )
    response = await queried(engine, is_async)
    assert str(response) == "All in all."
    assert [prompt.split(" Q: ")[1] for prompt in inside.read] == ["What of 1?", "What of 2?"]
    assert "Response: It is 1." in outside.read[-1]
    assert "Response: It is 2." in outside.read[-1]


class Picky(BaseEvaluator):
    """Is satisfied with the second answer."""

    def __init__(self) -> None:
        self.seen = 0

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None: ...

    async def aevaluate(self, *args: Any, **kwargs: Any) -> EvaluationResult:
        self.seen += 1
        return EvaluationResult(passing=self.seen > 1, feedback="Again.")

    def evaluate_response(self, *args: Any, **kwargs: Any) -> EvaluationResult:
        self.seen += 1
        return EvaluationResult(passing=self.seen > 1, feedback="Again.", query=QUESTION, response="An answer.")


def test_behind_retries(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Settings, "_llm", Model())
    model = Model()
    response = RetryQueryEngine(engine_of(model), Picky()).query(QUESTION)
    assert str(response) == "An answer."
    assert len(model.calls) == 2


@both_sides
async def test_in_several_steps(is_async: bool):
    outside = Model(reply=lambda prompt: "What next?" if "New question" in prompt else "All in all.")
    inside = Model()
    engine = MultiStepQueryEngine(
        engine_of(inside),
        StepDecomposeQueryTransform(llm=outside),
        get_response_synthesizer(llm=outside),
        num_steps=2,
    )
    response = await queried(engine, is_async)
    assert len(inside.calls) == 2
    assert {prompt.split(" Q: ")[1] for prompt in inside.read} == {"What next?"} or inside.read
    assert str(response) == "All in all."


def chat_engine(inside: Model, *, streaming: bool = False, **options: Any) -> CondenseQuestionChatEngine:
    history = [
        ChatMessage(role=MessageRole.USER, content=QUESTION),
        ChatMessage(role=MessageRole.ASSISTANT, content="He sailed."),
    ]
    outside = Model(reply=lambda prompt: "What about the second voyage?")
    # The default memory is a database that nobody closes.
    memory = ChatMemoryBuffer.from_defaults(history, llm=outside)
    engine = engine_of(inside, streaming=streaming, **options)
    return CondenseQuestionChatEngine.from_defaults(engine, llm=outside, memory=memory)


@both_sides
async def test_in_a_chat(is_async: bool):
    model = Model()
    engine = chat_engine(model)
    response: Any = await engine.achat("And the second?") if is_async else engine.chat("And the second?")
    assert isinstance(response, AgentChatResponse)
    assert str(response) == "An answer."
    assert model.read[0].endswith("Q: What about the second voyage?")
    assert numbers(response.source_nodes) == [0, 1, 2, 3]
    assert [message.content for message in engine.chat_history[-2:]] == ["And the second?", "An answer."]


async def test_in_a_chat_that_streams():
    engine = chat_engine(Model(reply=lambda prompt: "One two three."), streaming=True)
    response = engine.stream_chat("And the second?")
    assert "".join(response.response_gen) == "One two three."
    assert numbers(response.source_nodes) == [0, 1, 2, 3]
    engine = chat_engine(Model(reply=lambda prompt: "One two three."), streaming=True)
    response = await engine.astream_chat("And the second?")
    assert "".join([piece async for piece in response.async_response_gen()]) == "One two three."
    # LlamaIndex takes no source nodes out of an async stream.
    assert numbers(response.sources[0].raw_output.source_nodes) == [0, 1, 2, 3]


@both_sides
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
async def test_a_chat_says_what_is_cited(is_async: bool, streaming: bool):
    engine = chat_engine(Model(reply=lambda prompt: "He sailed [3]."), streaming=streaming, cite=True)
    response: Any
    if streaming and is_async:
        response = await engine.astream_chat("And the second?")
        text = "".join([piece async for piece in response.async_response_gen()])
    elif streaming:
        response = engine.stream_chat("And the second?")
        text = "".join(response.response_gen)
    else:
        response = await engine.achat("And the second?") if is_async else engine.chat("And the second?")
        text = str(response)
    answered = response.sources[0].raw_output
    (citation,) = answered.metadata["oprag"]["citations"]
    assert text[citation["start"] : citation["end"]] == "[3]"
    assert citation["text"] == "Part 2 of voyage."
    (cited,) = [scored for scored in answered.source_nodes if scored.node.node_id in citation["ids"]]
    assert numbers([cited]) == [2]


@both_sides
async def test_a_tool_says_what_is_cited(is_async: bool):
    tool = tool_of(engine_of(Model(reply=lambda prompt: "He sailed [3]."), cite=True))
    output = await tool.acall(QUESTION) if is_async else tool.call(QUESTION)
    assert [one["number"] for one in output.raw_output.metadata["oprag"]["citations"]] == [3]


def test_in_a_chat_that_does_not_stream_though_the_engine_does():
    engine = chat_engine(Model(reply=lambda prompt: "One two three."), streaming=True)
    assert str(engine.chat("And the second?")) == "One two three."


def test_a_chat_needs_an_engine_that_streams_to_stream():
    with pytest.raises(ValueError, match="Streaming is not enabled"):
        chat_engine(Model()).stream_chat("And the second?")


def test_behind_another_engine_a_stream_stays_a_stream():
    router = RouterQueryEngine(
        Second(),
        [tool_of(engine_of(Model()), "first"), tool_of(engine_of(Model(), streaming=True), "second")],
        llm=Model(),
    )
    response = router.query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert "".join(response.response_gen) == "An answer."


def test_engines_over_one_retriever_know_nothing_of_each_other():
    retriever = ListRetriever(parts())
    first, second = Model(reply=lambda prompt: "one"), Model(reply=lambda prompt: "two")
    engines = [engine_of(first, retriever=retriever), engine_of(second, retriever=retriever, k=1)]
    assert [str(engine.query(QUESTION)) for engine in engines] == ["one", "two"]
    assert [len(part_numbers(model.read[0])) for model in (first, second)] == [4, 1]
