"""The context window of a model: a ceiling for every prompt, and the token budget where there is none."""

from __future__ import annotations

import re
from typing import Any

from tests.adapters.contract.frameworks import (
    SOURCE,
    Framework,
    both_sides,
    each_framework,
    each_method,
    each_way,
)
from tests.adapters.scripted import QUESTION, by_step
from tests.helpers import count_words

pytestmark = each_framework

COUNT = 40


def found(size: int = 20) -> list[tuple[str, dict[str, Any]]]:
    """Parts of one source that stand apart, of so many words each, the last one ranked best: 800 words in all."""
    return [
        (f"Part {number} " + "word " * (size - 2), {"source": SOURCE, "start_index": 1_000 * number})
        for number in reversed(range(COUNT))
    ]


def over(framework: Framework, model: Any, method: str = "stuff", size: int = 20, **options: Any) -> Any:
    given = {"retriever": framework.retriever(found(size)), "passage_tokens": 50, "count_tokens": count_words}
    return framework.over(model, method, **given | options)


def windowed(framework: Framework, method: str = "stuff", window: int = 200, **options: Any) -> tuple[Any, Any]:
    model = framework.windowed(window, reply=options.pop("reply", by_step))
    return model, over(framework, model, method, **options)


def longest(model: Any) -> int:
    return max(map(count_words, model.read))


@each_way
@each_method
async def test_no_prompt_is_longer_than_the_window(framework: Framework, method: str, way: str):
    model, answerer = windowed(framework, method)
    assert await framework.run(answerer, way)
    assert longest(model) <= 200


@each_way
async def test_the_documents_are_those_that_were_read(framework: Framework, way: str):
    model, answerer = windowed(framework)
    _, documents = await framework.result(answerer, way)
    kept = [int(text.split()[1]) for text in documents]
    assert kept == list(range(COUNT - len(kept), COUNT))
    assert [int(number) for number in re.findall(r"Part (\d+)", model.read[0])] == kept
    assert 3 < len(kept) < 10


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
