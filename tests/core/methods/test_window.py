"""The context window of a model: a limit of every prompt, and the token budget where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from oprag import Chunk, ContextOptions
from oprag.errors import BudgetError, SourceTooLongError
from oprag.methods import Answer, Window
from tests.core.methods.helpers import METHODS, QUESTION, World, words

COUNT = 40
WHOLE = "whole " * 120


def world(size: int = 20, **given: Any) -> World:
    """Parts of one source that stand apart, of so many words each, the last one ranked best: 800 words in all."""
    found = [
        Chunk(
            f"Part {number} " + "word " * (size - 2),
            COUNT - 1 - number,
            metadata={"source": "voyage", "start_index": 1_000 * number},
        )
        for number in range(COUNT)
    ]
    return World(found, **{"sources": {"voyage": WHOLE}, "variants": "Who?\nWhen?", "route": "Unanswerable."} | given)


def ask(asked: World, window: int | None = 300, question: str = QUESTION, **options: Any) -> Answer:
    context = {name: options.pop(name) for name in ("token_budget", "header") if name in options}
    given: dict[str, Any] = {"passage_tokens": 1_024, "variants": 2, "answer_threshold": -1.0} | options
    context_options = ContextOptions(count_tokens=words, **context)
    return asked.answer(
        question, context_options=context_options, window=None if window is None else Window(window), **given
    )


def longest(asked: World) -> int:
    return max(words(prompt.text) for prompt in asked.prompts)


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_fit_is_refused_before_the_call(method: str):
    asked = world()
    with pytest.raises(BudgetError, match=r"needs \d\d\d tokens, too many for the model's context window of 100"):
        ask(asked, 100, "Why? " * 200, method=method)
    assert asked.prompts == []


def test_chunks_that_do_not_fit_the_window_are_noted():
    answer = ask(world(), method="stuff")
    assert answer.context is not None
    dropped = COUNT - len(answer.context.kept)
    assert 20 < dropped < COUNT
    assert answer.notes == (
        f"{dropped} retrieved chunks were dropped, since they do not fit the model's context window of 300 tokens",
    )
    assert all("window is 300 tokens" in drop.detail for drop in answer.context.dropped)


def test_chunks_that_are_all_too_long_are_refused():
    with pytest.raises(
        BudgetError,
        match=r"none of the 40 retrieved chunks fits: the model's context window of 140 .*leaves \d\d after the "
        r"rest of the prompt, but the smallest chunk needs 100",
    ):
        ask(world(size=100), 140)


@pytest.mark.parametrize("method", ["long_context", "self_route"])
def test_whole_sources_have_the_window_as_their_budget(method: str):
    with pytest.raises(
        SourceTooLongError, match=r"has 500 tokens, but the model's context window of 300 .*leaves \d\d\d after"
    ):
        ask(world(sources={"voyage": "whole " * 500}), method=method)
    asked = world(sources={"voyage": "whole " * 500})
    answer = ask(asked, method=method, overflow="truncate_end", source_token_budget=400)
    assert 150 < asked.prompts[-1].text.count("whole") < 300
    assert longest(asked) <= 300
    assert any("whole sources have 500 tokens" in note for note in answer.notes)


@pytest.mark.parametrize("method", METHODS)
def test_no_answer_is_lost_if_answers_grow(method: str):
    asked = world()
    asked.replies |= dict.fromkeys(
        ("answer", "refine", "map", "collapse", "reduce", "rerank", "aggregate"),
        lambda prompt: "so " * 25 * len(asked.prompts),
    )
    assert ask(asked, method=method, passage_tokens=50).text
    assert longest(asked) <= 300
