"""The context window of a model: a ceiling for every prompt, and the token budget where there is none."""

from __future__ import annotations

import re
from typing import Any

import pytest

from oprag.errors import BudgetError, ModelError, SourceTooLongError
from tests.adapters.contract.frameworks import (
    SOURCE,
    Framework,
    both_sides,
    each_framework,
    each_method,
    each_way,
)
from tests.adapters.scripted import QUESTION, by_step

pytestmark = each_framework

COUNT = 40


def words(text: str) -> int:
    return len(text.split())


def found(size: int = 20) -> list[tuple[str, dict[str, Any]]]:
    """Parts of one source that stand apart, of so many words each, the last one ranked best: 800 words in all."""
    return [
        (f"Part {number} " + "word " * (size - 2), {"source": SOURCE, "start_index": 1_000 * number})
        for number in reversed(range(COUNT))
    ]


def over(framework: Framework, model: Any, method: str = "stuff", size: int = 20, **options: Any) -> Any:
    given = {"retriever": framework.retriever(found(size)), "passage_tokens": 50, "count_tokens": words}
    return framework.over(model, method, **given | options)


def windowed(framework: Framework, method: str = "stuff", window: int = 200, **options: Any) -> tuple[Any, Any]:
    model = framework.windowed(window, reply=options.pop("reply", by_step))
    return model, over(framework, model, method, **options)


SERVERS = {
    "llama.cpp": "Error code: 400 - {{'error': {{'code': 400, 'message': 'request ({prompt} tokens) exceeds the "
    "available context size ({window} tokens), try increasing it', 'type': 'exceed_context_size_error', "
    "'n_prompt_tokens': {prompt}, 'n_ctx': {window}}}}}",
    "openai": "Error code: 400 - {{'error': {{'message': \"This model's maximum context length is {window} tokens. "
    'However, your messages resulted in {prompt} tokens. Please reduce the length of the messages."}}}}',
}


def server(message: str, window: int) -> Any:
    """A model that refuses a longer prompt; it has more tokens than words, as for rare words."""

    def reply(prompt: str) -> str:
        tokens = int(1.4 * words(prompt))
        if tokens > window:
            raise ValueError(message.format(prompt=tokens, window=window))
        return "Unanswerable." if prompt.startswith("ROUTE") else by_step(prompt)

    return reply


def longest(model: Any) -> int:
    return max(map(words, model.read))


@each_way
@each_method
async def test_no_prompt_is_longer_than_the_window(framework: Framework, method: str, way: str):
    model, answerer = windowed(framework, method)
    assert await framework.run(answerer, way)
    assert longest(model) <= 200


@both_sides
@pytest.mark.parametrize("method", ["stuff", "self_route", "step_down", "reciprocal"])
async def test_what_fits_is_what_a_token_budget_would_keep(framework: Framework, method: str, way: str):
    context = (await framework.answer(windowed(framework, method)[1], way)).context
    assert 150 < context.tokens <= 200
    budget = context.options.token_budget
    limited = over(framework, framework.model(reply=by_step), method, token_budget=budget)
    expected = (await framework.answer(limited, way)).context
    assert context.text == expected.text
    assert [drop.chunk.rank for drop in context.dropped] == [drop.chunk.rank for drop in expected.dropped]
    assert {drop.reason for drop in context.dropped} == {"token_budget"}
    assert all("the model's context window is 2" in drop.detail for drop in context.dropped)
    assert "context window" in context.explain()
    # The best-ranked are kept, in the order of the source.
    assert len(context.kept) + len(context.dropped) == COUNT
    assert [chunk.rank for chunk in context.kept] == list(reversed(range(len(context.kept))))


@each_way
async def test_the_documents_are_those_that_were_read(framework: Framework, way: str):
    model, answerer = windowed(framework)
    _, documents = await framework.result(answerer, way)
    kept = [int(text.split()[1]) for text in documents]
    assert kept == list(range(COUNT - len(kept), COUNT))
    assert [int(number) for number in re.findall(r"Part (\d+)", model.read[0])] == kept
    assert 3 < len(kept) < 10


