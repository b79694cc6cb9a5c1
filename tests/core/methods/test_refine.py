from typing import Any

import pytest

from oprag import ContextOptions
from oprag.errors import BudgetError
from oprag.methods import Answer, Window
from tests.core.methods.helpers import World, numbers, parts, words

PLAIN = {"answer": "{context} {question}", "refine": "{existing_answer} | {context} {question}"}


def windowed(world: World, **options: Any) -> Answer:
    """The answer of a model whose window has 100 tokens, of which a draft may take about 40."""
    given: Any = {"prompts": PLAIN, "passage_tokens": 1_024, "window": Window(100)}
    return world.answer(method="refine", context_options=ContextOptions(count_tokens=words), **given | options)


def test_an_answer_that_fills_the_window_is_the_result():
    world = World(parts(30), answer="Draft", refine=lambda prompt: "more " * 45 * len(world.prompts))
    answer = windowed(world)
    assert answer.text == answer.calls[-1].reply
    assert len(answer.calls) < 5
    read = [number for passage in answer.passages for number in numbers(passage.text)]
    assert read == list(range(len(read)))
    assert answer.notes == (
        f"{30 - len(read)} of 30 passages were not read: the answer fills the model's context window of 100 tokens",
    )


def test_a_prompt_that_cannot_fit_is_refused_before_any_call():
    world = World(parts(3))
    with pytest.raises(BudgetError):
        windowed(world, window=Window(8))
    assert world.prompts == []
