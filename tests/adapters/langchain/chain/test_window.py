"""The context window of a model: a ceiling for every prompt, and the token budget where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField, RunnableLambda

from oprag import BudgetError, SourceTooLongError
from tests.adapters.langchain.chain.conftest import (
    METHODS,
    SOURCE,
    Found,
    Model,
    both_sides,
    by_step,
    chain_of,
    every_way,
    ranked,
    run,
)
from tests.adapters.langchain.conftest import QUESTION

COUNT = 40


def words(text: str) -> int:
    return len(text.split())


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
        "count_tokens": words,
        "embeddings": DeterministicFakeEmbedding(size=8),
        "read_source": {SOURCE: "The whole voyage."},
        "answer_threshold": -1.0,
    }
    return model, chain_of(model, method=method, **(given | options))


def longest(model: Model) -> int:
    return max(words(text) for text in model.read)


@every_way
@pytest.mark.parametrize("method", METHODS)
async def test_no_prompt_is_longer_than_the_window(method: str, way: str):
    """All of the context is 800 words."""
    model, chain = windowed(method, 200)
    result = await run(chain, way, {"input": QUESTION})
    assert result["answer"]
    assert longest(model) <= 200


@every_way
@pytest.mark.parametrize("method", ["stuff", "self_route", "step_down", "reciprocal"])
async def test_what_fits_is_what_a_token_budget_would_keep(method: str, way: str):
    _, chain = windowed(method, 200)
    result = await run(chain, way, {"input": QUESTION})
    context = chain.answer(QUESTION).context
    assert context is not None
    assert 150 < context.tokens <= 200
    budget = context.options.token_budget
    assert budget is not None
    _, other = windowed(method, None, token_budget=budget)
    expected = other.answer(QUESTION).context
    assert context.text == expected.text
    assert [drop.chunk.rank for drop in context.dropped] == [drop.chunk.rank for drop in expected.dropped]
    assert {drop.reason for drop in context.dropped} == {"token_budget"}
    assert all("the model's context window is 200 tokens" in drop.detail for drop in context.dropped)
    assert len(context.kept) + len(context.dropped) == COUNT
    # The best-ranked are kept, in the order of the source; the documents are those that the model read.
    assert [document.metadata["start_index"] for document in result["context"]][: len(context.kept)] == [
        1_000 * number for number in range(COUNT - len(context.kept), COUNT)
    ]


def test_the_answer_says_what_was_left_out():
    _, chain = windowed("stuff", 200)
    answer = chain.answer(QUESTION)
    (note,) = answer.notes
    assert note == (
        f"{len(answer.context.dropped)} retrieved chunks were left out, since they do not fit the model's context "
        "window of 200 tokens"
    )


def test_nothing_is_said_where_nothing_was_left_out():
    # Somewhere between these the context fills the window to the last token.
    contexts = set()
    for window in range(800, 860):
        answer = windowed("stuff", window)[1].answer(QUESTION)
        dropped = sum(drop.reason == "token_budget" for drop in answer.context.dropped)
        assert [note.partition(" ")[0] for note in answer.notes] == ([str(dropped)] if dropped else [])
        contexts.add(dropped > 0)
    assert contexts == {False, True}


def test_the_length_of_the_prompt_counts():
    """The longer the question, the less context."""
    _, chain = windowed("stuff", 200)
    short, long = chain.answer(QUESTION), chain.answer("Why? " * 100)
    assert long.context.tokens < short.context.tokens - 80


@pytest.mark.parametrize("budget", [60, 100])
def test_a_token_budget_within_the_window_stays(budget: int):
    _, chain = windowed("stuff", 200, token_budget=budget)
    answer = chain.answer(QUESTION)
    assert answer.context.options.token_budget == budget
    assert not any("window" in drop.detail for drop in answer.context.dropped)
    assert answer.notes == ()


def test_a_larger_token_budget_is_cut_to_the_window():
    model, chain = windowed("stuff", 200, token_budget=16_384)
    assert chain.answer(QUESTION).context.tokens <= 200
    assert longest(model) <= 200


@pytest.mark.parametrize("method", METHODS)
def test_a_window_that_is_large_enough_changes_nothing(method: str):
    first, wide = windowed(method, 1_000_000)
    second, unknown = windowed(method, None)
    assert wide.answer(QUESTION).text == unknown.answer(QUESTION).text
    assert sorted(first.read) == sorted(second.read)


@pytest.mark.parametrize("profile", [None, {}, {"max_input_tokens": None}, {"max_output_tokens": 100}])
@pytest.mark.parametrize("method", METHODS)
def test_a_model_that_tells_no_window_has_none(method: str, profile: Any):
    model = Model(reply=by_step)
    model.profile = profile
    _, chain = windowed(method, None, model)
    answer = chain.answer(QUESTION)
    assert answer.context.options.token_budget is None
    assert answer.notes == () or method in {"step_down", "reciprocal"}
    assert not answer.context.dropped


@every_way
@pytest.mark.parametrize("method", METHODS)
async def test_what_cannot_fit_is_refused_before_the_call(method: str, way: str):
    model, chain = windowed(method, 100)
    with pytest.raises(
        BudgetError, match=r"needs \d\d\d tokens, too many for the model's context window of 100 tokens"
    ):
        await run(chain, way, {"input": "Why? " * 200})
    assert model.prompts == []


@every_way
async def test_chunks_that_are_all_too_long_are_refused(way: str):
    model, chain = windowed("stuff", 60, retriever=found(100))
    with pytest.raises(
        BudgetError,
        match=r"none of the 40 retrieved chunks fits: the model's context window of 60 tokens leaves \d\d beside the "
        r"rest of the prompt, and the smallest chunk needs 100",
    ):
        await run(chain, way, {"input": QUESTION})
    assert model.prompts == []


@both_sides
@pytest.mark.parametrize("method", ["map_reduce", "map_rerank", "refine"])
async def test_passages_are_as_long_as_the_window_allows(method: str, is_async: bool):
    """One chunk of 400 words is cut."""
    long = Found(documents=[Document("word " * 400, metadata={"source": SOURCE, "start_index": 0})])
    model, chain = windowed(method, 100, retriever=long, passage_tokens=1_024)
    answer = await chain.aanswer(QUESTION) if is_async else chain.answer(QUESTION)
    assert longest(model) <= 100
    assert sum(text.count("word") for text in model.read) == 400
    assert not answer.context.dropped


@pytest.mark.parametrize("method", ["map_reduce", "map_rerank", "refine"])
def test_headers_of_passages_count(method: str):
    header = "From {source}, a rather long story in which many things happen: " + "so it is said " * 5
    model, chain = windowed(method, 120, header=header, passage_tokens=1_024)
    chain.answer(QUESTION)
    assert longest(model) <= 120


def test_partial_answers_are_merged_as_far_as_the_window_allows():
    model, chain = windowed(
        "map_reduce",
        120,
        Model(reply=lambda prompt: "so " * 20, profile={"max_input_tokens": 120}),
        collapse_tokens=9_999,
    )
    chain.answer(QUESTION)
    assert "collapse" in model.steps
    assert longest(model) <= 120


@pytest.mark.parametrize("method", ["long_context", "self_route"])
def test_whole_sources_have_the_window_as_their_budget(method: str):
    source = {SOURCE: "whole " * 500}
    model, chain = windowed(method, 200, read_source=source)
    with pytest.raises(
        SourceTooLongError, match=r"has 500 tokens, and the model's context window of 200 tokens leaves 1\d\d beside"
    ):
        chain.answer(QUESTION)
    model, chain = windowed(method, 200, read_source=source, overflow="truncate_end", source_token_budget=400)
    answer = chain.answer(QUESTION)
    assert 150 < model.read[-1].count("whole") < 200
    assert longest(model) <= 200
    assert any("whole sources had 500 tokens" in note for note in answer.notes)


@every_way
async def test_an_answer_that_grew_too_long_is_refused(way: str):
    model, chain = windowed("refine", 100, Model(reply=lambda prompt: "so " * 90, profile={"max_input_tokens": 100}))
    with pytest.raises(BudgetError, match=r"model call 'refine' needs 1\d\d tokens"):
        await run(chain, way, {"input": QUESTION})
    assert model.steps == ["answer"]


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


@both_sides
async def test_methods_that_are_compared_share_one_search_and_have_each_their_own_room(is_async: bool):
    _, chain = windowed("stuff", 200)
    methods = ["stuff", "map_reduce", "stuff"]
    first, second, third = await chain.acompare(QUESTION, methods) if is_async else chain.compare(QUESTION, methods)
    assert len(first.context.kept) == len(third.context.kept) < 10
    assert len(second.context.kept) == COUNT
    assert chain.retriever.asked == [QUESTION]


@both_sides
async def test_a_conversation_that_is_too_long_is_refused(is_async: bool):
    model, chain = windowed("stuff", 100)
    history = [("word " * 50, "word " * 50)]
    with pytest.raises(BudgetError, match="model call 'condense' needs"):
        await chain.aanswer(QUESTION, chat_history=history) if is_async else chain.answer(
            QUESTION, chat_history=history
        )
    assert model.prompts == []


def test_the_window_and_citations():
    model, chain = windowed("stuff", 200, cite=True)
    answer = chain.answer(QUESTION)
    assert longest(model) <= 200
    assert [passage.text.split()[1] for passage in answer.passages] == [
        str(number) for number in range(COUNT - len(answer.passages), COUNT)
    ]


def test_more_chunks_than_one_prompt_takes():
    """The default counter, a vanilla chain and a window of 2,048 tokens."""
    model = Model(profile={"max_input_tokens": 2_048})
    answer = chain_of(model, retriever=found(100), prompts={}).answer(QUESTION)
    (text,) = model.read
    assert len(text.encode()) / 4 <= 2_048
    assert answer.context is not None
    assert 10 < len(answer.context.kept) < COUNT