@both_sides
async def test_methods_that_are_compared_share_one_search(framework: Framework, way: str):
    _, answerer = windowed(framework)
    await framework.compare(answerer, way, ["stuff", "map_reduce"])
    assert framework.asked(answerer) == [QUESTION]


def test_the_answer_says_what_was_left_out(framework: Framework):
    answer = windowed(framework)[1].answer(QUESTION)
    (note,) = answer.notes
    assert note.startswith(
        f"{len(answer.context.dropped)} retrieved chunks were dropped, since they do not fit the model's context "
        "window of 2"
    )


def test_nothing_is_said_where_nothing_was_left_out(framework: Framework):
    # Somewhere between these the context fills the window to the last token.
    contexts = set()
    for window in range(800, 860, 2):
        answer = windowed(framework, window=window)[1].answer(QUESTION)
        dropped = sum(drop.reason == "token_budget" for drop in answer.context.dropped)
        assert [note.partition(" ")[0] for note in answer.notes] == ([str(dropped)] if dropped else [])
        contexts.add(dropped > 0)
    assert contexts == {False, True}


def test_the_length_of_the_prompt_counts(framework: Framework):
    _, answerer = windowed(framework)
    short, long = answerer.answer(QUESTION), answerer.answer("Why? " * 100)
    assert long.context.tokens < short.context.tokens - 80


@pytest.mark.parametrize("budget", [60, 100])
def test_a_token_budget_within_the_window_stays(framework: Framework, budget: int):
    answer = windowed(framework, token_budget=budget)[1].answer(QUESTION)
    assert answer.context.options.token_budget == budget
    assert not any("window" in drop.detail for drop in answer.context.dropped)
    assert answer.notes == ()


def test_a_larger_token_budget_is_cut_to_the_window(framework: Framework):
    model, answerer = windowed(framework, token_budget=16_384)
    assert answerer.answer(QUESTION).context.tokens <= 200
    assert longest(model) <= 200


@each_method
def test_a_window_that_is_large_enough_changes_nothing(framework: Framework, method: str):
    wide, answerer = windowed(framework, method, 900_000)
    unknown = framework.model(reply=by_step)
    assert answerer.answer(QUESTION).text == over(framework, unknown, method).answer(QUESTION).text
    assert sorted(wide.read) == sorted(unknown.read)


@each_way
@each_method
async def test_what_cannot_fit_is_refused_before_the_call(framework: Framework, method: str, way: str):
    model, answerer = windowed(framework, method, 100)
    with pytest.raises(BudgetError, match=r"needs 2\d\d tokens, too many for the model's context window of 1"):
        await framework.run(answerer, way, "Why? " * 200)
    assert model.read == []


@each_way
async def test_chunks_that_are_all_too_long_are_refused(framework: Framework, way: str):
    model, answerer = windowed(framework, window=60, size=100)
    with pytest.raises(
        BudgetError,
        match=r"none of the 40 retrieved chunks fits: the model's context window of \d\d .*leaves \d\d after the "
        r"rest of the prompt, but the smallest chunk needs 100",
    ):
        await framework.run(answerer, way)
    assert model.read == []


@both_sides
@pytest.mark.parametrize("method", ["map_reduce", "map_rerank", "refine"])
async def test_passages_are_as_long_as_the_window_allows(framework: Framework, method: str, way: str):
    """One chunk of 400 words is cut."""
    long = framework.retriever([("word " * 400, {"source": SOURCE, "start_index": 0})])
    model, answerer = windowed(framework, method, 100, retriever=long, passage_tokens=1_024)
    answer = await framework.answer(answerer, way)
    assert longest(model) <= 100
    assert sum(text.count("word") for text in model.read) == 400
    assert not answer.context.dropped


@pytest.mark.parametrize("method", ["map_reduce", "map_rerank", "refine"])
def test_headers_of_passages_count(framework: Framework, method: str):
    header = "From {source}, a rather long story in which many things happen: " + "so it is said " * 5
    model, answerer = windowed(framework, method, 120, header=header, passage_tokens=1_024)
    answerer.answer(QUESTION)
    assert longest(model) <= 120


