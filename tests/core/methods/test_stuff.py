import pytest

from oprag import ContextOptions
from oprag.methods import Completion, Generate, Retrieve
from tests.core.methods.helpers import QUESTION, World, numbers, parts


@pytest.mark.parametrize("count", [1, 2, 16])
def test_one_call_over_the_whole_context_in_its_order(count):
    world = World(parts(count), answer="All of it.")
    answer = world.answer()
    assert world.steps == ["answer"]
    assert numbers(world.texts("answer")[0]) == list(range(count))
    assert answer.text == "All of it."
    assert numbers(" ".join(passage.text for passage in answer.passages)) == list(range(count))


def test_the_prompt_holds_the_context_as_it_is_rendered_and_the_question():
    world = World(parts(3))
    answer = world.answer(context_options=ContextOptions(gap="[...]", header="From {source}:"))
    assert answer.context is not None
    assert answer.context.text in world.texts("answer")[0]
    assert "[...]" in world.texts("answer")[0]
    assert QUESTION in world.texts("answer")[0]


def test_the_reply_may_be_streamed():
    world = World(parts(2))
    world.answer()
    assert [type(request) for request in world.requests] == [Retrieve, Generate]
    assert world.of(Generate)[0].final


def test_an_object_of_the_model_is_handed_on():
    answer = World(parts(1), answer=Completion('{"x": 1}', parsed={"x": 1})).answer()
    assert answer.parsed == {"x": 1}
    assert answer.text == '{"x": 1}'
