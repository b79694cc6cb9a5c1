"""The chain as a part of other chains: retries, fallbacks, configurations, pipes, tools, graphs and schemas."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import (
    ConfigurableField,
)
from pydantic import ValidationError

from oprag.errors import OptionError
from oprag.langchain import OrderPreservingChain, OrderPreservingRetriever
from tests.adapters.langchain.chain.conftest import Found, Model, chain_of, every_way, ranked, run
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import QUESTION, both_sides, by_step


@every_way
async def test_with_config(collector, way: str):
    chain = chain_of(Model()).with_config(tags=["t"], run_name="mine", callbacks=[collector])
    await run(chain, way, QUESTION)
    (root,) = collector.traced_runs
    assert (root.name, root.tags) == ("mine", ["t"])


@every_way
async def test_configurable_fields(way: str):
    model = Model(reply=by_step)
    chain: Any = chain_of(model).configurable_fields(
        method=ConfigurableField("method"), passage_tokens=ConfigurableField("passage_tokens")
    )
    await run(chain, way, QUESTION)
    assert model.steps == ["answer"]
    model.calls.clear()
    await run(chain, way, QUESTION, {"configurable": {"method": "refine"}})
    assert model.steps == ["answer", "refine", "refine", "refine"]
    model.calls.clear()
    await run(chain, way, QUESTION, {"configurable": {"method": "refine", "passage_tokens": 1_024}})
    assert model.steps == ["answer"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
@both_sides
async def test_as_a_tool(is_async: bool):
    tool = chain_of(Model()).as_tool(name="ask_the_voyage", description="Answers from the voyage.")
    assert tool.name == "ask_the_voyage"
    assert "input" in tool.args
    result = await run(tool, "ainvoke" if is_async else "invoke", {"input": QUESTION})
    assert result["answer"] == "An answer."


def test_schemas():
    chain = chain_of(Model(), input_key="query", output_key="result", documents_key="source_documents")
    assert chain.get_input_jsonschema()["required"] == ["query"]
    assert set(chain.get_input_jsonschema()["properties"]) >= {"query", "chat_history"}
    assert set(chain.get_output_jsonschema()["properties"]) >= {"result", "source_documents"}
    given: Any = chain.input_schema(query=QUESTION)
    assert given.query == QUESTION
    with pytest.raises(ValidationError):
        chain.input_schema(question=QUESTION)
    output: Any = chain.output_schema
    assert output.model_validate(chain.invoke(QUESTION)).result == "An answer."
    assert chain_of(Model(), documents_key=None).output_keys == ["answer"]


@pytest.mark.parametrize(
    "options",
    [
        {"input_key": "answer"},
        {"output_key": "context"},
        {"documents_key": 5},
        {"embeddings": "minilm"},
        {"llm": "gpt"},
        {"llm": None},
        {"retriever": None},
        {"retriever": [Document("a")]},
    ],
    ids=str,
)
def test_values_that_cannot_be_are_refused_when_the_chain_is_made(options: dict[str, Any]):
    given = {"llm": Model(), "retriever": Found(documents=[]), **options}
    with pytest.raises(ValueError):  # noqa: PT011 - which one is told by the option
        OrderPreservingChain(**given)


def test_options_beside_a_retriever_with_options_of_its_own_are_refused(store):
    retriever = OrderPreservingRetriever(vectorstore=store, k=3)
    assert len(chain_of(Model(), retriever=retriever).invoke(QUESTION)["context"]) == 3
    with pytest.raises(ValidationError, match="k"):
        chain_of(Model(), retriever=retriever, k=5)


@every_way
async def test_unknown_keywords_of_a_call_are_refused(way: str):
    chain = chain_of(Model())

    async def consume() -> None:
        async for _ in chain.astream(QUESTION, k=3):
            pass

    calls: dict[str, Any] = {
        "invoke": lambda: chain.invoke(QUESTION, k=3),
        "ainvoke": lambda: chain.ainvoke(QUESTION, k=3),
        "batch": lambda: chain.batch([QUESTION], k=3),
        "abatch": lambda: chain.abatch([QUESTION], k=3),
        "stream": lambda: list(chain.stream(QUESTION, k=3)),
        "astream": consume,
    }
    with pytest.raises(OptionError, match="unknown arguments: k"):
        await calls[way]()
    with pytest.raises(OptionError, match="stop"):
        chain.bind(stop=["\n"]).invoke(QUESTION)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "refine"),
        ("prompts", {"answer": "NEW {context} {input}"}),
        ("retriever", Found(documents=ranked(parts(2)))),
        ("k", 2),
    ],
)
def test_an_option_that_is_assigned_is_refused(name: str, value: Any):
    """It must not be taken and then have no effect."""
    model = Model()
    chain = chain_of(model)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(chain, name, value)
    chain.invoke(QUESTION)
    assert model.steps == ["answer"]
