"""How a model of LangChain tells its context window, and which documents come back when it is too small."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField, RunnableLambda

from tests.adapters.langchain.chain.conftest import SOURCE, Found, Model, chain_of, ranked
from tests.adapters.scripted import QUESTION, both_sides, by_step
from tests.helpers import count_words

COUNT = 40


def found(size: int = 20) -> Found:
    """Parts of one source that stand apart, of so many words each, the last one ranked best."""
    return Found(
        documents=ranked(
            [
                Document(
                    f"Part {number} " + "word " * (size - 2), metadata={"source": SOURCE, "start_index": 1_000 * number}
                )
                for number in range(COUNT)
            ]
        )
    )


def windowed(method: str, window: int | None, model: Any = None, **options: Any) -> tuple[Model, Any]:
    profile = None if window is None else {"max_input_tokens": window}
    model = model or Model(reply=by_step, profile=profile)
    given: dict[str, Any] = {
        "retriever": found(),
        "passage_tokens": 50,
        "count_tokens": count_words,
        "embeddings": DeterministicFakeEmbedding(size=8),
        "read_source": {SOURCE: "The whole voyage."},
        "answer_threshold": -1.0,
    }
    return model, chain_of(model, method=method, **(given | options))


def small(**about: Any) -> Model:
    return Model(reply=by_step, profile={"max_input_tokens": 200}, **about)


def large() -> Model:
    return Model(reply=by_step, profile={"max_input_tokens": 100_000})


WRAPPED: list[Any] = [
    lambda model: model.bind(stop=["."]),
    lambda model: model.with_config(tags=["a"]),
    lambda model: model.with_retry(),
    lambda model: model.with_fallbacks([large()]),
    lambda model: large().with_fallbacks([model]),
    lambda model: (
        large()
        .configurable_alternatives(ConfigurableField("which"), default_key="large", small=model)
        .with_config(configurable={"which": "small"})
    ),
    lambda model: model | RunnableLambda(lambda reply: reply.text),
    lambda model: {"raw": model} | RunnableLambda(lambda replies: {**replies, "parsed": json.loads("{}")}),
]


@pytest.mark.parametrize("wrap", WRAPPED)
@both_sides
async def test_a_model_that_is_wrapped_tells_its_window(wrap: Any, is_async: bool):
    wrapped = wrap(small())
    _, chain = windowed("stuff", None, wrapped)
    config = {"configurable": {"which": "small"}}
    kept: Any = (
        await chain.ainvoke({"input": QUESTION}, config) if is_async else chain.invoke({"input": QUESTION}, config)
    )
    assert len(kept["context"]) < 10


def test_the_window_of_the_model_that_is_chosen():
    alternatives = large().configurable_alternatives(ConfigurableField("which"), default_key="large", small=small())
    _, chain = windowed("stuff", None, alternatives)
    assert len(chain.invoke({"input": QUESTION})["context"]) == COUNT
    assert len(chain.invoke({"input": QUESTION}, {"configurable": {"which": "small"}})["context"]) < 10
