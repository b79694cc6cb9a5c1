from typing import Any

import pytest

from oprag import ContextOptions
from oprag.errors import BudgetError, ModelWarning
from oprag.methods import Generate, Prompt, Window
from tests.core.methods.helpers import World, numbers, parts, words

WORDS = ContextOptions(count_tokens=words)


def found_in(prompt: Prompt) -> str:
    """Says which part was read, in ten words."""
    (number,) = numbers(prompt.text)
    return f"Part {number} of ten words one two three four five six"


def merge(prompt: Prompt) -> str:
    """Says which parts were read, in few words."""
    return " ".join(f"Part {number} of" for number in numbers(prompt.text))


@pytest.mark.parametrize(("count", "budget", "merged"), [(2, 10, 1), (5, 24, 2), (16, 24, 8), (17, 50, 4), (16, 1, 8)])
def test_partial_answers_collapse_in_rounds_of_neighbours(count, budget, merged):
    world = World(parts(count), map=found_in, collapse=merge)
    answer = world.answer(method="map_reduce", collapse_tokens=budget, context_options=WORDS)
    first, *rounds, last = world.of(Generate)
    assert [prompt.step for prompt in first.prompts] == ["map"] * count
    assert [prompt.step for prompt in last.prompts] == ["reduce"]
    # As many neighbours are merged at once as the budget allows; pairs where it allows none.
    assert len(rounds[0].prompts) == merged
    for request in rounds:
        assert {prompt.step for prompt in request.prompts} == {"collapse"}
        read = [number for prompt in request.prompts for number in numbers(prompt.text)]
        assert read == sorted(set(read))
    assert numbers(world.texts("reduce")[0]) == list(range(count))
    assert len(answer.calls) == count + 1 + sum(len(request.prompts) for request in rounds)


@pytest.mark.parametrize(("budget", "collapses"), [(None, False), (100, True)])
def test_partial_answers_have_the_token_budget_if_no_other_is_given(budget, collapses):
    world = World(parts(17), map=found_in, collapse=merge)
    world.answer(method="map_reduce", context_options=ContextOptions(count_tokens=words, token_budget=budget))
    assert ("collapse" in world.steps) == collapses


def test_a_model_that_never_shortens_comes_to_an_end():
    world = World(parts(9), map=found_in, collapse=lambda prompt: prompt.text, reduce="Done.")
    assert world.answer(method="map_reduce", collapse_tokens=5, context_options=WORDS).text == "Done."
    assert [len(request.prompts) for request in world.of(Generate)] == [9, 4, 2, 1, 1, 1]


@pytest.mark.parametrize("reply", ["", " \n", ConnectionError("gone")])
def test_what_cannot_be_merged_goes_on_as_it_is(reply):
    world = World(parts(4), map=found_in, collapse=reply, reduce="Done.")
    options: dict[str, Any] = {
        "method": "map_reduce",
        "collapse_tokens": 20,
        "context_options": WORDS,
        "on_error": "skip",
    }
    if isinstance(reply, Exception):
        with pytest.warns(ModelWarning):
            answer = world.answer(**options)
    else:
        answer = world.answer(**options)
    assert answer.text == "Done."
    assert world.steps == ["map"] * 4 + ["collapse"] * 2 + ["reduce"]
    assert numbers(world.texts("reduce")[0]) == [0, 1, 2, 3]


def test_empty_and_failed_partial_answers_are_left_out():
    world = World(parts(4), map=["Zero.", "", OSError("no"), "Three."])
    with pytest.warns(ModelWarning, match="'map'.*OSError: no"):
        world.answer(method="map_reduce", on_error="skip")
    assert "Zero.\n\nThree." in world.texts("reduce")[0]


@pytest.mark.parametrize("count", [1, 2, 9])
def test_answers_that_do_not_fit_the_window_in_pairs_are_cut(count):
    def reply(prompt: Prompt) -> str:
        return f"Part {min(numbers(prompt.text))} of " + "word " * 150

    world = World(parts(count), map=reply, collapse=reply, reduce="Done.")
    answer = world.answer(method="map_reduce", context_options=WORDS, window=Window(200))
    assert answer.text == "Done."
    assert max(words(prompt.text) for prompt in world.prompts) <= 200
    assert max(words(text) for text in world.texts("reduce")) > 130
    assert answer.notes == ("answers were cut to fit the model's context window of 200 tokens",)
    assert {number for text in world.texts("collapse") for number in numbers(text)} == set(
        range(count if count > 1 else 0)
    )


def test_an_answer_without_spaces_is_cut_after_its_first_characters():
    long = "\n\n" + "字" * 400
    world = World(parts(2), map=long)
    world.answer(method="map_reduce", context_options=ContextOptions(count_tokens=len), window=Window(900))
    assert world.texts("collapse")[0].count("字") > 100


def test_a_prompt_that_cannot_fit_is_refused_before_any_call():
    for step in ("collapse", "reduce"):
        world = World(parts(2), map=found_in)
        with pytest.raises(BudgetError, match=f"'{step}'"):
            world.answer(
                method="map_reduce",
                context_options=WORDS,
                window=Window(150),
                prompts={step: "Long. " * 150 + "{answers} {question}"},
            )
        assert world.prompts == []