def test_partial_answers_are_merged_as_far_as_the_window_allows(framework: Framework):
    model, answerer = windowed(framework, "map_reduce", 120, reply=lambda prompt: "so " * 20, collapse_tokens=9_999)
    answerer.answer(QUESTION)
    assert "collapse" in model.steps
    assert longest(model) <= 120


@each_way
@pytest.mark.parametrize("method", ["long_context", "self_route"])
async def test_whole_sources_have_the_window_as_their_budget(framework: Framework, method: str, way: str):
    source = {SOURCE: "whole " * 500}
    with pytest.raises(
        SourceTooLongError, match=r"has 500 tokens, but the model's context window of 2\d\d .*leaves 1\d\d after"
    ):
        await framework.run(windowed(framework, method, read_source=source)[1], way)
    model, answerer = windowed(framework, method, read_source=source, overflow="truncate_end", source_token_budget=400)
    answer = await framework.answer(answerer, way)
    assert 150 < model.read[-1].count("whole") < 200
    assert longest(model) <= 200
    assert any("whole sources have 500 tokens" in note for note in answer.notes)


@each_way
async def test_an_answer_that_fills_the_window_is_the_result(framework: Framework, way: str):
    model, answerer = windowed(framework, "refine", 100, reply=lambda prompt: "so " * 90)
    assert (await framework.run(answerer, way)).split() == ["so"] * 90
    assert model.steps == ["answer"]
    (note,) = (await framework.answer(answerer, way)).notes
    assert re.match(r"\d\d of \d\d passages were not read: the answer fills the model's context window of 1", note)


@each_way
@each_method
async def test_no_answer_is_lost_if_answers_grow(framework: Framework, method: str, way: str):
    def reply(prompt: str) -> str:
        return "Unanswerable." if "ROUTE" in prompt else "so " * 25 * len(model.calls)

    model, answerer = windowed(framework, method, reply=reply, max_concurrency=1)
    assert await framework.run(answerer, way)
    assert longest(model) <= 200


@each_way
@pytest.mark.parametrize(("method", "option"), [("stuff", "token_budget"), ("map_reduce", "passage_tokens")])
@pytest.mark.parametrize("message", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_a_prompt_that_the_server_refuses_fits_with_the_limit_of_the_error(
    framework: Framework, method: str, option: str, message: str, on_error: str, way: str
):
    model = framework.model(reply=server(message, 600))
    given: Any = {"passage_tokens": 600, "size": 30, "on_error": on_error}
    with pytest.raises(ModelError, match=rf"; set {option}=\d+$") as caught:
        await framework.run(over(framework, model, method, **given), way)
    limit = int(str(caught.value).rpartition("=")[2])
    # 525 tokens of the model, without those of the reply, are 375 of ours, and 15 to 25 are not the context.
    assert 325 < limit < 360
    assert await framework.run(over(framework, model, method, **given | {option: limit}), way)


@each_way
async def test_without_the_size_of_the_prompt_each_error_names_a_smaller_limit(framework: Framework, way: str):
    model = framework.model(reply=server("the request exceeds the available context size ({window} tokens)", 600))
    budgets = [1_000]
    while True:
        try:
            assert await framework.run(over(framework, model, size=30, token_budget=budgets[-1]), way)
            break
        except ModelError as error:
            budgets.append(int(str(error).rpartition("; set token_budget=")[2]))
    assert budgets == sorted(budgets, reverse=True)
    assert len(budgets) <= 5
    assert budgets[-1] > 300


@both_sides
async def test_methods_that_are_compared_have_each_their_own_room(framework: Framework, way: str):
    _, answerer = windowed(framework)
    methods = ["stuff", "map_reduce", "stuff"]
    is_async = way == "async_once"
    first, second, third = (
        await answerer.aanswer_with(QUESTION, methods) if is_async else answerer.answer_with(QUESTION, methods)
    )
    assert len(first.context.kept) == len(third.context.kept) < 10
    assert len(second.context.kept) == COUNT


def test_the_window_and_citations(framework: Framework):
    model, answerer = windowed(framework, cite=True)
    answer = answerer.answer(QUESTION)
    assert longest(model) <= 200
    assert [passage.text.split()[1] for passage in answer.passages] == [
        str(number) for number in range(COUNT - len(answer.passages), COUNT)
    ]
