import pytest

from oprag.errors import ModelWarning
from oprag.methods import Generate, ReadSources
from oprag.methods.replies import may_be_refusal
from tests.core.methods.helpers import World, numbers, parts

WHOLE = {"voyage": "The whole of the voyage."}
REFUSALS = ["unanswerable", "Unanswerable.", "**UNANSWERABLE**", "'unanswerable'\n", "Answer: unanswerable"]


@pytest.mark.parametrize("count", [1, 5])
def test_one_call_where_the_context_is_enough(count):
    world = World(parts(count), sources=WHOLE, route="It sank.")
    answer = world.answer(method="self_route")
    assert world.steps == ["route"]
    assert numbers(world.texts("route")[0]) == list(range(count))
    assert (answer.text, answer.route) == ("It sank.", "rag")
    assert world.of(ReadSources) == []
    assert len(answer.passages) == count


@pytest.mark.parametrize("refusal", [*REFUSALS, "", " \n"])
def test_two_calls_where_it_is_refused(refusal):
    world = World(parts(3), sources=WHOLE, route=refusal, answer="It sank.")
    answer = world.answer(method="self_route")
    assert world.steps == ["route", "answer"]
    assert (answer.text, answer.route) == ("It sank.", "long_context")
    assert WHOLE["voyage"] in world.texts("answer")[0]
    assert [passage.text for passage in answer.passages] == [WHOLE["voyage"]]


def test_what_may_be_a_refusal_is_held_back():
    world = World(parts(1), sources=WHOLE, route="unanswerable")
    world.answer(method="self_route")
    assert [(request.final, request.hold) for request in world.of(Generate)] == [(True, may_be_refusal), (True, None)]


def test_a_failed_first_call_that_is_skipped_takes_the_second_way():
    world = World(parts(1), sources=WHOLE, route=OSError("no"), answer="It sank.")
    with pytest.warns(ModelWarning, match="'route'"):
        answer = world.answer(method="self_route", on_error="skip")
    assert (answer.text, answer.route) == ("It sank.", "long_context")
