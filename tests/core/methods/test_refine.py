from typing import Any

import pytest

from oprag import Chunk, ContextOptions
from oprag.errors import BudgetError, ModelWarning
from oprag.methods import Answer, Completion, Generate, Window
from tests.core.methods.helpers import QUESTION, World, numbers, parts, words
from tests.helpers import prose


@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_one_call_a_passage_in_the_order_of_the_context(count):
    world = World(parts(count))
    answer = world.answer(method="refine")
    assert world.steps == ["answer"] + ["refine"] * (count - 1)
    assert [numbers(prompt.text) for prompt in world.prompts] == [[number] for number in range(count)]
    assert len(answer.calls) == len(answer.passages) == count


def test_each_call_improves_the_answer_before():
    world = World(parts(3), answer="First draft.", refine=["Second draft.", "Third draft."])
    assert world.answer(method="refine").text == "Third draft."
    assert "First draft." in world.prompts[1].text
    assert "Second draft." in world.prompts[2].text
    assert "First draft." not in world.prompts[2].text


def test_only_the_last_reply_may_be_streamed():
    world = World(parts(3))
    world.answer(method="refine")
    assert [request.final for request in world.of(Generate)] == [False, False, True]


def test_a_passage_that_must_be_split_is_read_in_the_order_of_its_text():
    text = prose(400)
    world = World([Chunk(text, 1, metadata={"source": "a", "start_index": 0}), *parts(1, "b")])
    context_options = ContextOptions(count_tokens=lambda text: len(text.split()), source_ranking="best_last")
    answer = world.answer(method="refine", passage_tokens=50, context_options=context_options)
    read = [passage.text for passage in answer.passages]
    assert len(read) == 9
    assert "".join(read[:8]) == text
    for prompt, passage in zip(world.prompts, read, strict=True):
        assert passage in prompt.text


@pytest.mark.parametrize("empty", ["", " \n\t"])
def test_an_empty_reply_leaves_the_answer_as_it_was(empty):
    world = World(parts(3), answer="A draft.", refine=[empty, empty])
    assert world.answer(method="refine").text == "A draft."
    assert "A draft." in world.prompts[2].text


def test_an_empty_first_reply_is_not_refined():
    world = World(parts(3), answer=["", "A draft."], refine="Better.")
    assert world.answer(method="refine").text == "Better."
    assert world.steps == ["answer", "answer", "refine"]


def test_a_failed_call_that_is_skipped_leaves_the_answer_as_it_was():
    world = World(parts(3), answer="A draft.", refine=[TimeoutError("slow"), "Better."])
    with pytest.warns(ModelWarning, match="1 of 3 calls failed"):
        answer = world.answer(method="refine", on_error="skip")
    assert answer.text == "Better."
    assert "A draft." in world.prompts[2].text
    assert [str(call.error) for call in answer.failed_calls] == ["slow"]


def test_the_object_belongs_to_the_answer_that_stands():
    replies = [Completion('{"x": 1}', parsed={"x": 1}), Completion("")]
    answer = World(parts(2), answer=replies[0], refine=replies[1]).answer(method="refine")
    assert (answer.text, answer.parsed) == ('{"x": 1}', {"x": 1})


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


def test_numbers_of_passages_go_on_from_call_to_call():
    world = World(parts(3))
    world.answer(method="refine", cite=True)
    assert [f"[{number}]\nPart {number - 1}" in prompt.text for number, prompt in enumerate(world.prompts, 1)] == [
        True,
        True,
        True,
    ]
