from typing import Any

import pytest

from oprag import Chunk, ContextOptions
from oprag.errors import BudgetError
from oprag.methods import Answer, Window
from tests.core.methods.helpers import QUESTION, World, numbers, parts, words
from tests.helpers import prose

PLAIN = {"answer": "{context} {question}", "refine": "{existing_answer} | {context} {question}"}


def windowed(world: World, **options: Any) -> Answer:
    """The answer of a model whose window has 100 tokens, of which a draft may take about 40."""
    given: Any = {"prompts": PLAIN, "passage_tokens": 1_024, "window": Window(100)}
    return world.answer(method="refine", context_options=ContextOptions(count_tokens=words), **given | options)


@pytest.mark.parametrize("cite", [False, True])
def test_parts_become_smaller_for_an_answer_that_outgrows_its_half_of_the_window(cite):
    long = Chunk(prose(400), 1, metadata={"source": "a", "start_index": 0})
    world = World([long], answer="Draft", refine=lambda prompt: "more " * min(55, 20 * len(world.prompts)))
    answer = windowed(world, cite=cite)
    assert answer.notes == ()
    assert max(words(prompt.text) for prompt in world.prompts) <= 100
    assert "".join(passage.text for passage in answer.passages) == long.text
    read = [prompt.text.rpartition("| ")[2].removesuffix(f" {QUESTION}") for prompt in world.prompts]
    sizes = [words(text) for text in read]
    assert max(sizes[-3:]) < 0.6 * max(sizes[:2])
    if cite:
        assert [text.split()[0] for text in read] == [f"[{number}]" for number in range(1, len(read) + 1)]
    else:
        assert [part for text in read for part in text.split()] == long.text.split()


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


def test_an_answer_that_shrinks_again_is_refined_to_the_end():
    world = World(parts(30), answer="Draft " * 60, refine="Short.")
    answer = windowed(world)
    assert answer.text == "Short."
    assert answer.notes == ()
    assert [number for prompt in world.prompts for number in numbers(prompt.text)] == list(range(30))


def test_a_prompt_that_cannot_fit_is_refused_before_any_call():
    world = World(parts(3))
    with pytest.raises(BudgetError):
        windowed(world, window=Window(8))
    assert world.prompts == []
